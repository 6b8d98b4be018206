//! Words that a part of the code must not hold, because each would break a promise of that part.

use super::{
    report::assert_clean,
    source::{blanked, lines_with, product_code},
    tree::{self, TextFile},
};

/// Words, and where they must not be.
struct Ban {
    words: &'static [&'static str],
    /// Beginnings of the paths where the words are banned.
    under: &'static [&'static str],
    /// Beginnings of the paths where they are welcome all the same.
    except: &'static [&'static str],
    /// Longer words that are fine although they hold a banned one.
    harmless: &'static [&'static str],
    scope: Scope,
    advice: &'static str,
}

/// Which code a ban is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// What is compiled into the products.
    Product,
    /// Tests too.
    Everything,
}

const PURE: &[&str] = &[
    "host/model/src/",
    "host/collect/src/",
    "host/graph/src/",
    "host/plan/src/",
    "host/compact/src/",
    "host/layout/src/action",
    "host/layout/src/columns",
    "host/layout/src/conflict",
    "host/layout/src/curve",
    "host/layout/src/cuts",
    "host/layout/src/ddl",
    "host/layout/src/bounds",
    "host/layout/src/interval",
    "host/layout/src/log_files",
    "host/layout/src/overlap",
    "host/layout/src/select",
    "host/layout/src/settings",
    "host/layout/src/sizing",
    "host/layout/src/statement",
    "host/layout/src/succession",
    "host/layout/src/vacuum",
    "host/layout/src/zcube",
];

const NO_ASYNC: Ban = Ban {
    words: &["async fn", "async move", "await", "tokio"],
    under: PURE,
    except: &[],
    harmless: &[],
    scope: Scope::Product,
    advice: "this code is synchronous: take the data as an argument, and await it in `lake` or `app`",
};

const NO_SURROUNDINGS: Ban = Ban {
    words: &["SystemTime::now", "Instant::now", "std::env", "env::var", "thread::sleep"],
    under: PURE,
    except: &["host/model/src/clock.rs"],
    harmless: &[],
    scope: Scope::Product,
    advice: "the same input must give the same output: take `now` or the setting as an argument",
};

const NO_FILES: Ban = Ban {
    words: &["fs::", "File::open", "File::create"],
    under: &[
        "host/model/src/",
        "host/graph/src/",
        "host/plan/src/",
        "host/compact/src/",
        "host/layout/src/",
        "host/sandbox/src/",
    ],
    except: &["host/sandbox/src/artifact.rs"],
    harmless: &[],
    scope: Scope::Product,
    advice: "this crate never sees a file: read it in `collect`, `lake` or `app`",
};

const NO_PRINTING: Ban = Ban {
    words: &["println!", "eprintln!", "print!", "eprint!", "dbg!"],
    under: &["host/", "plugins/"],
    except: &["host/app/src/cli/", "host/app/src/main.rs", "plugins/bundle/build.rs"],
    harmless: &[],
    scope: Scope::Product,
    advice: "stdout belongs to the command line: return a value, or use `tracing`",
};

const NO_SERIALIZE: Ban = Ban {
    words: &["Serialize"],
    under: &["host/"],
    except: &["host/app/", "host/layout/"],
    harmless: &[],
    scope: Scope::Product,
    advice: "what a user reads has its shape in host/app/src/view/ (`layout` is the exception: \
             Delta's actions and rewrite tasks are wire formats)",
};

const NO_PLANNER: Ban = Ban {
    words: &["datafusion_"],
    under: &["host/collect/src/"],
    except: &["host/collect/src/lineage/"],
    // A tokenizer, which knows no plan.
    harmless: &["datafusion_sql::sqlparser"],
    scope: Scope::Product,
    advice: "DataFusion's planner is known to host/collect/src/lineage only",
};

const NO_UNSAFE: Ban = Ban {
    words: &["unsafe"],
    under: &["host/", "tests/", "plugins/bundle/"],
    except: &["host/sandbox/src/artifact.rs"],
    harmless: &[],
    scope: Scope::Everything,
    advice: "the one place for unsafe code is host/sandbox/src/artifact.rs",
};

