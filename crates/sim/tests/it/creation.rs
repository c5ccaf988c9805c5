//! A crash at every write of a creation: the next opening makes or finds an empty database.
use std::sync::Arc;

use weir::{ManualClock, SimVolume};
use weir_device::CrashMode;
use weir_sim::{Model, Setup, audit, recover};

#[test]
fn a_creation_cut_short_leaves_none_or_an_empty_one() {
    for page_size in [4096, 16384] {
        let setup = Setup::tiny(page_size);
        let clock = Arc::new(ManualClock::default());
        let whole = SimVolume::new(1);
        drop(recover(&setup, &whole, &clock).expect("a new database"));
        let steps = whole.writes_so_far();
        assert!(steps > 10, "{steps}");
        for after in 0..steps {
            for (mode, seeds) in
                [(CrashMode::LoseAll, 1), (CrashMode::KeepAll, 1), (CrashMode::Random, 12)]
            {
                for seed in 0..seeds {
                    let told = || format!("after {after} steps, {mode:?}, seed {seed}");
                    fastrand::seed(after);
                    let volume = SimVolume::new(1);
                    volume.set_crash_after(Some(after));
                    let opened = recover(&setup, &volume, &clock);
                    // The picture first: dropping a database closes it.
                    let found = volume.crash_with(mode, seed);
                    drop(opened);
                    let db = recover(&setup, &found, &clock)
                        .unwrap_or_else(|e| panic!("{}: {e}", told()));
                    let sound = audit(&db, &Model::new(page_size));
                    sound.unwrap_or_else(|e| panic!("{}: {e:#}", told()));
                    db.create_tree("tree 0").unwrap_or_else(|e| panic!("{}: {e}", told()));
                }
            }
        }
    }
}
