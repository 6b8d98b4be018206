//! Who may depend on whom, and which crate alone may know a heavy one.

use super::{
    manifest::{Manifest, Need, Workspace},
    report::assert_clean,
    tree,
};

/// A crate and the crates of ours it may import.
struct Row {
    name: &'static str,
    /// `None`: all that come before it.
    may_import: Option<&'static [&'static str]>,
    tests_may_import: &'static [&'static str],
}

const fn row(name: &'static str, may_import: &'static [&'static str]) -> Row {
    Row { name, may_import: Some(may_import), tests_may_import: &[] }
}

const fn wiring(name: &'static str) -> Row {
    Row { name, may_import: None, tests_may_import: &[] }
}

/// The arrows of ARCHITECTURE.md. A crate may have fewer, never another.
const TABLE: [Row; 11] = [
    row("model", &[]),
    row("collect", &["model"]),
    row("graph", &["model"]),
    row("plan", &["model", "graph"]),
    row("compact", &["model"]),
    row("layout", &["model", "graph", "plan", "compact"]),
    row("lake", &["model", "graph", "plan", "compact", "layout"]),
    row("bundle", &[]),
    Row { name: "sandbox", may_import: Some(&[]), tests_may_import: &["bundle"] },
    wiring("app"),
    wiring("tests"),
];

/// A package of others (a trailing `*` stands for any ending), and who alone may depend on it.
struct Heavy {
    package: &'static str,
    only: &'static [&'static str],
    why: &'static str,
}

const ENGINE: &str = "only `lake` executes queries and reads or writes tables";

/// The first line that fits counts.
const HEAVY: [Heavy; 15] = [
    Heavy { package: "wasmtime*", only: &["sandbox"], why: "only `sandbox` runs guests" },
    Heavy { package: "deltalake*", only: &["lake"], why: ENGINE },
    Heavy { package: "delta_kernel*", only: &["lake"], why: ENGINE },
    Heavy { package: "buoyant_kernel*", only: &["lake"], why: ENGINE },
    Heavy { package: "datafusion", only: &["lake"], why: ENGINE },
    Heavy { package: "datafusion-spark", only: &["lake"], why: ENGINE },
    Heavy { package: "object_store*", only: &["lake"], why: ENGINE },
    Heavy {
        package: "parquet*",
        only: &["lake", "collect"],
        why: "`lake` reads and writes tables, `collect` reads exports of query histories",
    },
    Heavy {
        package: "datafusion-*",
        only: &["collect"],
        why: "DataFusion's planner reads SQL in `collect`; `lake` has it through `datafusion`",
    },
    Heavy { package: "petgraph*", only: &["graph"], why: "the graph is private to `graph`" },
    Heavy { package: "axum*", only: &["app"], why: "only `app` has faces" },
    Heavy { package: "clap*", only: &["app"], why: "only `app` has faces" },
    Heavy { package: "indicatif*", only: &["app"], why: "only `app` has faces" },
    Heavy { package: "comfy-table*", only: &["app"], why: "only `app` has faces" },
    Heavy { package: "tpchgen*", only: &["app"], why: "only `app` makes tables up" },
];

fn check_edges(manifests: &[Manifest]) -> Vec<String> {
    let mut findings = Vec::new();
    for (index, row) in TABLE.iter().enumerate() {
        let Some(manifest) = manifests.iter().find(|manifest| manifest.name == row.name) else {
            findings.push(format!(
                "tests/tidy/edges.rs: the table has `{}`, the workspace has not: remove the row",
                row.name
            ));
            continue;
        };
        let before: Vec<&str> = TABLE[..index].iter().map(|earlier| earlier.name).collect();
        let may_import = row.may_import.unwrap_or(&before);
        for dependency in &manifest.dependencies {
            let Some(ours) = own_crate(&dependency.package) else { continue };
            let for_tests = dependency.need == Need::Tests && row.tests_may_import.contains(&ours);
            if !may_import.contains(&ours) && !for_tests {
                findings.push(format!(
                    "{}: `{}` must not import `{ours}` (it may: {}); let them meet in `app`, or \
                     change the table in tests/tidy/edges.rs and ARCHITECTURE.md first, in a \
                     commit of its own",
                    dependency.place,
                    row.name,
                    if may_import.is_empty() { "none".to_owned() } else { may_import.join(", ") },
                ));
            }
        }
    }
    let unknown =
        manifests.iter().filter(|manifest| TABLE.iter().all(|row| row.name != manifest.name));
    findings.extend(unknown.map(|manifest| {
        format!(
            "{}: the table in tests/tidy/edges.rs has no `{}`: add a row, and a line to \
             ARCHITECTURE.md's code map",
            manifest.path, manifest.name
        )
    }));
    findings
}

/// Returns the folder name of one of our crates, `None` for the others.
fn own_crate(package: &str) -> Option<&str> {
    if package == "lakebed" { Some("app") } else { package.strip_prefix("lakebed-") }
}

fn check_heavy(manifests: &[Manifest]) -> Vec<String> {
    let mut findings = Vec::new();
    for manifest in manifests {
        for dependency in &manifest.dependencies {
            let heavy = HEAVY.iter().find(|heavy| fits(&dependency.package, heavy.package));
            if let Some(heavy) = heavy
                && !heavy.only.contains(&manifest.name.as_str())
            {
                findings.push(format!(
                    "{}: `{}` belongs to `{}` alone: {}",
                    dependency.place,
                    dependency.package,
                    heavy.only.join("`, `"),
                    heavy.why
                ));
            }
        }
    }
    findings
}

