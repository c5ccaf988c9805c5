//! Isolation, judged by `weir-history`: the named anomalies as scripts at each level, and random
//! histories, recorded and checked for circles.
mod chains;
mod crash;
mod engine;
mod random;
mod scripts;
