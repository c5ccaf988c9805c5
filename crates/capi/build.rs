//! The shared library says which interface it has: programs ask for `libweir.so.0.1`, the name that
//! `make install` gives it. While the version begins with 0 its second number changes when the
//! interface does. A build script speaks to cargo by printing.
fn main() {
    let part = |name| std::env::var(name).unwrap_or_default();
    let (major, minor) = (part("CARGO_PKG_VERSION_MAJOR"), part("CARGO_PKG_VERSION_MINOR"));
    let number = if major == "0" { format!("0.{minor}") } else { major };
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libweir.so.{number}");
    println!("cargo::rerun-if-changed=build.rs");
}
