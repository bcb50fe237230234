//! The `aegis` executable: everything is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    aegis::main(std::env::args_os())
}
