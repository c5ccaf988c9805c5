//! A salvage from top to bottom: log, pages brought up to date, every page looked at, catalog,
//! trees, rows.
use std::collections::BTreeSet;
use std::path::Path;

use weir::on_disk::{CATALOG_ROOT, CATALOG_TREE};
use weir::{Config, Db, StoreKind};
use weir_base::{Lsn, PageNo, TreeId};
use weir_pool::PageStore;

use crate::apply_log::{Applied, apply_log, put_copies_back};
use crate::error::SalvageError;
use crate::harvest::{Harvest, SORTERS};
use crate::log::{self, LogRead};
use crate::names::{Catalog, Names};
use crate::report::{Phase, Report, SavedTree};
use crate::save::{Destination, NewDatabase, Saver};
use crate::source::Source;
use crate::survey::{Survey, survey};
use crate::sweep::{Known, Sweep};
use crate::undo::{Losers, RollBack, gather};
use crate::walk::{Walk, Walked};

/// How to salvage.
#[derive(Clone, Debug)]
pub struct Options {
    /// Bytes a page of the source; `None`: as its files say, or its pages look.
    pub page_size: Option<usize>,
    /// Memory for pages of the new database, an eighth of it for sorting besides, in bytes.
    pub pool_bytes: u64,
    /// How the new database keeps its pages; `None`: as the source does.
    pub store: Option<StoreKind>,
    /// Keys of a source that is encrypted; the new database is encrypted with them, too.
    pub encryption: Option<weir::Encryption>,
}

impl Default for Options {
    fn default() -> Self {
        Options { page_size: None, pool_bytes: 256 << 20, store: None, encryption: None }
    }
}

/// Saves what can be read of the database in `from` into a new one in `to`, which must hold nothing
/// yet; `from` is not changed. Nothing is left in `to` when it fails. `progress` gets how far it
/// has come, and of how much where that is known (else 0).
///
/// # Errors
/// [`SalvageError`]: there are no pages to read, or the new database cannot be made. A process that
/// has `from` open is an error of kind `WouldBlock`.
pub fn salvage(
    from: &Path,
    to: &Path,
    options: &Options,
    progress: &mut dyn FnMut(Phase, u64, u64),
) -> Result<Report, SalvageError> {
    let source = Source::open(from, options.page_size, options.encryption.as_ref())?;
    let config = Config {
        store: Some(options.store.unwrap_or(source.store_kind)),
        page_size: source.page_size,
        pool_bytes: options.pool_bytes,
        encryption: options.encryption.clone(),
        ..Config::default()
    };
    Db::make_filled(to, config, |target| Run { source, target, progress }.run())
}

struct Run<'a> {
    source: Source,
    target: &'a Db,
    progress: &'a mut dyn FnMut(Phase, u64, u64),
}

impl Run<'_> {
    fn run(mut self) -> Result<Report, SalvageError> {
        let changes = self.target.sorter(SORTERS);
        let read = log::read(&mut self.source, changes, self.progress)?;
        let LogRead { changes, analysis, end, mut is_whole, is_begin_sure, gaps } = read;
        is_whole &= self.is_of_era() && !self.source.is_map_lost;
        let mut applied = Applied::default();
        put_copies_back(&*self.source.store, &self.source.copies, &mut applied)?;
        let progress = &mut *self.progress;
        let store: &dyn PageStore = &*self.source.store;
        let tell = &mut |done| progress(Phase::Redo, done, 0);
        apply_log(store, self.source.db, changes.sorted()?, &gaps, &mut applied, tell)?;

        let mut catalog = Harvest::new(self.target);
        let mut others = Harvest::new(self.target);
        let tell = &mut |done, of| progress(Phase::Pages, done, of);
        let survey = survey(store, &mut catalog, &mut others, tell)?;
        let losers = gather(analysis, store, &mut catalog, &mut others)?;
        is_whole &= is_behind(&survey, end, &mut self.source.remarks);

        let mut report = Report {
            is_current: is_whole && is_begin_sure,
            losers: losers.transactions,
            prepared: losers.prepared.clone(),
            pages: survey.pages,
            pages_forward: applied.pages,
            pages_repaired: applied.repaired,
            pages_damaged: survey.damaged_count,
            damaged: survey.damaged.clone(),
            ..Report::default()
        };
        let saving = Saving { run: &mut self, survey: &survey, applied: &applied, is_whole };
        saving.all(catalog, others, losers, &mut report)?;
        report.remarks = std::mem::take(&mut self.source.remarks);
        Ok(report)
    }

    /// Whether the data file is the one that the control file was written beside.
    fn is_of_era(&mut self) -> bool {
        let Some(control) = self.source.control else { return true };
        let eras = self.source.store.eras();
        let is_it = eras.iter().flatten().any(|era| *era == control.era);
        if is_it || eras.iter().any(Result::is_err) {
            return true;
        }
        let text = "the data file is older or newer than the control file, or of another copy";
        self.source.remarks.push(text.into());
        false
    }
}

