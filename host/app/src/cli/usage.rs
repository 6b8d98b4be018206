//! Arguments that make no command, in the words of every other error.

use clap::error::ErrorKind;

use crate::error::Error;

/// Turns the parser's text of several paragraphs into what is wrong and what to do.
pub(super) fn error(error: &clap::Error) -> Error {
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return Error::Usage {
            what: "run a command: none was given".to_owned(),
            help: "see `lakebed --help`".to_owned(),
        };
    }
    let text = error.render().to_string();
    let (mut what, mut help) = (String::new(), Vec::new());
    for paragraph in text.split("\n\n") {
        let flat = paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
        if let Some(first) = flat.strip_prefix("error: ") {
            what = first.to_owned();
        } else if let Some(tip) = flat.strip_prefix("tip: ") {
            help.push(tip.replace(" tip: ", "; "));
        } else if let Some(usage) = flat.strip_prefix("Usage: ") {
            help.push(format!("usage: {usage}"));
        }
    }
    help.push("see `--help`".to_owned());
    Error::Usage { what: format!("read the command line: {what}"), help: help.join("; ") }
}

#[cfg(test)]
mod tests {
    use clap::{Arg, Command};

    #[track_caller]
    fn check(arguments: &[&str], what: &str, help: &str) {
        let verb = Command::new("graph").arg(Arg::new("SOURCE").required(true).num_args(1..));
        let program = Command::new("lakebed").subcommand_required(true).subcommand(verb);
        let fault = program.try_get_matches_from(arguments).unwrap_err();
        let error = super::error(&fault);
        assert_eq!((error.to_string().as_str(), error.remedy().1.as_str()), (what, help));
    }

    #[test]
    fn paragraphs_become_one_line_of_what_is_wrong_and_one_of_what_to_do() {
        check(
            &["lakebed", "grap"],
            "read the command line: unrecognized subcommand 'grap'",
            "a similar subcommand exists: 'graph'; usage: lakebed <COMMAND>; see `--help`",
        );
        check(
            &["lakebed", "graph"],
            "read the command line: the following required arguments were not provided: <SOURCE>...",
            "usage: lakebed graph <SOURCE>...; see `--help`",
        );
    }
}
