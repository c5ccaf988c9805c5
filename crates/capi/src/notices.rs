//! Notices of what an operator must know at once.
use std::ffi::c_void;

use weir::Notice;

use crate::borrow::{shared, weir_bytes};
use crate::db::weir_db;
use crate::outcome::{run, weir_code, wrong};

/// What there is to hear of.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum weir_notice {
    /// The engine has halted: nothing is written any more, until the database is opened anew.
    WEIR_NOTICE_HALTED = 0,
    /// A page is damaged or cannot be read. Of each page once.
    WEIR_NOTICE_PAGE_LOST = 1,
    /// A page was damaged and has been put right.
    WEIR_NOTICE_PAGE_REPAIRED = 2,
}

/// Called by the thread that meets what is wrong; `notice` is a weir_notice, `text` is valid for
/// the call. It must not call the engine, wait for those that do, or unwind.
pub type weir_notice_hook =
    Option<unsafe extern "C" fn(context: *mut c_void, notice: u32, text: weir_bytes)>;

/// Reports what is wrong from now on, until the database is closed; at once where the engine has
/// halted already. Any thread may call the hook, with `context`. Only once for a database.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_on_notice(
    db: *const weir_db,
    hook: weir_notice_hook,
    context: *mut c_void,
) -> weir_code {
    run(|| {
        let call = hook.ok_or_else(|| wrong("there is no hook"))?;
        // SAFETY: the contract of `borrow`.
        let db = unsafe { &shared(db)?.db };
        // An address, which the other side alone makes use of.
        let context = context as usize;
        let report = move |notice: Notice<'_>| {
            let (kind, text) = match notice {
                Notice::Halted(text) => (weir_notice::WEIR_NOTICE_HALTED, text),
                Notice::PageLost(text) => (weir_notice::WEIR_NOTICE_PAGE_LOST, text),
                Notice::PageRepaired(text) => (weir_notice::WEIR_NOTICE_PAGE_REPAIRED, text),
            };
            let text = weir_bytes::of(text.as_bytes());
            // SAFETY: the caller of `weir_on_notice` said that all threads may call it with this.
            unsafe { call(context as *mut c_void, kind as u32, text) }
        };
        if !db.on_notice(Box::new(report)) {
            return Err(wrong("there is a hook already"));
        }
        Ok(weir_code::WEIR_OK)
    })
}
