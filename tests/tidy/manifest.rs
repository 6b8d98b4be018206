//! What a `Cargo.toml` depends on.

use std::collections::BTreeMap;

use super::{
    source::lines_with,
    tree::{self, TextFile},
};

/// Which builds need a dependency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Need {
    /// The crate itself, or its build script.
    Product,
    /// Its tests.
    Tests,
}

/// One dependency of a crate.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Dependency {
    /// The package, which is not always the name it has in code.
    pub(crate) package: String,
    pub(crate) need: Need,
    /// File and line, for messages.
    pub(crate) place: String,
}

/// A crate's name and dependencies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Manifest {
    /// The folder's last part: `model` for `host/model`.
    pub(crate) name: String,
    pub(crate) path: String,
    pub(crate) dependencies: Vec<Dependency>,
}

/// What the root's `Cargo.toml` says about the workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Workspace {
    /// The members' folders, in order.
    pub(crate) members: Vec<String>,
    /// Package of each shared dependency that has another name in code.
    renamed: BTreeMap<String, String>,
}

impl Workspace {
    /// Parses the root's `Cargo.toml`.
    pub(crate) fn parse(file: &TextFile) -> Result<Self, String> {
        let table = parse(file)?;
        let workspace = table.get("workspace").and_then(toml::Value::as_table);
        let members = workspace.and_then(|workspace| workspace.get("members")?.as_array());
        let members = members.into_iter().flatten().filter_map(toml::Value::as_str);
        let shared = workspace.and_then(|workspace| workspace.get("dependencies")?.as_table());
        let renamed = shared.into_iter().flatten().filter_map(|(key, value)| {
            Some((key.clone(), value.get("package")?.as_str()?.to_owned()))
        });
        Ok(Self { members: members.map(str::to_owned).collect(), renamed: renamed.collect() })
    }

    /// Reads the workspace of this project and the manifests of its members.
    pub(crate) fn load() -> Result<(Self, Vec<Manifest>), String> {
        let workspace = Self::parse(&tree::read("Cargo.toml")?)?;
        let manifest = |member: &String| {
            Manifest::parse(&tree::read(&format!("{member}/Cargo.toml"))?, &workspace)
        };
        let manifests = workspace.members.iter().map(manifest).collect::<Result<_, _>>()?;
        Ok((workspace, manifests))
    }
}

impl Manifest {
    /// Parses a member's `Cargo.toml`.
    pub(crate) fn parse(file: &TextFile, workspace: &Workspace) -> Result<Self, String> {
        let table = parse(file)?;
        let targets = table.get("target").and_then(toml::Value::as_table);
        let targets = targets.into_iter().flatten().filter_map(|(_, value)| value.as_table());
        let mut dependencies = Vec::new();
        for section in std::iter::once(&table).chain(targets) {
            for (title, need) in [
                ("dependencies", Need::Product),
                ("build-dependencies", Need::Product),
                ("dev-dependencies", Need::Tests),
            ] {
                let entries = section.get(title).and_then(toml::Value::as_table);
                for (key, value) in entries.into_iter().flatten() {
                    let own = value.get("package").and_then(toml::Value::as_str);
                    let shared = workspace.renamed.get(key).map(String::as_str);
                    dependencies.push(Dependency {
                        package: own.or(shared).unwrap_or(key).to_owned(),
                        need,
                        place: place(file, key),
                    });
                }
            }
        }
        let name = tree::name(tree::parent(&file.path)).to_owned();
        Ok(Self { name, path: file.path.clone(), dependencies })
    }
}

fn parse(file: &TextFile) -> Result<toml::Table, String> {
    file.text.parse().map_err(|error| format!("failed to parse {}: {error}", file.path))
}

fn place(file: &TextFile, key: &str) -> String {
    let line = lines_with(&file.text, key).into_iter().find(|line| {
        let text = file.text.lines().nth(line - 1).unwrap_or_default();
        text.strip_prefix(key).is_some_and(|rest| rest.starts_with(['.', ' ', '=']))
    });
    line.map_or_else(|| file.path.clone(), |line| format!("{}:{line}", file.path))
}

#[cfg(test)]
mod tests {
    use super::{Dependency, Manifest, Need, Workspace};
    use crate::tidy::tree::TextFile;

    const ROOT: &str = "[workspace]\nmembers = [\"host/model\"]\n[workspace.dependencies]\n\
        a = \"1\"\nb = { package = \"other\", version = \"1\" }\n";

    #[test]
    fn dependencies_of_every_section_are_found_by_package_and_line() {
        let root = Workspace::parse(&TextFile::new("Cargo.toml", ROOT)).expect("valid");
        assert_eq!(root.members, ["host/model"]);
        let text = "[dependencies]\nab = \"1\"\na.workspace = true\n[dev-dependencies]\n\
            b.workspace = true\n[target.'cfg(unix)'.dependencies]\n\
            c = { package = \"d\", version = \"1\" }\n";
        let manifest = Manifest::parse(&TextFile::new("host/model/Cargo.toml", text), &root);
        let manifest = manifest.expect("valid");
        assert_eq!(manifest.name, "model");
        let dependency = |package: &str, need, line: u32| Dependency {
            package: package.to_owned(),
            need,
            place: format!("host/model/Cargo.toml:{line}"),
        };
        let mut found = manifest.dependencies;
        found.sort();
        assert_eq!(
            found,
            [
                dependency("a", Need::Product, 3),
                dependency("ab", Need::Product, 2),
                dependency("d", Need::Product, 7),
                dependency("other", Need::Tests, 5),
            ]
        );
    }
}
