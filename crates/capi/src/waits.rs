//! Notices of waits for locks.
use std::ffi::c_void;
use std::sync::Arc;

use weir::{TxnId, WaitListener};

use crate::borrow::shared;
use crate::db::weir_db;
use crate::outcome::{run, weir_code, wrong};

/// What a wait has come to.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum weir_wait_event {
    /// It is about to begin. What the hook returns says whether it wants to hear for which
    /// transactions.
    WEIR_WAIT_BEGINS = 0,
    /// It is for `holder`, a transaction that has what `waiter` wants or comes first. May come
    /// again.
    WEIR_WAIT_FOR = 1,
    /// It is over.
    WEIR_WAIT_ENDS = 2,
    /// `waiter` and `holder` are in a deadlock: returns whether `waiter` is rather to pay for it.
    WEIR_WAIT_RATHER = 3,
}

/// Called for the wait of a transaction, by the thread that waits; `event` is a weir_wait_event,
/// the others are numbers as weir_txn_number has them, `holder` 0 where it says nothing. It may
/// interrupt transactions, must not begin anything else, and must not unwind.
pub type weir_wait_hook = Option<
    unsafe extern "C" fn(context: *mut c_void, event: u32, waiter: u64, holder: u64) -> bool,
>;

struct Hook {
    call: unsafe extern "C" fn(*mut c_void, u32, u64, u64) -> bool,
    /// An address, which the other side alone makes use of.
    context: usize,
}

impl Hook {
    fn report(&self, event: weir_wait_event, waiter: TxnId, holder: TxnId) -> bool {
        // SAFETY: the caller that gave the function said that all threads may call it with this.
        unsafe { (self.call)(self.context as *mut c_void, event as u32, waiter.0, holder.0) }
    }
}

impl WaitListener for Hook {
    fn begins(&self, waiter: TxnId) -> bool {
        self.report(weir_wait_event::WEIR_WAIT_BEGINS, waiter, TxnId::NONE)
    }

    fn waits_for(&self, waiter: TxnId, holder: TxnId) {
        self.report(weir_wait_event::WEIR_WAIT_FOR, waiter, holder);
    }

    fn is_rather_victim(&self, one: TxnId, other: TxnId) -> bool {
        self.report(weir_wait_event::WEIR_WAIT_RATHER, one, other)
    }

    fn ends(&self, waiter: TxnId) {
        self.report(weir_wait_event::WEIR_WAIT_ENDS, waiter, TxnId::NONE);
    }
}

/// Reports all waits for locks from now on, until the database is closed. Any thread may call
/// the hook, with `context`. Only once for a database.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_on_wait(
    db: *const weir_db,
    hook: weir_wait_hook,
    context: *mut c_void,
) -> weir_code {
    run(|| {
        let call = hook.ok_or_else(|| wrong("there is no hook"))?;
        // SAFETY: the contract of `borrow`.
        let db = unsafe { &shared(db)?.db };
        if !db.on_wait(Arc::new(Hook { call, context: context as usize })) {
            return Err(wrong("there is a hook already"));
        }
        Ok(weir_code::WEIR_OK)
    })
}
