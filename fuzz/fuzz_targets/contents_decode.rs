//! Any bytes as what was written down of a stretch of the log: refused, or a stretch that is
//! written and read back as it is; and any such stretches are followed without a gap.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_base::Lsn;
use weir_recovery::{Stretch, followed};

fuzz_target!(|input: &[u8]| {
    let Some(stretch) = Stretch::decode(input) else { return };
    assert_eq!(Stretch::decode(&stretch.encode()), Some(stretch.clone()));
    assert!(stretch.pages.is_sorted_by(|a, b| a.page < b.page));
    let next = Stretch {
        start: stretch.end,
        end: stretch.end.advanced(1),
        before: stretch.digest,
        ..stretch.clone()
    };
    let all = vec![next, stretch.clone(), stretch];
    for checkpoint in [Lsn::ZERO, all[1].origin, all[1].start, all[0].start, Lsn::MAX] {
        let chain = followed(all.clone(), checkpoint);
        assert!(chain.windows(2).all(|two| two[0].end == two[1].start));
        assert!(chain.iter().all(|s| s.start >= checkpoint && s.origin <= checkpoint));
    }
});
