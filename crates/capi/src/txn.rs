//! Transactions.
use std::cell::UnsafeCell;
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use smallvec::SmallVec;
use weir::{Commit, Db, Isolation, Lsn, Savepoint, TxnId, TxnOptions, Wait};

use crate::borrow::{give, place, put, shared, taken, weir_bytes};
use crate::db::{durability, weir_db};
use crate::outcome::{Failure, run, weir_code, wrong};

/// What a transaction sees of others.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum weir_isolation {
    /// Also what is not committed.
    WEIR_READ_UNCOMMITTED = 0,
    /// What is committed when a read (or statement: weir_txn_begin_statement) begins.
    WEIR_READ_COMMITTED = 1,
    /// Reads come from one snapshot; locking reads and writes work on what is committed now.
    WEIR_REPEATABLE_READ = 2,
    /// As above, and writing what another transaction changed after the snapshot fails with
    /// WEIR_CONFLICT.
    WEIR_SNAPSHOT = 3,
    /// All reads lock what they read.
    WEIR_SERIALIZABLE = 4,
}

/// How a read locks.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum weir_lock {
    /// As the isolation level says, at most levels not at all.
    WEIR_LOCK_NONE = 0,
    /// What is committed last, with a lock that others may share.
    WEIR_LOCK_SHARE = 1,
    /// What is committed last, with a lock for this transaction alone.
    WEIR_LOCK_UPDATE = 2,
}

/// A lock is waited for without end.
pub const WEIR_WAIT_FOREVER: u64 = u64::MAX;

/// A transaction. One thread at a time uses it.
pub struct weir_txn {
    db: Db,
    /// Its number in the engine, once it may wait for locks. 0: none yet.
    number: AtomicU64,
    interrupted: AtomicBool,
    inner: UnsafeCell<Inner>,
}

pub(crate) struct Inner {
    pub(crate) txn: weir::Txn,
    /// A statement has one; few transactions have more.
    savepoints: SmallVec<[Savepoint; 2]>,
    /// What the last read through a tree has found.
    pub(crate) value: Vec<u8>,
}

impl weir_txn {
    pub(crate) fn into_inner(self) -> weir::Txn {
        self.inner.into_inner().txn
    }

    /// # Safety
    /// No other caller uses the transaction now, except to interrupt it.
    #[allow(clippy::mut_from_ref)] // That is what the cell is for.
    pub(crate) unsafe fn inner(&self) -> &mut Inner {
        // SAFETY: the caller's; weir_txn_interrupt does not look in here.
        unsafe { &mut *self.inner.get() }
    }

    /// As [`weir_txn::inner`], before a read without a lock asked for: where the level locks what
    /// it reads, it may wait.
    ///
    /// # Safety
    /// As [`weir_txn::inner`].
    #[allow(clippy::mut_from_ref)]
    pub(crate) unsafe fn inner_to_read(&self) -> Result<&mut Inner, Failure> {
        // SAFETY: the caller's; one reference is gone before the other is made.
        unsafe {
            if self.inner().txn.isolation() == Isolation::Serializable {
                return self.inner_to_wait();
            }
            Ok(self.inner())
        }
    }

    /// As [`weir_txn::inner`], before something that may wait for a lock.
    ///
    /// # Safety
    /// As [`weir_txn::inner`].
    #[allow(clippy::mut_from_ref)]
    pub(crate) unsafe fn inner_to_wait(&self) -> Result<&mut Inner, Failure> {
        // SAFETY: the caller's.
        let inner = unsafe { self.inner() };
        if self.number.load(Ordering::Relaxed) == 0 {
            let number = inner.txn.number()?;
            // The caller that interrupts sets its mark first and looks at the number then; here it
            // is the other way round, so one of the two ends the wait.
            self.number.store(number.0, Ordering::SeqCst);
            if self.interrupted.load(Ordering::SeqCst) {
                self.db.cancel_lock_wait(number);
            }
        }
        Ok(inner)
    }
}