const NO_POSTPONING: Ban = Ban {
    words: &["#[ignore", "todo!", "unimplemented!", "#[allow(", "#![allow("],
    under: &["host/", "plugins/", "tests/"],
    except: &[],
    harmless: &[],
    scope: Scope::Everything,
    advice: "finish it, assert today's behavior with a FIXME, or use `#[expect(…, reason = \"…\")]`",
};

fn check_ban(ban: &Ban, files: &[TextFile]) -> Vec<String> {
    let begins = |path: &str, starts: &[&str]| starts.iter().any(|start| path.starts_with(start));
    let code = match ban.scope {
        Scope::Product => product_code(files),
        Scope::Everything => files.iter().map(blanked).collect(),
    };
    let mut findings = Vec::new();
    for file in code {
        if !begins(&file.path, ban.under) || begins(&file.path, ban.except) {
            continue;
        }
        let harmless = ban.harmless.iter();
        let text = harmless.fold(file.text, |text, word| text.replace(word, ""));
        for word in ban.words {
            let lines = lines_with(&text, word).into_iter();
            findings.extend(
                lines.map(|line| format!("{}:{line}: `{word}`: {}", file.path, ban.advice)),
            );
        }
    }
    findings
}

/// Rust files of the host and the guests; those of tests too, for a ban on everything.
fn sources(scope: Scope) -> Result<Vec<TextFile>, String> {
    let folders: &[&str] = match scope {
        Scope::Product => &["host", "plugins"],
        Scope::Everything => &["host", "plugins", "tests"],
    };
    let mut files = Vec::new();
    for folder in folders {
        files.extend(tree::files(folder, &[".rs"])?);
    }
    Ok(files)
}

#[track_caller]
fn hold(rule: &str, ban: &Ban) -> Result<(), String> {
    assert_clean(rule, &check_ban(ban, &sources(ban.scope)?));
    Ok(())
}

#[test]
fn pure_code_is_synchronous() -> Result<(), String> {
    hold("pure code waits for nothing", &NO_ASYNC)
}

#[test]
fn pure_code_reads_no_clock_and_no_environment() -> Result<(), String> {
    hold("pure code depends on its arguments only", &NO_SURROUNDINGS)
}

#[test]
fn stages_without_files_open_none() -> Result<(), String> {
    hold("only `collect`, `lake` and `app` open files", &NO_FILES)
}

#[test]
fn only_the_command_line_prints() -> Result<(), String> {
    hold("no library prints", &NO_PRINTING)
}

#[test]
fn only_app_and_wire_formats_serialize() -> Result<(), String> {
    hold("shapes that users see are in one place", &NO_SERIALIZE)
}

#[test]
fn only_lineage_plans_sql() -> Result<(), String> {
    hold("DataFusion's planner stays behind lineage", &NO_PLANNER)
}

#[test]
fn unsafe_code_has_one_place() -> Result<(), String> {
    hold("no unsafe code outside of its one file", &NO_UNSAFE)
}

#[test]
fn nothing_is_postponed_or_silenced() -> Result<(), String> {
    hold("no ignored test, no stub, no lint silenced without a reason", &NO_POSTPONING)
}

#[cfg(test)]
mod tests {
    use super::{
        Ban, NO_ASYNC, NO_FILES, NO_PLANNER, NO_POSTPONING, NO_PRINTING, NO_SERIALIZE,
        NO_SURROUNDINGS, NO_UNSAFE, check_ban,
    };
    use crate::tidy::tree::TextFile;

    /// Checks on which lines of the text the ban finds its words.
    #[track_caller]
    fn check(ban: &Ban, path: &str, text: &str, expected: &[usize]) {
        let findings = check_ban(ban, &[TextFile::new(path, text)]);
        let places: Vec<String> = expected.iter().map(|line| format!("{path}:{line}: ")).collect();
        assert_eq!(findings.len(), places.len(), "{findings:#?}");
        for (finding, place) in findings.iter().zip(&places) {
            assert!(finding.starts_with(place.as_str()), "{finding}");
        }
    }

