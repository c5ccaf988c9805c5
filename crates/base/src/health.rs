//! One place that says whether the engine has halted, and that tells a listener what is wrong: a
//! halt is one moment for readers of statistics, writers and the pool alike.
use std::sync::OnceLock;

use crate::lock::Mutex;
use crate::rank;

/// Something that an operator must hear of at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice<'a> {
    /// The engine has halted: nothing is written any more. Why.
    Halted(&'a str),
    /// A page is damaged or cannot be read: which, where, and what is wrong with it.
    PageLost(&'a str),
    /// A page was damaged and has been put right: which, where, what was wrong with it and what it
    /// was repaired from. The disk is worth a look.
    PageRepaired(&'a str),
}

/// Called by the thread that meets what is wrong; must neither block nor call the engine.
pub type Listener = dyn Fn(Notice<'_>) + Send + Sync;

/// Whether the engine has halted, and the listener for what is wrong.
#[derive(Default)]
pub struct Health {
    why: OnceLock<String>,
    /// Held while a listener is called: each gets one thing after the other.
    heard: Mutex<rank::Listener, Heard>,
}

#[derive(Default)]
struct Heard {
    listener: Option<Box<Listener>>,
    /// Pages that were lost before there was one.
    early: Vec<String>,
}

/// So many are kept for a listener to come.
const EARLY_MAX: usize = 16;

impl Health {
    /// Halts, for good. The first cause counts; `true`: it is this one.
    pub fn halt(&self, why: &str) -> bool {
        let is_first = self.why.set(why.to_owned()).is_ok();
        if is_first {
            self.notify(Notice::Halted(why));
        }
        is_first
    }

    /// The cause, if the engine has halted.
    #[inline]
    #[must_use]
    pub fn why_halted(&self) -> Option<&str> {
        self.why.get().map(String::as_str)
    }

    /// Whether it has.
    #[inline]
    #[must_use]
    pub fn is_halted(&self) -> bool {
        self.why.get().is_some()
    }

    /// Tells the listener, if there is one.
    pub fn notify(&self, notice: Notice<'_>) {
        let mut heard = self.heard.lock();
        match (&heard.listener, notice) {
            (Some(listener), notice) => listener(notice),
            (None, Notice::PageLost(text)) if heard.early.len() < EARLY_MAX => {
                heard.early.push(text.to_owned());
            }
            // `listen` notifies a later listener of a halt; what was repaired is in the figures.
            (None, _) => {}
        }
    }

    /// Tells this listener from now on; at once if the engine has halted before, or pages were
    /// lost. `false`: there is a listener already, and it stays.
    pub fn listen(&self, listener: Box<Listener>) -> bool {
        let mut heard = self.heard.lock();
        if heard.listener.is_some() {
            return false;
        }
        std::mem::take(&mut heard.early).iter().for_each(|text| listener(Notice::PageLost(text)));
        // A halt in between is reported twice rather than not.
        if let Some(why) = self.why_halted() {
            listener(Notice::Halted(why));
        }
        heard.listener = Some(listener);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    #[test]
    fn the_first_cause_counts_and_is_reported() {
        let (health, told) = (Health::default(), Arc::new(Mutex::new(Vec::new())));
        assert!(!health.is_halted() && health.why_halted().is_none());
        let listener = |told: &Arc<Mutex<Vec<String>>>| -> Box<Listener> {
            let told = told.clone();
            Box::new(move |notice| told.lock().expect("no panic").push(format!("{notice:?}")))
        };
        assert!(health.listen(listener(&told)) && !health.listen(listener(&told)));
        health.notify(Notice::PageLost("page 7"));
        assert!(health.halt("the disk is gone") && !health.halt("something else"));
        assert_eq!(health.why_halted(), Some("the disk is gone"));
        let late = Health::default();
        late.notify(Notice::PageLost("page 9"));
        late.halt("before");
        late.listen(listener(&told));
        let expected = [
            "PageLost(\"page 7\")",
            "Halted(\"the disk is gone\")",
            "PageLost(\"page 9\")",
            "Halted(\"before\")",
        ];
        assert_eq!(*told.lock().expect("no panic"), expected);
    }
}