/// No page may be ahead of the log.
fn is_behind(survey: &Survey, end: Option<Lsn>, remarks: &mut Vec<String>) -> bool {
    match end {
        Some(end) if survey.newest > end => {
            let newest = survey.newest;
            remarks.push(format!(
                "the log ends at position {end}, but pages have changes up to {newest}: the log \
                 was cut short, or is older than they are"
            ));
            false
        }
        _ => true,
    }
}

/// What all trees' rows are saved with.
struct Saving<'r, 'a> {
    run: &'r mut Run<'a>,
    survey: &'r Survey,
    applied: &'r Applied,
    is_whole: bool,
}

impl Saving<'_, '_> {
    fn all(
        mut self,
        mut catalog: Harvest,
        mut others: Harvest,
        losers: Losers,
        report: &mut Report,
    ) -> Result<(), SalvageError> {
        let mut walked = Walked::default();
        self.walk(&mut catalog, &mut walked, CATALOG_TREE, Some(CATALOG_ROOT))?;
        let mut names = Catalog::default();
        let (of_catalog, _) = self.sweep(catalog, &walked, &mut names)?;
        let is_complete = self.is_whole && of_catalog.iter().all(SavedTree::is_whole);
        if let Some(found) = of_catalog.first().filter(|found| !found.is_whole()) {
            let SavedTree { rows, leaves_missing, inner_missing, .. } = found;
            self.run.source.remarks.push(format!(
                "the catalog is damaged: {rows} names found, {leaves_missing} of its leaves and \
                 {inner_missing} nodes above them are lost"
            ));
        }
        if of_catalog.is_empty() {
            self.run.source.remarks.push("nothing of the catalog was found".into());
        }
        let is_complete = is_complete && !of_catalog.is_empty();
        let mut names = Names::new(names, is_complete, losers.made);
        let roots = names.roots();
        let mut trees: BTreeSet<TreeId> = roots.keys().copied().collect();
        trees.extend(self.survey.inner.iter().map(|inner| inner.tree));
        trees.remove(&CATALOG_TREE);
        for tree in trees {
            self.walk(&mut others, &mut walked, tree, roots.get(&tree).copied())?;
        }
        let target = NewDatabase::new(self.run.target, |tree| names.of(tree));
        (report.trees, report.trees_left_out) = self.sweep(others, &walked, target)?;
        Ok(())
    }

    fn walk(
        &mut self,
        harvest: &mut Harvest,
        walked: &mut Walked,
        tree: TreeId,
        root: Option<PageNo>,
    ) -> Result<(), SalvageError> {
        let store = &*self.run.source.store;
        Walk { store, survey: self.survey, harvest, walked, tree }.run(root)
    }

    fn sweep<D: Destination>(
        &mut self,
        harvest: Harvest,
        walked: &Walked,
        destination: D,
    ) -> Result<(Vec<SavedTree>, u64), SalvageError> {
        let store: &dyn PageStore = &*self.run.source.store;
        let (survey, is_whole) = (self.survey, self.is_whole);
        let known = Known { store, survey, walked, is_whole };
        let Harvest { leaves, claims, undo } = harvest;
        let (leaves, claims) = (leaves.sorted()?, claims.sorted()?);
        let mut saver = Saver {
            store,
            doubtful: &self.applied.doubtful,
            roll_back: RollBack::new(undo.sorted()?)?,
            destination,
            rows_per_leaf: survey.rows.checked_div(survey.leaf_count).unwrap_or(0),
            trees: Vec::new(),
            left_out: 0,
            now: SavedTree::default(),
        };
        let progress = &mut *self.run.progress;
        let tell = &mut |done| progress(Phase::Rows, done, 0);
        Sweep::new(&known, leaves, claims, &walked.wanting)?.run(&mut saver, tell)?;
        Ok((saver.trees, saver.left_out))
    }
}
