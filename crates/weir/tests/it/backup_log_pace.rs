//! The log that a backup needs from before it began may be a whole one: it is copied a stretch at a
//! time, between pages.
use weir::{BackupOptions, Config, Durability, SimVolume};

use crate::backup::{STORES, config, contents, made, restored};
use crate::support::assert_sound;

/// With the pages of a turn, at most, of what was logged before.
const TURN_BYTES: u64 = 2 << 20;

#[test]
fn an_old_log_is_copied_a_stretch_at_a_time() {
    for store in STORES {
        let volume = SimVolume::new(21);
        let config = Config { log_bytes: 64 << 20, pool_bytes: 64 << 20, ..config(store) };
        let db = made(&volume, config);
        let tree = db.create_tree("t").expect("a tree");
        for round in 0..24u32 {
            for n in 0..1_000u32 {
                let value = vec![round as u8; 700];
                tree.put(&n.to_be_bytes(), &value, Durability::Lazy).expect("a put");
            }
        }
        db.sync().expect("durable");
        let (mut out, mut said) = (Vec::new(), Vec::new());
        let done = db
            .backup(&mut out, &BackupOptions::default(), &mut |at| {
                said.push(at.bytes);
                true
            })
            .expect("backed up")
            .expect("whole");
        assert!(done.log_bytes > 16 << 20, "{store:?}: {done:?}");
        let steps = said.windows(2).map(|two| two[1] - two[0]);
        let most = steps.max().expect("some");
        assert!(most < TURN_BYTES, "{store:?}: {most} bytes at once of {}", done.bytes);
        // The rest, at its end, is no more than is always left to the end.
        let last = done.bytes - said.last().expect("some");
        assert!(last < 8 << 20, "{store:?}: {last} bytes at the end");
        let copy = restored(&[&out]);
        assert_sound(&copy);
        assert!(contents(&copy) == contents(&db), "{store:?}");
    }
}
