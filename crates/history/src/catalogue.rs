//! The named anomalies as scripts. Keys 1 and 2 have rows, others have none.

use crate::anomaly::Anomaly::{G0, G1a, G1b, G1c, G2, G2Item, GSingle, LostUpdate, Otv, Pmp};
use crate::record::{Key, Lock};
use crate::script::Outcome::{Passes, Refuses, Shows, Waits};
use crate::script::Step::{Back, Commit, Delete, Insert, Put, Rollback, Savepoint};
use crate::script::{Outcome, Script, Step};

const fn get(key: Key) -> Step {
    Step::Get(key, Lock::None)
}
const fn get_for_share(key: Key) -> Step {
    Step::Get(key, Lock::Share)
}
const fn get_for_update(key: Key) -> Step {
    Step::Get(key, Lock::Update)
}
/// A range without rows at first.
const SCAN: Step = Step::Scan(10, 20, Lock::None);
const SCAN_FOR_SHARE: Step = Step::Scan(10, 20, Lock::Share);
const SCAN_FOR_UPDATE: Step = Step::Scan(10, 20, Lock::Update);
/// A range with both rows.
const SCAN_ROWS: Step = Step::Scan(1, 3, Lock::None);

const fn script(
    name: &'static str,
    steps: &'static [(usize, Step)],
    expect: [Outcome; 5],
) -> Script {
    Script { name, setup: &[1, 2], steps, expect }
}

// Read as columns: READ UNCOMMITTED, READ COMMITTED, REPEATABLE READ, SNAPSHOT, SERIALIZABLE.

