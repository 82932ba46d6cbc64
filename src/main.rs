//! The program `regrow`.

use std::process::ExitCode;

fn main() -> ExitCode {
    regrow::built_in_program().run()
}
