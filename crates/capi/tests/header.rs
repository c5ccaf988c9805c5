//! `include/weir.h` is what cbindgen makes of the sources. `WEIR_BLESS=1` writes it anew.
use std::path::Path;

#[test]
fn the_header_says_what_the_code_says() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(here.join("cbindgen.toml")).expect("a configuration");
    let bindings = cbindgen::Builder::new().with_crate(here).with_config(config).generate();
    let mut made = Vec::new();
    bindings.expect("the sources can be read").write(&mut made);
    let path = here.join("include/weir.h");
    if std::env::var_os("WEIR_BLESS").is_some() {
        std::fs::write(&path, &made).expect("the header can be written");
    }
    let committed = std::fs::read(&path).expect("the header is committed");
    let same = made == committed;
    assert!(same, "weir.h has drifted; make it anew: WEIR_BLESS=1 cargo test -p weir-capi");
}
