//! The kinds of plugins.

use std::fmt;

/// The package that the worlds belong to.
const PACKAGE: &str = "lakebed:policy/";
/// Versions of the package that this host speaks, as the beginning of the version.
const VERSIONS: &str = "@0.1.";

/// A kind of plugin, as declared in `wit/`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum World {
    /// Scores join edges.
    Scorer,
    /// Prices layout candidates.
    CostModel,
    /// Measures the drift between windows.
    DriftMeter,
    /// Decides which rows a compaction keeps.
    RowFilter,
    /// Folds the rows of a group.
    Aggregator,
}

impl World {
    /// All worlds.
    pub const ALL: [Self; 5] =
        [Self::Scorer, Self::CostModel, Self::DriftMeter, Self::RowFilter, Self::Aggregator];

    /// Returns the name of the world in `wit/`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Scorer => "scorer",
            Self::CostModel => "cost-model",
            Self::DriftMeter => "drift-meter",
            Self::RowFilter => "row-filter",
            Self::Aggregator => "aggregator",
        }
    }

    /// Finds a world by its name in `wit/`.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|world| world.as_str() == name)
    }

    /// Returns the name of the interface that only this world exports.
    const fn interface(self) -> &'static str {
        match self {
            Self::Scorer => "scoring",
            Self::CostModel => "pricing",
            Self::DriftMeter => "drift",
            Self::RowFilter => "selection",
            Self::Aggregator => "aggregation",
        }
    }

    /// Finds the worlds that a component with these exports belongs to.
    pub(crate) fn of_exports(exports: &[String]) -> Vec<Self> {
        let exported = |interface: &str| {
            exports.iter().any(|export| {
                export
                    .strip_prefix(PACKAGE)
                    .and_then(|rest| rest.strip_prefix(interface))
                    .is_some_and(|version| version.starts_with(VERSIONS))
            })
        };
        Self::ALL.into_iter().filter(|world| exported(world.interface())).collect()
    }
}

impl fmt::Display for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::World;

    #[test]
    fn every_world_parses_from_its_own_name() {
        for world in World::ALL {
            assert_eq!(World::parse(world.as_str()), Some(world));
        }
        assert_eq!(World::parse("Scorer"), None);
    }

    #[track_caller]
    fn check(exports: &[&str], expected: &[World]) {
        let exports: Vec<String> = exports.iter().map(ToString::to_string).collect();
        assert_eq!(World::of_exports(&exports), expected);
    }

    #[test]
    fn worlds_are_found_by_interface_and_compatible_version() {
        check(&["lakebed:policy/metadata@0.1.0", "lakebed:policy/scoring@0.1.0"], &[World::Scorer]);
        check(
            &["lakebed:policy/drift@0.1.7", "lakebed:policy/pricing@0.1.0"],
            &[World::CostModel, World::DriftMeter],
        );
        check(&["lakebed:policy/scoring@0.2.0", "lakebed:policy/scoring@0.10.0"], &[]);
        check(&["other:policy/scoring@0.1.0", "lakebed:policy/scoring"], &[]);
    }
}
