//! Any text as a size or a disk: an answer or an error; and what was read, written out and read
//! again, is the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_base::{format_size, parse_size};
use weir_device::DiskSpec;

fuzz_target!(|text: &str| {
    // From 1 PiB on format_size uses a unit that parse_size does not read.
    if let Some(bytes) = parse_size(text).ok().filter(|&bytes| bytes < 1 << 50) {
        assert!(parse_size(&format_size(bytes)).is_ok(), "{bytes}");
    }
    if let Ok(spec) = text.parse::<DiskSpec>() {
        let again: DiskSpec = spec.to_string().parse().expect("a disk reads its own description");
        assert_eq!(again, spec, "{text}");
    }
});
