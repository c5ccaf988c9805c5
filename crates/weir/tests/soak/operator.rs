//! What an operator, or a program, changes while all goes on.
use std::fs::File;
use std::io::{BufReader, BufWriter, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::SeqCst;

use weir::{
    BackupBase, BackupOptions, CompactOptions, CopyOptions, Db, Error, FaultyVolume, PageCodec,
    RestoreOptions, StoreKind, TxnOptions,
};

use super::plan::Plan;
use super::watch::{Shared, fail};

/// Trees beside the workers', at most.
const OTHERS_MAX: usize = 3;

pub(super) struct Operator<'a> {
    pub(super) plan: &'a Plan,
    pub(super) shared: &'a Shared,
    pub(super) db: &'a Db,
    pub(super) volume: &'a FaultyVolume,
    /// Beside the database.
    pub(super) dir: &'a Path,
    pub(super) actor: usize,
}

impl Operator<'_> {
    fn begins(&self, what: impl Into<String>) {
        self.shared.actors[self.actor].begins(what);
    }

    /// Whether this is not left out, to find out what matters.
    fn does(&self, what: &str) -> bool {
        let left_out = std::env::var("WEIR_SOAK_WITHOUT").unwrap_or_default();
        !left_out.split(',').any(|name| name == what)
    }

    fn check(&self, what: &str, done: Result<(), Error>) {
        let Err(e) = done else { return };
        match e {
            Error::DiskFull(_) => {}
            // What is not possible now is said.
            Error::Config(_) => {}
            e if e.is_retryable() => {}
            e => fail(self.plan, &format!("{what}: {e}")),
        }
    }

    /// Changes sizes and settings, and what the disk has room for.
    pub(super) fn settings(&self) {
        let mut random = self.plan.random(200);
        while !self.shared.stops() {
            match random.u32(0..12) {
                0..6 if self.does("pool") => self.pool(&mut random),
                6..8 if self.does("log") => self.log(&mut random),
                8 if self.does("recovery") => {
                    let seconds = [0.0, 0.0, 0.02, 1.0][random.usize(0..4)];
                    self.begins(format!("recovery within {seconds} s"));
                    self.check("recovery time", self.db.set_recovery_seconds(seconds));
                }
                9 if self.does("codec") => {
                    let codec = [None, Some(PageCodec::None), Some(PageCodec::Zstd)];
                    let codec = codec[random.usize(0..3)];
                    self.begins(format!("codec {codec:?}"));
                    self.check("codec", self.db.set_codec("rows", codec).map(drop));
                }
                10 if self.plan.fills_up && self.does("full") => {
                    self.begins("a full disk");
                    self.shared.disk_is_full.store(true, SeqCst);
                    self.volume.full_disk(true);
                    self.shared.pause(random.u64(100..3000));
                    self.volume.full_disk(false);
                    self.shared.disk_is_full.store(false, SeqCst);
                }
                11 if self.does("checkpoint") => {
                    self.begins("a checkpoint");
                    self.check("a checkpoint", self.db.checkpoint());
                }
                _ => {}
            }
            self.begins("a pause");
            let millis = [0, 50, 300, 1500][random.usize(0..4)];
            self.shared.pause(millis);
        }
        self.shared.actors[self.actor].ends();
    }

    /// From far below what there is to some more than that.
    fn pool(&self, random: &mut fastrand::Rng) {
        let (least, most) =
            (self.plan.pool_bytes_min() as f64, 2.0 * self.plan.data_bytes() as f64);
        let bytes = (least * (most.max(least) / least).powf(random.f64())) as u64;
        self.begins(format!("a pool of {bytes}"));
        self.check("the pool's size", self.db.set_pool_bytes(bytes));
    }

    fn log(&self, random: &mut fastrand::Rng) {
        let bytes = (1u64 << 20) << random.u32(0..6);
        self.begins(format!("a log of {bytes}"));
        self.check("the log's size", self.db.set_log_bytes(bytes));
    }

    /// What takes its time.
    pub(super) fn jobs(&self) {
        let mut random = self.plan.random(300);
        let mut base = None;
        while !self.shared.stops() {
            let done = match random.u32(0..9) {
                0..2 if self.does("load") => self.load(&mut random),
                2..4 if self.does("drop") => self.drop_one(&mut random),
                4..6 if self.does("compact") => self.compact(&mut random),
                6 if self.does("backup") => self.back_up(&mut base, &mut random),
                7 if self.does("copy") => self.copy(&mut random),
                8 if self.does("scrub") => self.scrub(),
                _ => Ok(()),
            };
            self.check("a job", done);
            self.begins("a pause");
            self.shared.pause(random.u64(0..500));
        }
        self.shared.actors[self.actor].ends();
    }

    fn others(&self) -> Result<Vec<String>, Error> {
        let names = self.db.tree_names()?;
        Ok(names.into_iter().filter(|name| name.starts_with("other")).collect())
    }

    fn load(&self, random: &mut fastrand::Rng) -> Result<(), Error> {
        if self.others()?.len() >= OTHERS_MAX {
            return Ok(());
        }
        let rows = random.u64(0..8_000);
        self.begins(format!("{rows} rows to load"));
        let tree = self.db.create_tree(&format!("other-{rows}-{}", random.u64(..)))?;
        tree.bulk_load((0..rows).map(|row| (row.to_be_bytes(), vec![row as u8; 150])))?;
        Ok(())
    }

    fn drop_one(&self, random: &mut fastrand::Rng) -> Result<(), Error> {
        let others = self.others()?;
        let Some(name) = others.get(random.usize(0..others.len().max(1))) else { return Ok(()) };
        self.begins(format!("{name}, to be dropped"));
        let Some(tree) = self.db.tree(name)? else { return Ok(()) };
        let mut rows = 0;
        let mut cursor = tree.cursor();
        let mut on = cursor.seek_first()?;
        while on {
            rows += 1;
            on = cursor.next()?;
        }
        // None where loading was refused or cut short.
        if rows != 0 && !name.starts_with(&format!("other-{rows}-")) {
            fail(self.plan, &format!("{name} has {rows} rows"));
        }
        self.db.drop_tree(name).map(drop)
    }

    fn compact(&self, random: &mut fastrand::Rng) -> Result<(), Error> {
        let name = self.others()?.pop().filter(|_| random.bool()).unwrap_or_else(|| "rows".into());
        self.begins(format!("compacts {name}"));
        let Some(tree) = self.db.tree(&name)? else { return Ok(()) };
        let bytes_per_second = random.bool().then_some(u64::MAX);
        let options = CompactOptions { bytes_per_second, ..CompactOptions::default() };
        let until = std::time::Instant::now() + std::time::Duration::from_secs(3);
        let goes_on = || !self.shared.stops() && std::time::Instant::now() < until;
        tree.compact(&options, &mut |_| goes_on()).map(drop)
    }

    fn scrub(&self) -> Result<(), Error> {
        self.begins("a scrub");
        let report = self.db.scrub(&mut |_, _| ())?;
        if report.lost + report.repaired > 0 {
            fail(self.plan, &format!("the scrub has found {:?}", report.findings));
        }
        Ok(())
    }

    /// A whole one, and then what was changed since. Sometimes restored.
    fn back_up(
        &self,
        base: &mut Option<BackupBase>,
        random: &mut fastrand::Rng,
    ) -> Result<(), Error> {
        let file = |number: u32| self.dir.join(format!("backup-{number}"));
        let options = BackupOptions {
            since: *base,
            bytes_per_second: random.bool().then_some(u64::MAX),
            ..BackupOptions::default()
        };
        let number = u32::from(base.is_some());
        self.begins(format!("backup {number}"));
        let out = BufWriter::new(File::create(file(number)).expect("made"));
        let mut goes_on = |_| !self.shared.stops();
        if self.db.backup(out, &options, &mut goes_on)?.is_none() {
            return Ok(());
        }
        let input = |number| -> Box<dyn Read> {
            Box::new(BufReader::new(File::open(file(number)).expect("there")))
        };
        if base.is_none() {
            let unsealed = weir::unseal(input(0), self.plan.encryption().as_ref())?;
            *base = Some(BackupBase::read(unsealed)?);
            return Ok(());
        }
        *base = None;
        if random.bool() {
            self.begins("a restore");
            let at = self.dir.join("restored");
            let options =
                RestoreOptions { encryption: self.plan.encryption(), ..RestoreOptions::default() };
            weir::restore(&at, vec![input(0), input(1)], &options, &mut |_| true)?;
            self.look_at(at, self.plan.store)?;
        }
        Ok(())
    }

    fn copy(&self, random: &mut fastrand::Rng) -> Result<(), Error> {
        let at = self.dir.join("copy");
        let _ = std::fs::remove_dir_all(&at);
        let store = if random.bool() { StoreKind::InPlace } else { StoreKind::Log };
        self.begins(format!("a copy, {store}"));
        let options = CopyOptions { store: Some(store), ..CopyOptions::default() };
        let mut txn = self.db.begin(TxnOptions::default());
        self.db.copy_to_as(&mut txn, &at, &options)?;
        drop(txn);
        self.look_at(at, store)
    }

    /// A database that was made of this one is sound; then it goes.
    fn look_at(&self, at: PathBuf, store: StoreKind) -> Result<(), Error> {
        self.begins("a look at what was made");
        let config = weir::Config { store: Some(store), ..self.plan.config(16 << 20) };
        let made = Db::open(&at, config)?;
        let problems = made.check(&mut |_, _| ())?.problems;
        if !problems.is_empty() {
            fail(self.plan, &format!("{}: {problems:?}", at.display()));
        }
        made.close()?;
        let _ = std::fs::remove_dir_all(at);
        Ok(())
    }
}