    #[test]
    fn async_code_is_found_in_pure_crates_only() {
        check(&NO_ASYNC, "host/plan/src/a.rs", "fn a() {}\nasync fn b() {}", &[2]);
        check(&NO_ASYNC, "host/layout/src/select.rs", "x.await", &[1]);
        check(&NO_ASYNC, "host/layout/src/optimize.rs", "x.await", &[]);
    }

    #[test]
    fn clock_and_environment_are_found() {
        check(&NO_SURROUNDINGS, "host/graph/src/a.rs", "std::env::args()", &[1]);
        check(&NO_SURROUNDINGS, "host/plan/src/a.rs", "\nSystemTime::now()", &[2]);
        check(&NO_SURROUNDINGS, "host/model/src/clock.rs", "SystemTime::now()", &[]);
        check(&NO_SURROUNDINGS, "host/plan/src/a.rs", "env!(\"X\")", &[]);
    }

    #[test]
    fn opened_files_are_found() {
        check(&NO_FILES, "host/plan/src/a.rs", "std::fs::read(x)", &[1]);
        check(&NO_FILES, "host/collect/src/a.rs", "std::fs::read(x)", &[]);
    }

    #[test]
    fn printing_is_found_but_not_in_tests_comments_and_texts() {
        check(&NO_PRINTING, "host/app/src/view/plan.rs", "println!()", &[1]);
        check(&NO_PRINTING, "host/app/src/cli/plan.rs", "println!()", &[]);
        check(&NO_PRINTING, "host/lake/src/a.rs", "// println!()\n\"dbg!\"", &[]);
        check(&NO_PRINTING, "host/lake/src/a.rs", "#[cfg(test)]\nmod t { dbg!(x) }", &[]);
    }

    #[test]
    fn serializing_is_found_outside_of_app_and_layout() {
        check(&NO_SERIALIZE, "host/graph/src/a.rs", "#[derive(Serialize)]", &[1]);
        check(&NO_SERIALIZE, "host/collect/src/a.rs", "#[derive(Deserialize)]", &[]);
        check(&NO_SERIALIZE, "host/layout/src/action.rs", "#[derive(Serialize)]", &[]);
    }

    #[test]
    fn planner_is_found_outside_of_lineage_but_the_tokenizer_is_fine() {
        check(&NO_PLANNER, "host/collect/src/names.rs", "use datafusion_expr::Expr;", &[1]);
        check(&NO_PLANNER, "host/collect/src/names.rs", "datafusion_sql::planner::X", &[1]);
        check(&NO_PLANNER, "host/collect/src/names.rs", "datafusion_sql::sqlparser::X", &[]);
        check(&NO_PLANNER, "host/collect/src/lineage/a.rs", "use datafusion_expr::Expr;", &[]);
    }

    #[test]
    fn unsafe_code_is_found() {
        check(&NO_UNSAFE, "host/lake/src/a.rs", "unsafe { x }", &[1]);
        check(&NO_UNSAFE, "host/sandbox/src/artifact.rs", "unsafe { x }", &[]);
        check(&NO_UNSAFE, "host/lake/src/a.rs", "#![deny(unsafe_code)]", &[]);
    }

    #[test]
    fn postponed_work_is_found_in_tests_too() {
        let text = "#[cfg(test)]\nmod t {\n#[test]\n#[ignore = \"slow\"]\nfn a() { todo!() }\n}";
        check(&NO_POSTPONING, "host/lake/src/a.rs", text, &[4, 5]);
        check(&NO_POSTPONING, "tests/flow/a.rs", "#![allow(dead_code)]", &[1]);
        check(&NO_POSTPONING, "tests/flow/a.rs", "#[expect(dead_code)]", &[]);
    }
}