pub(crate) fn wait(millis: u64) -> Wait {
    match millis {
        0 => Wait::No,
        WEIR_WAIT_FOREVER => Wait::Until(Duration::MAX),
        millis => Wait::Until(Duration::from_millis(millis)),
    }
}

/// Begins a transaction; it costs nothing until it does something. `isolation` is a weir_isolation;
/// a lock is waited for at most `lock_wait_millis`, 0 for not at all.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_txn_begin(
    db: *const weir_db,
    isolation: u32,
    lock_wait_millis: u64,
    out: *mut *mut weir_txn,
) -> weir_code {
    run(|| {
        let isolation = match isolation {
            0 => Isolation::ReadUncommitted,
            1 => Isolation::ReadCommitted,
            2 => Isolation::RepeatableRead,
            3 => Isolation::Snapshot,
            4 => Isolation::Serializable,
            other => return Err(wrong(format!("{other} is no weir_isolation"))),
        };
        // SAFETY: the contract of `borrow`.
        let db = unsafe { shared(db)? }.db.clone();
        let txn = db.begin(TxnOptions { isolation, lock_wait: wait(lock_wait_millis) });
        let inner = Inner { txn, savepoints: SmallVec::new(), value: Vec::new() };
        let (number, interrupted) = (AtomicU64::new(0), AtomicBool::new(false));
        // SAFETY: the contract of `borrow`.
        unsafe { give(out, weir_txn { db, number, interrupted, inner: UnsafeCell::new(inner) })? };
        Ok(weir_code::WEIR_OK)
    })
}

/// Commits; others see the changes when it returns, which it does when they are as durable as
/// `durability`, a weir_durability, says. The handle is gone, whatever is returned.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_txn_commit(txn: *mut weir_txn, durability: u32) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let txn = unsafe { taken(txn) }.ok_or_else(|| wrong("a handle is NULL"))?;
        txn.into_inner().commit_durably(self::durability(durability)?)?;
        Ok(weir_code::WEIR_OK)
    })
}

/// Commits, and does not wait: others see the changes when it returns, and they are durable when
/// weir_wait has returned for the `position` that is put out. The handle is gone.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_txn_commit_visible(
    txn: *mut weir_txn,
    position: *mut u64,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let txn = unsafe { taken(txn) }.ok_or_else(|| wrong("a handle is NULL"))?;
        place(position)?;
        let commit = txn.into_inner().commit()?;
        // SAFETY: the contract of `borrow`.
        unsafe { put(position, commit.end().map_or(0, |end| end.0))? };
        Ok(weir_code::WEIR_OK)
    })
}

/// The commit of a position that was put out; 0: it changed nothing.
fn commit_at(position: u64) -> Commit {
    Commit::at((position > 0).then_some(Lsn(position)))
}

/// Waits until a commit is as durable as asked. Commits become durable in their order.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_wait(
    db: *const weir_db,
    position: u64,
    durability: u32,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let db = unsafe { shared(db)? };
        db.db.wait(commit_at(position), self::durability(durability)?)?;
        Ok(weir_code::WEIR_OK)
    })
}

/// Waits until the device has a commit, which a flush of the device's makes durable then, for
/// whichever file (weir_is_synced_with). WEIR_WRITTEN promises less: the system's cache may keep
/// it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_wait_for_device(db: *const weir_db, position: u64) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        unsafe { shared(db)? }.db.wait_for_device(commit_at(position))?;
        Ok(weir_code::WEIR_OK)
    })
}

/// Whether the sync of a file elsewhere, which only grows, also makes durable whatever of the log
/// the device had (weir_wait_for_device) before it grew; and after a power failure the
/// file is not found longer without it. `device` is the st_dev of that file. false where no caller
/// can tell.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_is_synced_with(db: *const weir_db, device: u64) -> bool {
    // SAFETY: the contract of `borrow`.
    unsafe { shared(db) }.is_ok_and(|db| db.db.is_synced_with(device))
}

