//! Any bytes as a control file: a verdict, and never a control block that was not written whole.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_base::checksum;
use weir_checkpoint::{Control, ControlError, Copy, choose};

const COPY_BYTES: usize = 512;
const CHECKED_BYTES: usize = 124;

fuzz_target!(|input: &[u8]| {
    let first = Control::decode(input);
    let mut sealed = input.to_vec();
    sealed.resize(COPY_BYTES, 0);
    // A checksum that fits, which a fuzzer would not guess.
    let crc = checksum(&sealed[..CHECKED_BYTES]);
    sealed[CHECKED_BYTES..CHECKED_BYTES + 4].copy_from_slice(&crc.to_le_bytes());
    let second = Control::decode(&sealed);
    assert_ne!(second, Copy::Damaged, "the checksum fits");
    match (choose(&first, &second), &first, &second) {
        (Ok(chosen), Copy::Good(a), _) if chosen == *a => {}
        (Ok(chosen), _, Copy::Good(b)) if chosen == *b => {}
        (Ok(_), ..) => panic!("chose a control block that neither copy holds"),
        (Err(ControlError::Foreign), a, b) => {
            assert!(*a == Copy::Foreign && *b == Copy::Foreign);
        }
        (Err(_), ..) => {}
    }
});
