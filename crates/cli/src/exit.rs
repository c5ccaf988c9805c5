//! The exit codes.
/// All is well. (CLI-1)
pub(crate) const EXIT_OK: u8 = 0;
/// It ran, and what it found is not well: problems in a check, a run that could not be verified, a
/// key that is not there.
pub(crate) const EXIT_FINDINGS: u8 = 1;
/// It could not run: bad input, no database there, a device that fails. (clap uses the same.)
pub(crate) const EXIT_CANNOT: u8 = 2;
/// Ended by Ctrl-C, as shells have it: 128 + SIGINT.
pub(crate) const EXIT_INTERRUPTED: u8 = 130;