/// Says that such a sync, begun after weir_wait_for_device had returned for `position`, has gone
/// well.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_synced_by_another(db: *const weir_db, position: u64) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        unsafe { shared(db)? }.db.synced_by_another(commit_at(position))?;
        Ok(weir_code::WEIR_OK)
    })
}

/// Called once for a commit: WEIR_OK when it is durable, or why it is unknown whether it ever will
/// be. It must not wait for anything, and must not unwind.
pub type weir_durable = Option<unsafe extern "C" fn(context: *mut c_void, code: weir_code)>;

/// Has `then` called, once, when a commit (its `position`, as weir_txn_commit_visible puts it out)
/// is on stable storage. The calling thread calls it before this returns if that is so already, or
/// if no other thread waits for a commit, so that nothing is won by leaving it to another thread;
/// otherwise a thread of the engine's does, for many at a time. Not called if anything but WEIR_OK
/// is returned.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_when_durable(
    db: *const weir_db,
    position: u64,
    then: weir_durable,
    context: *mut c_void,
) -> weir_code {
    run(|| {
        let call = then.ok_or_else(|| wrong("there is no function to call"))?;
        // SAFETY: the contract of `borrow`.
        let db = unsafe { &shared(db)?.db };
        // An address, which the other side alone makes use of.
        let context = context as usize;
        db.when_durable(commit_at(position), move |outcome| {
            let code = outcome.map_or_else(|e| Failure::from(e).code, |()| weir_code::WEIR_OK);
            // SAFETY: the caller that gave the function said that any thread may call it with this.
            unsafe { call(context as *mut c_void, code) };
        });
        Ok(weir_code::WEIR_OK)
    })
}

/// Rolls everything back. The handle is gone, whatever is returned.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_txn_rollback(txn: *mut weir_txn) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let txn = unsafe { taken(txn) }.ok_or_else(|| wrong("a handle is NULL"))?;
        txn.into_inner().rollback()?;
        Ok(weir_code::WEIR_OK)
    })
}

/// Takes the snapshot now that the first read would take.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_txn_take_snapshot(txn: *const weir_txn) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        unsafe { shared(txn)?.inner() }.txn.take_snapshot();
        Ok(weir_code::WEIR_OK)
    })
}

/// Begins a statement: at WEIR_READ_COMMITTED, all its reads without locks come from one snapshot
/// taken now. An interruption that came too late for the statement before is forgotten.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_txn_begin_statement(txn: *const weir_txn) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let txn = unsafe { shared(txn)? };
        txn.interrupted.store(false, Ordering::SeqCst);
        // SAFETY: the contract of `borrow`.
        unsafe { txn.inner() }.txn.begin_statement();
        Ok(weir_code::WEIR_OK)
    })
}

/// Gives the snapshot of the statement up, so that it holds back no cleaning.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_txn_end_statement(txn: *const weir_txn) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        unsafe { shared(txn)?.inner() }.txn.end_statement();
        Ok(weir_code::WEIR_OK)
    })
}

/// How long it waits for a lock from now on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_txn_set_lock_wait(txn: *const weir_txn, millis: u64) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        unsafe { shared(txn)?.inner() }.txn.set_lock_wait(wait(millis));
        Ok(weir_code::WEIR_OK)
    })
}

/// At WEIR_REPEATABLE_READ: whether a write, or a read that locks, of a row that another
/// transaction has changed since the snapshot fails with WEIR_CONFLICT from now on, as at
/// WEIR_SNAPSHOT; but the snapshot is that of the first read without a lock, and before that
/// nothing is too new.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_txn_set_first_updater_wins(
    txn: *const weir_txn,
    wins: bool,
) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        unsafe { shared(txn)?.inner() }.txn.set_first_updater_wins(wins);
        Ok(weir_code::WEIR_OK)
    })
}

