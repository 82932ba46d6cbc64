//! The program `regrow`.

use std::process::ExitCode;

/// Control messages are made on one thread and dropped on another, which the system's allocator
/// takes badly.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    regrow::built_in_program().run()
}
