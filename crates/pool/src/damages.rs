//! What is known of pages that were found damaged, and what is counted of looking for them.
use std::collections::{BTreeSet, VecDeque};
use std::sync::OnceLock;

use weir_base::lock::Mutex;
use weir_base::rank;
use weir_base::{PageNo, counters};

/// Lost pages that are reported: with more, it is known that the disk is broken.
pub(crate) const REPORTED_LOST_MAX: usize = 1_000;
/// The last so many findings are kept.
const FINDINGS_MAX: usize = 32;

/// Makes a page from nothing, with what the log has of it.
pub trait RebuildPage: Send + Sync {
    /// Makes the page in `bytes`, as of its last change in the durable log, if all its changes
    /// since it was made are there. Called under the page's latch. `false`: they are not, or cannot
    /// be read; `bytes` means nothing then.
    fn rebuild(&self, page: PageNo, bytes: &mut [u8]) -> bool;
}

/// What became of a page that was found damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mended {
    /// Nothing has what it held: it is lost.
    No,
    /// It was in memory, and was written again.
    FromMemory,
    /// The doublewrite area had a copy.
    FromCopy,
    /// The log had all changes since it was made.
    FromLog,
}

impl std::fmt::Display for Mended {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str(match self {
            Mended::No => "lost",
            Mended::FromMemory => "repaired from memory",
            Mended::FromCopy => "repaired from its copy in the doublewrite area",
            Mended::FromLog => "repaired from the redo log",
        })
    }
}

/// A page that was found damaged since the database was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageFinding {
    /// Which page.
    pub page: PageNo,
    /// The file in which it lies.
    pub file: String,
    /// The byte of the file at which it begins.
    pub offset: u64,
    /// What is wrong with it, in words that name page, file and byte.
    pub text: String,
    /// What became of it.
    pub mended: Mended,
}

/// What is known of damaged pages.
#[derive(Default)]
pub(crate) struct Damages {
    pub(crate) rebuild: OnceLock<Box<dyn RebuildPage>>,
    pub(crate) known: Mutex<rank::LostPages, Known>,
}

#[derive(Default)]
pub(crate) struct Known {
    /// Pages that were reported as lost.
    pub(crate) lost: BTreeSet<PageNo>,
    /// Pages that were mended in memory, and are still damaged on disk.
    pub(crate) unwritten: BTreeSet<PageNo>,
    pub(crate) findings: VecDeque<PageFinding>,
}

impl Known {
    pub(crate) fn note(&mut self, finding: PageFinding) {
        self.findings.truncate(FINDINGS_MAX - 1);
        self.findings.push_front(finding);
    }
}

counters! {
    /// What verifying pages on disk counts.
    pub struct ScrubStats {
        verified: "pages", "pages verified on disk that no thread had asked for";
        passes: "passes", "times that all pages were verified";
        seconds: "pages", "pages looked at a second time: they were being written, or are damaged";
        damaged: "pages", "pages found damaged on disk that no thread had asked for";
        mended_memory: "pages", "damaged pages repaired from memory";
        mended_copy: "pages", "damaged pages repaired from a copy in the doublewrite area";
        mended_log: "pages", "damaged pages repaired from the redo log";
    }
}