/// Whether it has ended: a deadlock may have ended it. It is to be given back by weir_txn_rollback
/// then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_txn_has_ended(txn: *const weir_txn) -> bool {
    // SAFETY: the contract of `borrow`.
    unsafe { shared(txn).map(|txn| txn.inner().txn.has_ended()) }.unwrap_or(true)
}

/// Puts out a point for weir_table_release_locks.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_txn_lock_mark(txn: *const weir_txn, out: *mut usize) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let mark = unsafe { shared(txn)?.inner() }.txn.lock_mark();
        // SAFETY: the contract of `borrow`.
        unsafe { put(out, mark)? };
        Ok(weir_code::WEIR_OK)
    })
}

/// Makes a point to go back to. Later ones of a transaction have greater numbers; no other
/// transaction has the same.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_txn_savepoint(txn: *const weir_txn, out: *mut u64) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let inner = unsafe { shared(txn)?.inner() };
        let made = inner.txn.savepoint();
        inner.savepoints.push(made);
        // SAFETY: the contract of `borrow`.
        unsafe { put(out, made.number())? };
        Ok(weir_code::WEIR_OK)
    })
}

/// Rolls back what was changed since the point, which is kept; later ones are gone. Explicit locks
/// are kept, too. WEIR_INPUT for a point that is gone, or of another transaction: nothing is rolled
/// back.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_txn_rollback_to(txn: *const weir_txn, savepoint: u64) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let inner = unsafe { shared(txn)?.inner() };
        let at = place_of(&inner.savepoints, savepoint)?;
        inner.txn.rollback_to(inner.savepoints[at])?;
        inner.savepoints.truncate(at + 1);
        Ok(weir_code::WEIR_OK)
    })
}

/// Which of them it is; one that the transaction does not have, or not any more, is refused.
fn place_of(savepoints: &[Savepoint], number: u64) -> Result<usize, Failure> {
    let at = savepoints.iter().rposition(|point| point.number() == number);
    at.ok_or_else(|| wrong(format!("the transaction has no savepoint {number}")))
}

/// Forgets a savepoint; others stay. WEIR_INPUT: the transaction does not have it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_txn_release(txn: *const weir_txn, savepoint: u64) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let inner = unsafe { shared(txn)?.inner() };
        let at = place_of(&inner.savepoints, savepoint)?;
        inner.savepoints.remove(at);
        Ok(weir_code::WEIR_OK)
    })
}

/// Ends the wait for a lock of a transaction, or its next one in this statement: the call that
/// waits fails with WEIR_INTERRUPTED. Any thread may call it while another one uses the
/// transaction.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_txn_interrupt(txn: *const weir_txn) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let txn = unsafe { shared(txn)? };
        txn.interrupted.store(true, Ordering::SeqCst);
        match txn.number.load(Ordering::SeqCst) {
            0 => {}
            number => txn.db.cancel_lock_wait(TxnId(number)),
        }
        Ok(weir_code::WEIR_OK)
    })
}

/// The transaction's number in the engine, as weir_locks shows it; 0 before it has locked or
/// changed anything. Any thread may ask while another one uses the transaction.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_txn_number(txn: *const weir_txn) -> u64 {
    // SAFETY: the contract of `borrow`.
    unsafe { txn.as_ref() }.map_or(0, |txn| txn.number.load(Ordering::Relaxed))
}

/// Copies what the transaction sees, without its own changes, into a new database in a directory
/// where there is none: whole and closed when this returns, while all transactions go on. Prepared
/// transactions are not in it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_txn_copy(txn: *const weir_txn, directory: weir_bytes) -> weir_code {
    run(|| {
        // SAFETY: the contract of `borrow`.
        let (txn, directory) = unsafe { (shared(txn)?, directory.text()?) };
        // SAFETY: the contract of `borrow`.
        let inner = unsafe { txn.inner() };
        txn.db.copy_to(&mut inner.txn, std::path::Path::new(directory))?;
        Ok(weir_code::WEIR_OK)
    })
}

