//! How a call ended: a code, and words for it that are kept for the thread.
use std::cell::RefCell;
use std::ffi::{CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

use weir::{LockError, TxnError};

/// How a call ended.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum weir_code {
    /// It was done.
    WEIR_OK = 0,
    /// There is nothing there, or nothing more. Not a failure.
    WEIR_NOTHING = 1,
    /// There is a row with this key already. Nothing was changed.
    WEIR_DUPLICATE = 2,
    /// The transaction was chosen to end a deadlock: it has been rolled back as a whole.
    WEIR_DEADLOCK = 3,
    /// The limit for waiting for a lock has passed.
    WEIR_LOCK_TIMEOUT = 4,
    /// It would have had to wait for a lock, and was not allowed to.
    WEIR_WOULD_WAIT = 5,
    /// The wait for a lock, or what takes long, was interrupted.
    WEIR_INTERRUPTED = 6,
    /// At snapshot isolation: another transaction changed the row after the snapshot.
    WEIR_CONFLICT = 7,
    /// The definition of the table is not what the handle, or the snapshot, knows.
    WEIR_CHANGED = 8,
    /// There are no auto-increment numbers left.
    WEIR_EXHAUSTED = 9,
    /// There is something of this name already.
    WEIR_EXISTS = 10,
    /// The transaction would need more undo than the log can hold.
    WEIR_TOO_LARGE = 11,
    /// An argument, key, name or setting that is not possible.
    WEIR_INPUT = 12,
    /// The disk is full.
    WEIR_DISK_FULL = 13,
    /// Something stored is not what was written.
    WEIR_DAMAGED = 14,
    /// The engine has halted after a failure of the device.
    WEIR_HALTED = 15,
    /// The device or the operating system refused.
    WEIR_IO = 16,
    /// The transaction has ended already.
    WEIR_ENDED = 17,
    /// A bug of the engine. Every later call in this process is refused with the same.
    WEIR_PANIC = 18,
    /// The database has been closed, or was opened before this process was forked; this handle of
    /// it can only be given back.
    WEIR_CLOSED = 19,
    /// Locks take all the memory that they may, and this transaction has many. What it has done so
    /// far is as it was.
    WEIR_TOO_MANY_LOCKS = 20,
    /// The database has been opened to be read alone (weir_options.read_only, force_recovery):
    /// nothing can be changed.
    WEIR_READ_ONLY = 21,
}

use weir_code::{
    WEIR_CHANGED, WEIR_CLOSED, WEIR_CONFLICT, WEIR_DAMAGED, WEIR_DEADLOCK, WEIR_DISK_FULL,
    WEIR_DUPLICATE, WEIR_ENDED, WEIR_EXHAUSTED, WEIR_EXISTS, WEIR_HALTED, WEIR_INPUT,
    WEIR_INTERRUPTED, WEIR_IO, WEIR_LOCK_TIMEOUT, WEIR_NOTHING, WEIR_OK, WEIR_PANIC,
    WEIR_READ_ONLY, WEIR_TOO_LARGE, WEIR_TOO_MANY_LOCKS, WEIR_WOULD_WAIT,
};

/// A failure: its code and its words.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: weir_code,
    pub(crate) message: String,
}

pub(crate) type Done = Result<weir_code, Failure>;

/// What a lookup found.
pub(crate) fn found(is: bool) -> weir_code {
    if is { WEIR_OK } else { WEIR_NOTHING }
}

pub(crate) fn wrong(what: impl Into<String>) -> Failure {
    Failure { code: WEIR_INPUT, message: what.into() }
}

impl From<weir::Error> for Failure {
    fn from(e: weir::Error) -> Self {
        let code = match &e {
            weir::Error::Config(_)
            | weir::Error::Directory(_)
            | weir::Error::Name(_)
            | weir::Error::Key(_)
            | weir::Error::Position(_)
            | weir::Error::Foreign(_)
            | weir::Error::Input(_) => WEIR_INPUT,
            weir::Error::DiskFull(_) => WEIR_DISK_FULL,
            weir::Error::Damaged(_) => WEIR_DAMAGED,
            weir::Error::Halted(_) => WEIR_HALTED,
            weir::Error::ReadOnly | weir::Error::ForcedRecovery(_) => WEIR_READ_ONLY,
            weir::Error::Closed | weir::Error::Forked => WEIR_CLOSED,
            weir::Error::Io { .. } => WEIR_IO,
            weir::Error::Duplicate => WEIR_DUPLICATE,
            weir::Error::NoTree(_) => WEIR_CHANGED,
            weir::Error::Transaction(e) => of_transaction(e),
        };
        Failure { code, message: e.to_string() }
    }
}