/// All scripts, each to be played at each level.
pub const CATALOGUE: &[Script] = &[
    script(
        "G0: two writers of two rows",
        &[(1, Put(1)), (2, Put(1)), (1, Put(2)), (1, Commit), (2, Put(2)), (2, Commit)],
        [Waits, Waits, Waits, Refuses, Waits],
    ),
    script(
        "G1a: a read of what is then rolled back",
        &[(1, Put(1)), (2, get(1)), (1, Rollback), (2, get(1)), (2, Commit)],
        [Shows(G1a), Passes, Passes, Passes, Waits],
    ),
    script(
        "G1a: a row whose removal is then rolled back",
        &[(1, Delete(1)), (2, get(1)), (1, Rollback), (2, Commit)],
        [Shows(G1a), Passes, Passes, Passes, Waits],
    ),
    script(
        "G1a: a read of what a savepoint rolls back",
        &[
            (1, Put(2)),
            (1, Savepoint),
            (1, Put(1)),
            (2, get(1)),
            (1, Back),
            (1, Commit),
            (2, Commit),
        ],
        [Shows(G1a), Passes, Passes, Passes, Waits],
    ),
    script(
        "G1b: a read of what is then replaced",
        &[(1, Put(1)), (2, get(1)), (1, Put(1)), (1, Commit), (2, Commit)],
        [Shows(G1b), Passes, Passes, Passes, Waits],
    ),
    script(
        "G1c: each reads what the other is writing",
        &[(1, Put(1)), (2, Put(2)), (1, get(2)), (2, get(1)), (1, Commit), (2, Commit)],
        // The transaction that does not see the other's write has seen what it overwrote.
        [Shows(G1c), Shows(G2Item), Shows(G2Item), Shows(G2Item), Refuses],
    ),
    script(
        "OTV: a second writer is seen, and then is not",
        &[
            (1, Put(1)),
            (1, Put(2)),
            (2, Put(1)),
            (1, Commit),
            (3, get(1)),
            (3, get(2)),
            (2, Put(2)),
            (2, Commit),
            (3, Commit),
        ],
        [Shows(Otv), Waits, Waits, Refuses, Waits],
    ),
    script(
        "PMP: an empty range, and then its writer",
        &[(1, SCAN), (2, Insert(11)), (2, Put(1)), (2, Commit), (1, get(1)), (1, Commit)],
        [Shows(Pmp), Shows(Pmp), Passes, Passes, Waits],
    ),
    script(
        "PMP: a range read twice",
        &[(1, SCAN), (2, Insert(11)), (2, Commit), (1, SCAN), (1, Commit)],
        [Shows(Pmp), Shows(Pmp), Passes, Passes, Waits],
    ),
    script(
        "PMP: a range locked for share and read twice",
        &[(1, SCAN_FOR_SHARE), (2, Insert(11)), (2, Commit), (1, SCAN_FOR_SHARE), (1, Commit)],
        [Shows(Pmp), Shows(Pmp), Waits, Waits, Waits],
    ),
    script(
        "P4: read, and write on top of another's update",
        &[(1, get(1)), (2, get(1)), (1, Put(1)), (2, Put(1)), (1, Commit), (2, Commit)],
        [Shows(LostUpdate), Shows(LostUpdate), Shows(LostUpdate), Refuses, Refuses],
    ),
    script(
        "P4: the same with for update",
        &[
            (1, get_for_update(1)),
            (2, get_for_update(1)),
            (1, Put(1)),
            (1, Commit),
            (2, Put(1)),
            (2, Commit),
        ],
        [Waits, Waits, Waits, Refuses, Waits],
    ),
    script(
        "P4: the same with for share",
        &[
            (1, get_for_share(1)),
            (2, get_for_share(1)),
            (1, Put(1)),
            (2, Put(1)),
            (1, Commit),
            (2, Commit),
        ],
        [Refuses; 5],
    ),
    script(
        "G-single: one row from before, one from after",
        &[(1, get(1)), (2, Put(1)), (2, Put(2)), (2, Commit), (1, get(2)), (1, Commit)],
        [Shows(GSingle), Shows(GSingle), Passes, Passes, Waits],
    ),
    script(
        "G-single: a row that is removed between two reads",
        &[(1, SCAN_ROWS), (2, Delete(1)), (2, Commit), (1, SCAN_ROWS), (1, Commit)],
        [Shows(GSingle), Shows(GSingle), Passes, Passes, Waits],
    ),
    script(
        "G-single: read one row, write the other",
        &[(1, get(1)), (2, Put(1)), (2, Put(2)), (2, Commit), (1, Put(2)), (1, Commit)],
        [Shows(GSingle), Shows(GSingle), Shows(GSingle), Refuses, Waits],
    ),
    script(
        "OTV: a locking read between two plain ones",
        &[
            (1, get(2)),
            (2, Put(1)),
            (2, Put(2)),
            (2, Commit),
            (1, get_for_update(1)),
            (1, get(2)),
            (1, Commit),
        ],
        // At REPEATABLE READ the locking read sees the latest row, the plain one the snapshot.
        [Shows(GSingle), Shows(GSingle), Shows(Otv), Refuses, Refuses],
    ),
    script(
        "G2-item: each reads both and writes one",
        &[(1, SCAN_ROWS), (2, SCAN_ROWS), (1, Put(1)), (2, Put(2)), (1, Commit), (2, Commit)],
        [Shows(G2Item), Shows(G2Item), Shows(G2Item), Shows(G2Item), Refuses],
    ),
    script(
        "G2-item: the same with for share",
        &[
            (1, get_for_share(1)),
            (1, get_for_share(2)),
            (2, get_for_share(1)),
            (2, get_for_share(2)),
            (1, Put(1)),
            (2, Put(2)),
            (1, Commit),
            (2, Commit),
        ],
        [Refuses; 5],
    ),
    script(
        "G2-item: a reader makes it so",
        &[
            (1, get(1)),
            (1, get(2)),
            (2, get(2)),
            (2, Put(2)),
            (2, Commit),
            (3, get(1)),
            (3, get(2)),
            (3, Commit),
            (1, Put(1)),
            (1, Commit),
        ],
        [Shows(G2Item), Shows(G2Item), Shows(G2Item), Shows(G2Item), Waits],
    ),
    script(
        "G2: each finds a range empty and inserts",
        &[(1, SCAN), (2, SCAN), (1, Insert(11)), (2, Insert(12)), (1, Commit), (2, Commit)],
        [Shows(G2), Shows(G2), Shows(G2), Shows(G2), Refuses],
    ),
    script(
        "G2: the same with for share",
        &[
            (1, SCAN_FOR_SHARE),
            (2, SCAN_FOR_SHARE),
            (1, Insert(11)),
            (2, Insert(12)),
            (1, Commit),
            (2, Commit),
        ],
        [Shows(G2), Shows(G2), Refuses, Refuses, Refuses],
    ),
    script(
        "G2: the same with for update",
        &[
            (1, SCAN_FOR_UPDATE),
            (2, SCAN_FOR_UPDATE),
            (1, Insert(11)),
            (1, Commit),
            (2, Insert(12)),
            (2, Commit),
        ],
        [Shows(G2), Shows(G2), Waits, Refuses, Waits],
    ),
    script(
        "an insert waits for one that is rolled back",
        &[(1, Insert(3)), (2, Insert(3)), (1, Rollback), (2, Commit)],
        [Waits; 5],
    ),
    script(
        "an insert waits for one that is committed",
        &[(1, Insert(3)), (2, Insert(3)), (1, Commit), (2, Commit)],
        [Waits, Waits, Waits, Refuses, Waits],
    ),
    script(
        "a write waits for a removal",
        &[(1, Delete(1)), (2, Put(1)), (1, Commit), (2, get(1)), (2, Commit)],
        [Waits, Waits, Waits, Refuses, Waits],
    ),
    script(
        "a write over a row that the snapshot does not show",
        &[(1, get(1)), (2, Insert(3)), (2, Commit), (1, Put(3)), (1, get(3)), (1, Commit)],
        [Passes, Passes, Passes, Refuses, Passes],
    ),
    script(
        "readers of a snapshot do not wait",
        &[(1, SCAN_ROWS), (2, Put(1)), (2, Delete(2)), (1, SCAN_ROWS), (1, Commit), (2, Commit)],
        [Shows(GSingle), Passes, Passes, Passes, Waits],
    ),
    script(
        "writers of different rows do not meet",
        &[(1, Put(1)), (2, Put(2)), (1, Commit), (2, Commit)],
        [Passes; 5],
    ),
];

/// What no level lets happen shows up in no expectation.
const _: () = {
    let mut at = 0;
    while at < CATALOGUE.len() {
        let mut level = 0;
        while level < 5 {
            assert!(!matches!(CATALOGUE[at].expect[level], Shows(G0)), "no level allows G0");
            level += 1;
        }
        at += 1;
    }
};