#[cfg(test)]
mod tests {
    use std::ptr::{null, null_mut};

    use super::weir_code::{WEIR_INPUT, WEIR_NOTHING, WEIR_OK};
    use super::*;
    use crate::db::{weir_close, weir_open};
    use crate::tree::{weir_tree, weir_tree_close, weir_tree_get, weir_tree_open, weir_tree_put};

    #[test]
    fn a_savepoint_that_is_not_good_takes_nothing_back() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().to_str().expect("text").as_bytes();
        let (mut db, mut tree) = (null_mut(), null_mut());
        let (mut one, mut two) = (null_mut(), null_mut());
        let put = |tree: *const weir_tree, txn, key: &[u8]| {
            let (key, value) = (weir_bytes::of(key), weir_bytes::of(b"v"));
            // SAFETY: handles are those given below, bytes are borrowed.
            unsafe { weir_tree_put(tree, txn, key, value) }
        };
        let has = |tree: *const weir_tree, txn, key: &[u8]| {
            let mut value = weir_bytes::of(b"");
            // SAFETY: as above.
            match unsafe { weir_tree_get(tree, txn, weir_bytes::of(key), 0, &raw mut value) } {
                WEIR_OK => true,
                code => {
                    assert_eq!(code, WEIR_NOTHING);
                    false
                }
            }
        };
        // SAFETY: each handle is made by the call before and given back once, at the end.
        unsafe {
            assert_eq!(weir_open(weir_bytes::of(path), null(), &raw mut db), WEIR_OK);
            assert_eq!(weir_tree_open(db, weir_bytes::of(b"t"), true, &raw mut tree), WEIR_OK);
            for txn in [&raw mut one, &raw mut two] {
                assert_eq!(weir_txn_begin(db, 2, 0, txn), WEIR_OK);
            }
            let [mut first, mut second, mut foreign, mut later] = [0; 4];
            assert_eq!(weir_txn_savepoint(two, &raw mut foreign), WEIR_OK);
            assert_eq!(put(tree, one, b"a"), WEIR_OK);
            assert_eq!(weir_txn_rollback_to(one, foreign), WEIR_INPUT);
            assert_eq!(weir_txn_savepoint(one, &raw mut first), WEIR_OK);
            assert_eq!(put(tree, one, b"b"), WEIR_OK);
            assert_eq!(weir_txn_savepoint(one, &raw mut second), WEIR_OK);
            assert!(second > first);
            assert_eq!(weir_txn_rollback_to(one, first), WEIR_OK);
            assert_eq!(put(tree, one, b"c"), WEIR_OK);
            // Gone with what was rolled back; a number is not used again.
            assert_eq!(weir_txn_savepoint(one, &raw mut later), WEIR_OK);
            assert!(later > second);
            assert_eq!(weir_txn_rollback_to(one, second), WEIR_INPUT);
            assert_eq!(weir_txn_release(one, later), WEIR_OK);
            for gone in [later, second, foreign, 0, 1, u64::MAX] {
                assert_eq!(weir_txn_rollback_to(one, gone), WEIR_INPUT, "{gone}");
                assert_eq!(weir_txn_release(one, gone), WEIR_INPUT, "{gone}");
            }
            assert!(has(tree, one, b"a") && !has(tree, one, b"b") && has(tree, one, b"c"));
            assert_eq!(weir_txn_rollback_to(one, first), WEIR_OK);
            assert!(has(tree, one, b"a") && !has(tree, one, b"c"));
            assert_eq!(weir_txn_commit(one, 2), WEIR_OK);
            assert_eq!(weir_txn_rollback(two), WEIR_OK);
            weir_tree_close(tree);
            assert_eq!(weir_close(db), WEIR_OK);
        }
    }
}
