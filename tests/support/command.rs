//! The `lakebed` command as tests start it: built with them, so it is never an older one.

use std::process::ExitCode;

fn main() -> ExitCode {
    lakebed::cli::main()
}
