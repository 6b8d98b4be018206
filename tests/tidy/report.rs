//! How a broken rule is reported.

/// Fails with the rule and all findings, so that one run shows everything there is to repair.
#[track_caller]
pub(crate) fn assert_clean(rule: &str, findings: &[String]) {
    assert!(findings.is_empty(), "{rule}\n  {}", findings.join("\n  "));
}

#[cfg(test)]
mod tests {
    use super::assert_clean;

    #[test]
    #[should_panic(expected = "no file is empty\n  a.rs:1: empty\n  b.rs:1: empty")]
    fn findings_fail_with_the_rule_and_every_line() {
        assert_clean("no file is empty", &["a.rs:1: empty".into(), "b.rs:1: empty".into()]);
    }

    #[test]
    fn no_finding_passes() {
        assert_clean("no file is empty", &[]);
    }
}
