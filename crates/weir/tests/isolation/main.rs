//! Isolation, judged by `weir-history`: the named anomalies as scripts at each level, and random
//! histories, recorded and checked for circles.
mod chains;
mod crash;
mod engine;
mod random;
mod scripts;

/// Debug builds check as much as a few seconds allow, unless `WEIR_LONG` is set.
fn effort(few: u64, many: u64) -> u64 {
    let is_long = !cfg!(debug_assertions) || std::env::var_os("WEIR_LONG").is_some();
    if is_long { many } else { few }
}