fn of_transaction(e: &TxnError) -> weir_code {
    match e {
        TxnError::Lock(LockError::Deadlock { .. }) => WEIR_DEADLOCK,
        TxnError::Lock(LockError::TimedOut { .. }) => WEIR_LOCK_TIMEOUT,
        TxnError::Lock(LockError::WouldWait { .. }) => WEIR_WOULD_WAIT,
        TxnError::Lock(LockError::Killed) => WEIR_INTERRUPTED,
        TxnError::Lock(LockError::Dropped) => WEIR_CHANGED,
        TxnError::TooLarge { .. } | TxnError::NumbersUsedUp { .. } => WEIR_TOO_LARGE,
        TxnError::TooManyLocks { .. } => WEIR_TOO_MANY_LOCKS,
        TxnError::Duplicate => WEIR_DUPLICATE,
        TxnError::Conflict => WEIR_CONFLICT,
        TxnError::Ended => WEIR_ENDED,
        // All of them have codes of their own by the time they get here.
        TxnError::Tree(_) | TxnError::Redo(_) | TxnError::RollbackFailed { .. } => WEIR_HALTED,
    }
}

impl From<weir_table::Error> for Failure {
    fn from(e: weir_table::Error) -> Self {
        use weir_table::Error;
        let code = match e {
            Error::Store(e) => return e.into(),
            Error::Duplicate { .. } => WEIR_DUPLICATE,
            Error::NoTable(_) | Error::NoIndex(_) => WEIR_NOTHING,
            Error::TableExists(_) | Error::IndexExists(_) => WEIR_EXISTS,
            Error::Changed => WEIR_CHANGED,
            Error::Definition(_) | Error::Input(_) => WEIR_INPUT,
            Error::Exhausted => WEIR_EXHAUSTED,
            Error::Interrupted => WEIR_INTERRUPTED,
            Error::Damaged(_) => WEIR_DAMAGED,
        };
        Failure { code, message: e.to_string() }
    }
}

thread_local! {
    static MESSAGE: RefCell<CString> = RefCell::default();
}

/// A bug was met: what it has left half done is unknown.
static BROKEN: AtomicBool = AtomicBool::new(false);

/// Runs the body of a function of the interface. Nothing unwinds out of it.
pub(crate) fn run(body: impl FnOnce() -> Done) -> weir_code {
    run_with(&BROKEN, body)
}

fn run_with(broken: &AtomicBool, body: impl FnOnce() -> Done) -> weir_code {
    if broken.load(Ordering::Relaxed) {
        say("the engine has met a bug of its own before; start the program again");
        return WEIR_PANIC;
    }
    // What a panic leaves half done is not looked at any more: `broken` sees to it.
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(code)) => code,
        Ok(Err(failure)) => {
            say(&failure.message);
            failure.code
        }
        Err(panic) => {
            broken.store(true, Ordering::SeqCst);
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
            say(&format!("a bug of the engine: {}", text.unwrap_or("no more is known")));
            WEIR_PANIC
        }
    }
}

fn say(text: &str) {
    let text = CString::new(text.replace('\0', " ")).unwrap_or_default();
    MESSAGE.with(|message| *message.borrow_mut() = text);
}

/// Words for the last code but WEIR_OK and WEIR_NOTHING that a function has given to this thread;
/// good until its next call. Never NULL.
#[unsafe(no_mangle)]
pub extern "C" fn weir_message() -> *const c_char {
    MESSAGE.with(|message| message.borrow().as_ptr())
}

#[cfg(test)]
mod tests {
    use std::ffi::CStr;

    use super::*;

    fn message() -> String {
        // SAFETY: weir_message returns a C string that lives until this thread's next call.
        let text = unsafe { CStr::from_ptr(weir_message()) };
        text.to_str().expect("UTF-8").to_string()
    }

    #[test]
    fn a_panic_becomes_a_code_and_nothing_runs_after_it() {
        let broken = AtomicBool::new(false);
        assert_eq!(run_with(&broken, || Ok(WEIR_NOTHING)), WEIR_NOTHING);
        assert_eq!(run_with(&broken, || panic!("a planted bug")), WEIR_PANIC);
        assert_eq!(message(), "a bug of the engine: a planted bug");
        let mut ran = false;
        let code = run_with(&broken, || {
            ran = true;
            Ok(WEIR_OK)
        });
        assert_eq!((code, ran), (WEIR_PANIC, false));
    }

    #[test]
    fn words_are_kept_whatever_they_hold() {
        let broken = AtomicBool::new(false);
        assert_eq!(run_with(&broken, || Err(wrong("a\0b"))), WEIR_INPUT);
        assert_eq!(message(), "a b");
    }
}
