//! The program `coroner`.

use std::process::ExitCode;

fn main() -> ExitCode {
    coroner::cli::run(std::env::args_os()).into()
}