fn fits(package: &str, pattern: &str) -> bool {
    pattern.strip_suffix('*').map_or(package == pattern, |start| package.starts_with(start))
}

fn check_guests(manifests: &[Manifest]) -> Vec<String> {
    let dependencies = manifests.iter().flat_map(|manifest| &manifest.dependencies);
    let host = dependencies.filter(|dependency| {
        own_crate(&dependency.package).is_some_and(|ours| !ours.starts_with("guest"))
    });
    host.map(|dependency| {
        format!(
            "{}: a guest must not import `{}`: what both sides need belongs in wit/",
            dependency.place, dependency.package
        )
    })
    .collect()
}

#[test]
fn crate_edges_are_those_of_the_table() -> Result<(), String> {
    let (_, manifests) = Workspace::load()?;
    assert_clean(
        "an import points to an earlier stage, never a later one",
        &check_edges(&manifests),
    );
    Ok(())
}

#[test]
fn heavy_crates_stay_in_their_rooms() -> Result<(), String> {
    let (_, manifests) = Workspace::load()?;
    assert_clean("each heavy crate is known to one of ours", &check_heavy(&manifests));
    Ok(())
}

#[test]
fn guests_import_nothing_of_the_host() -> Result<(), String> {
    let guests = Workspace::parse(&tree::read("plugins/Cargo.toml")?)?;
    let manifest = |member: &String| {
        Manifest::parse(&tree::read(&format!("plugins/{member}/Cargo.toml"))?, &guests)
    };
    let manifests = guests.members.iter().map(manifest).collect::<Result<Vec<_>, _>>()?;
    assert_clean("guests know the host through wit/ only", &check_guests(&manifests));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{TABLE, check_edges, check_guests, check_heavy};
    use crate::tidy::{
        manifest::{Manifest, Workspace},
        tree::TextFile,
    };

    fn manifest(name: &str, dependencies: &str) -> Manifest {
        let workspace = Workspace::parse(&TextFile::new("Cargo.toml", "")).expect("valid");
        let file = TextFile::new(format!("host/{name}/Cargo.toml"), dependencies);
        Manifest::parse(&file, &workspace).expect("valid")
    }

    /// A workspace as in the table where one crate has these dependencies.
    fn workspace(name: &str, dependencies: &str) -> Vec<Manifest> {
        let text = |row: &str| if row == name { dependencies } else { "" };
        TABLE.iter().map(|row| manifest(row.name, text(row.name))).collect()
    }

    #[track_caller]
    fn check(findings: &[String], expected: &[&str]) {
        assert_eq!(findings.len(), expected.len(), "{findings:#?}");
        for (finding, start) in findings.iter().zip(expected) {
            assert!(finding.starts_with(start), "{finding}");
        }
    }

    #[test]
    fn edges_of_the_table_pass_and_others_are_named() {
        let fine = "[dependencies]\nlakebed-model.workspace = true\n";
        check(&check_edges(&workspace("graph", fine)), &[]);
        let back = "[dependencies]\nlakebed-plan.workspace = true\n";
        check(
            &check_edges(&workspace("graph", back)),
            &["host/graph/Cargo.toml:2: `graph` must not import `plan` (it may: model);"],
        );
        let app = "[dev-dependencies]\nlakebed.workspace = true\n";
        check(
            &check_edges(&workspace("model", app)),
            &["host/model/Cargo.toml:2: `model` must not import `app` (it may: none);"],
        );
    }

    #[test]
    fn bundle_is_for_the_tests_of_the_sandbox_only() {
        let tests = "[dev-dependencies]\nlakebed-bundle.workspace = true\n";
        check(&check_edges(&workspace("sandbox", tests)), &[]);
        let product = "[dependencies]\nlakebed-bundle.workspace = true\n";
        check(
            &check_edges(&workspace("sandbox", product)),
            &["host/sandbox/Cargo.toml:2: `sandbox` must not import `bundle`"],
        );
    }

    #[test]
    fn crates_and_rows_without_one_another_are_named() {
        let mut manifests = workspace("model", "");
        manifests.push(manifest("attic", ""));
        manifests.remove(0);
        check(
            &check_edges(&manifests),
            &[
                "tests/tidy/edges.rs: the table has `model`,",
                "host/attic/Cargo.toml: the table in tests/tidy/edges.rs has no `attic`",
            ],
        );
    }

    #[test]
    fn heavy_crate_elsewhere_is_named() {
        check(&check_heavy(&[manifest("lake", "[dependencies]\ndatafusion = \"1\"\n")]), &[]);
        check(
            &check_heavy(&[manifest("collect", "[dependencies]\ndatafusion-sql = \"1\"\n")]),
            &[],
        );
        check(
            &check_heavy(&[manifest("tests", "[dev-dependencies]\nparquet = \"1\"\n")]),
            &["host/tests/Cargo.toml:2: `parquet` belongs to `lake`, `collect` alone"],
        );
        check(
            &check_heavy(&[manifest("lake", "[dependencies]\ndatafusion-sql = \"1\"\n")]),
            &["host/lake/Cargo.toml:2: `datafusion-sql` belongs to `collect` alone"],
        );
    }

    #[test]
    fn guest_that_imports_a_stage_is_named() {
        let guest = "[dependencies]\nlakebed-guest = \"1\"\nlakebed-model = \"1\"\n";
        check(
            &check_guests(&[manifest("mine", guest)]),
            &["host/mine/Cargo.toml:3: a guest must not import `lakebed-model`"],
        );
    }
}
