//! The `lakebed` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    lakebed::cli::main()
}
