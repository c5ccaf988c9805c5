//! Compiles the shim for WiredTiger, when the feature of that name is asked for.

fn main() {
    #[cfg(feature = "wiredtiger")]
    {
        println!("cargo:rerun-if-changed=src/stores/wiredtiger_shim.c");
        cc::Build::new().file("src/stores/wiredtiger_shim.c").compile("wiredtiger_shim");
        println!("cargo:rustc-link-lib=wiredtiger");
    }
}
