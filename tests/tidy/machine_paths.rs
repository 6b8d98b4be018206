//! The project works wherever it lies, so no file names a folder of one machine.

use super::{
    report::assert_clean,
    tree::{self, TextFile},
};

/// First parts of absolute paths that exist on one machine only.
const ROOTS: [&str; 3] = ["work", "root", "home"];
const ENDINGS: [&str; 8] = [".rs", ".md", ".toml", ".wit", ".lock", ".yml", ".html", ".js"];
/// The name of scripts, which have no ending.
const SCRIPT: &str = "/run";

fn check_paths(file: &TextFile) -> Vec<String> {
    let mut findings = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        for root in ROOTS {
            let pattern = format!("/{root}/");
            let absolute = line.match_indices(&pattern).any(|(at, _)| {
                let before = line[..at].chars().next_back();
                !before.is_some_and(|c| c.is_alphanumeric() || "_-.~}*)>".contains(c))
            });
            if absolute {
                findings.push(format!(
                    "{}:{}: `{pattern}…` is a path of one machine: make it relative, or invent a \
                     neutral one such as `/lake/…`",
                    file.path,
                    index + 1
                ));
            }
        }
    }
    findings
}

#[test]
fn no_file_names_a_folder_of_one_machine() -> Result<(), String> {
    let endings: Vec<&str> = ENDINGS.into_iter().chain([SCRIPT]).collect();
    let files = tree::files("", &endings)?;
    let findings: Vec<String> = files.iter().flat_map(check_paths).collect();
    assert_clean("the project works wherever it lies", &findings);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{ROOTS, check_paths};
    use crate::tidy::tree::TextFile;

    #[track_caller]
    fn check(text: &str, expected_count: usize) {
        let findings = check_paths(&TextFile::new("a.md", text));
        assert_eq!(findings.len(), expected_count, "{findings:?}");
    }

    #[test]
    fn absolute_paths_are_found_wherever_they_stand() {
        for root in ROOTS {
            check(&format!("see /{root}/a"), 1);
            check(&format!("\"file:///{root}/a\""), 1);
            check(&format!("`/{root}/a` and\n/{root}/b"), 2);
        }
    }

    #[test]
    fn parts_of_other_paths_are_no_machine_paths() {
        check(&format!("target/{}/a, https://example.org/{}/a", ROOTS[0], ROOTS[2]), 0);
        check(&format!("$HOME/{}/a, /{}shop/a", ROOTS[0], ROOTS[0]), 0);
    }
}
