//! Hostile guests, one per attack, for the sandbox's tests. Each file of `examples/` is a component
//! of its own; `wasi/` asks for more than the host lends, and `shape/` has the right names and a wrong type.
//!
//! | guest | attack |
//! | --- | --- |
//! | `spin` | `score` never returns |
//! | `spin-configure` | `configure` never returns |
//! | `trap` | `score` runs into `unreachable` |
//! | `recurse` | `score` calls itself without end |
//! | `alloc` | `score` allocates without end |
//! | `flood` | `score` returns 2 000 000 numbers |
//! | `short`, `long` | `score` returns one number too few, too many |
//! | `nan`, `infinite` | the last score is not a number, not finite |
//! | `babble` | `describe` gives a name of 100 000 bytes |
//! | `escape` | `configure` fails with terminal escapes and a forged log line |
//! | `counter` | scores depend on how often the instance was called |
//! | `tail` | a row filter sets bits after the last row |
//! | `offsets` | an aggregator returns text whose offsets lie outside of its data |
#![cfg_attr(not(test), no_std)]

/// Exports a scorer whose `score` is the given function of the edges.
#[macro_export]
macro_rules! attack {
    ($name:literal, $score:expr) => {
        #[derive(Debug)]
        struct Attack;

        impl lakebed_guest::Plugin for Attack {
            const NAME: &'static str = $name;
            const VERSION: &'static str = env!("CARGO_PKG_VERSION");
            const DOC: &'static str = "An attack.";
            type Settings = lakebed_guest::NoSettings;

            fn configure(_: lakebed_guest::NoSettings) -> Result<Self, lakebed_guest::PluginError> {
                Ok(Self)
            }
        }

        impl lakebed_guest::scorer::Scorer for Attack {
            fn score(
                &self,
                edges: &lakebed_guest::scorer::Edges,
            ) -> Result<alloc::vec::Vec<f64>, lakebed_guest::PluginError> {
                let score: fn(&lakebed_guest::scorer::Edges) -> alloc::vec::Vec<f64> = $score;
                Ok(score(edges))
            }
        }

        lakebed_guest::export_scorer!(Attack);
    };
}
