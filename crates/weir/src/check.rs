//! Checking a whole database: every tree, and that every page has exactly one owner.
use std::collections::BTreeMap;

use weir_base::PageNo;
use weir_btree::TreeReport;
use weir_pool::ERA_PAGES;

use crate::db::Db;
use crate::engine::Engine;
use crate::error::Error;
use crate::places::CATALOG_TREE;
use crate::scrub::ScrubReport;
use crate::steps::STEP_ROWS;

/// What a check found.
#[derive(Clone, Debug, Default)]
pub struct CheckReport {
    /// Each tree by name, the catalog first under an empty name.
    pub trees: Vec<(String, TreeReport)>,
    /// Everything that is not as it must be. Empty: the database is sound.
    pub problems: Vec<String>,
    /// Pages in use.
    pub pages_used: u64,
    /// Pages of the file that are free.
    pub pages_free: u64,
    /// Pages in use that no tree names, while transactions are prepared or under way, or something
    /// may only be done behind a snapshot: long values from before their changes, notes, locks
    /// kept. Once all of those have ended, such a page is a problem.
    pub pages_held: u64,
}

impl Engine {
    /// Does what transactions have left to do, until there is nothing, or it fails.
    fn do_what_is_left(&self) -> Option<Error> {
        let _ = self.background.take_incomplete();
        loop {
            if self.check_open().is_err() {
                return None;
            }
            match self.background.long_step(STEP_ROWS) {
                Ok(true) => {}
                // Another thread is at the last of it.
                Ok(false) if self.background.is_completing() => self.clock.sleep_micros(1_000),
                Ok(false) => return self.background.take_incomplete().map(Error::from),
                Err(e) => return Some(e.into()),
            }
        }
    }
}

impl Db {
    /// Verifies all pages that are in use as they lie on disk, at once and as fast as the disk
    /// gives them, beside whatever else goes on; what the background does little by little.
    /// Damaged pages are repaired where something has what they held. `progress` gets pages gone
    /// through and in all. What is in the pages is for [`Db::check`].
    ///
    /// # Errors
    /// [`Error`] when it cannot go on; damage is in the report.
    pub fn scrub(&self, progress: &mut dyn FnMut(u64, u64)) -> Result<ScrubReport, Error> {
        let engine = &self.engine;
        engine.check_not_forced()?;
        engine.check_open()?;
        let mut progress = |done, of| {
            progress(done, of);
            true
        };
        let report = engine.scrub.report(&mut progress).map_err(|e| engine.failed(e.into()))?;
        Ok(report.unwrap_or_default())
    }

    /// Checks every tree, then that every page in use belongs to exactly one of them, or may be
    /// held for a transaction. Nothing may be written meanwhile, or pages may seem lost. `progress`
    /// gets pages looked at and in use.
    ///
    /// # Errors
    /// [`Error`] when the check cannot go on; damage is reported in [`CheckReport::problems`].
    pub fn check(&self, progress: &mut dyn FnMut(u64, u64)) -> Result<CheckReport, Error> {
        let engine = &self.engine;
        engine.check_here()?;
        // What transactions have left to do has pages that nothing names; a forced opening changes
        // none of them.
        let failed = match engine.check_not_forced() {
            Ok(()) => engine.do_what_is_left(),
            Err(_) => None,
        };
        let mut report = CheckReport { pages_used: engine.space.used(), ..CheckReport::default() };
        let problem = |e| format!("what transactions have left cannot be done: {e}");
        report.problems.extend(failed.map(problem));
        let of = report.pages_used;
        let mut owners: BTreeMap<PageNo, String> = BTreeMap::new();
        for tree in engine.background.archive_trees() {
            let pages = tree.check(&mut |_| {})?.pages;
            owners.extend(pages.into_iter().map(|page| (page, "the versions".into())));
        }
        let mut trees = vec![(String::new(), engine.catalog.clone())];
        match engine.trees() {
            Ok(more) => trees.extend(more),
            Err(e) => report.problems.push(format!("the catalog cannot be read: {e}")),
        }
        let mut done = 0;
        for (name, tree) in trees {
            let shown = if tree.id() == CATALOG_TREE {
                "the catalog".into()
            } else {
                format!("tree '{name}'")
            };
            let checked = tree.check(&mut |_| {
                done += 1;
                progress(done, of);
            });
            match checked {
                Ok(tree_report) => {
                    for page in &tree_report.pages {
                        if let Some(other) = owners.insert(*page, shown.clone()) {
                            report
                                .problems
                                .push(format!("page {page} belongs to {other} and to {shown}"));
                        }
                    }
                    report.trees.push((name, tree_report));
                }
                Err(e) => report.problems.push(format!("{shown}: {e}")),
            }
        }
        self.check_pages(&owners, &mut report);
        progress(of, of);
        Ok(report)
    }

    fn check_pages(&self, owners: &BTreeMap<PageNo, String>, report: &mut CheckReport) {
        let space = &self.engine.space;
        for (page, owner) in owners {
            if !space.is_used(*page) {
                report.problems.push(format!("page {page} of {owner} is marked free"));
            }
        }
        // Where a tree could not be walked its pages cannot be told from lost ones.
        if !report.problems.is_empty() {
            return;
        }
        let unfinished = self.engine.registry.stats();
        let may_hold = unfinished.open > 0 || unfinished.history > 0;
        for page in (0..space.end()).map(PageNo) {
            let is_ours = space.is_map(page) || ERA_PAGES.contains(&page);
            if !space.is_used(page) || is_ours || owners.contains_key(&page) {
                continue;
            }
            if may_hold {
                report.pages_held += 1;
            } else {
                report.problems.push(format!("page {page} is marked used but nothing uses it"));
            }
        }
        let pages = u64::from(self.engine.pool.store().pages());
        report.pages_free = pages.saturating_sub(report.pages_used);
    }
}
