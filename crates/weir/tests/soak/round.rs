//! A round: all threads, and how it ends.
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use weir::{Db, Error, FaultyVolume, FileVolume, ThrottledVolume, Volume};

use super::journal::{HOT, Journal, State};
use super::operator::Operator;
use super::plan::{End, Plan};
use super::readers::Reader;
use super::watch::{Shared, Watch, fail};
use super::workers::{Trees, Worker, key_of, u64_in, value_of};

/// Threads beside the workers.
const OTHERS: usize = 3;
/// Closing ends within so long on a machine that does nothing else, and within thirty times that.
const CLOSE_MAX: Duration = Duration::from_secs(120);

pub(super) fn run(dir: &Path, plan: &Plan) {
    let pool = plan.pool_bytes_min().max(plan.data_bytes() / 2);
    let at = dir.join("db");
    std::fs::create_dir_all(&at).expect("made");
    let mut below: Arc<dyn Volume> = Arc::new(FileVolume::open(&at).expect("opened"));
    if let Some(disk) = plan.disk() {
        below = Arc::new(ThrottledVolume::new(below, disk));
    }
    let volume = Arc::new(FaultyVolume::new(below));
    let opened = Db::open_on(volume.clone(), plan.config(pool));
    let db = opened.unwrap_or_else(|e| fail(plan, &format!("it does not open: {e}")));
    let trees = Trees::of(&db).unwrap_or_else(|e| fail(plan, &format!("no trees: {e}")));
    let shared = Shared::new(plan.threads as usize + OTHERS);
    let worker = |thread| {
        Worker::new((plan, &shared, &db), &trees, dir, thread).unwrap_or_else(|e| fail(plan, &e))
    };
    let mut workers: Vec<Worker<'_>> = (0..plan.threads).map(worker).collect();
    std::fs::write(dir.join("begun"), b"").expect("written");
    let first = plan.threads as usize;
    let operator = |actor| Operator { plan, shared: &shared, db: &db, volume: &volume, dir, actor };
    std::thread::scope(|scope| {
        for worker in &mut workers {
            scope.spawn(|| worker.run());
        }
        let (settings, jobs) = (operator(first), operator(first + 1));
        scope.spawn(move || settings.settings());
        scope.spawn(move || jobs.jobs());
        let reader =
            Reader { plan, shared: &shared, db: &db, trees: trees.clone(), actor: first + 2 };
        scope.spawn(move || reader.run());
        if plan.end == End::Killed {
            // Some time after its end.
            let plan = &Plan { seconds: plan.seconds * 100, ..plan.clone() };
            return Watch { plan, shared: &shared, db: &db, dir }.run();
        }
        Watch { plan, shared: &shared, db: &db, dir }.run();
    });
    let stats = db.stats();
    eprintln!(
        "  round {}: {} commits, {} refused, {} times at the age limit, {} waits for frames",
        plan.number,
        shared.commits.load(SeqCst),
        shared.refused.load(SeqCst),
        stats.admission_gate_closed,
        stats.free_frame_waits,
    );
    close(plan, &db);
    workers.iter_mut().for_each(Worker::is_closed);
}

fn close(plan: &Plan, db: &Db) {
    let (done, wait) = std::sync::mpsc::channel();
    let own = db.clone();
    std::thread::spawn(move || drop(done.send(own.close())));
    match wait.recv_timeout(CLOSE_MAX) {
        Ok(Ok(())) => {}
        Ok(Err(e)) => fail(plan, &format!("closing: {e}")),
        Err(_) => {
            eprintln!("{:#?}", db.stats());
            fail(plan, "closing does not end");
        }
    }
}

/// All rows of all threads, and that the database is sound.
pub(super) fn look_at_all(dir: &Path, plan: &Plan) -> Result<(), String> {
    let words = |e: Error| e.to_string();
    let db = Db::open(&dir.join("db"), plan.config(16 << 20)).map_err(words)?;
    let trees = Trees::of(&db).map_err(words)?;
    let mut hot = BTreeMap::new();
    for thread in 0..plan.threads {
        let last = trees.last_of(thread).map_err(words)?;
        let state = Journal::replay(dir, thread, last)?;
        state.hot.iter().for_each(|(row, count)| *hot.entry(*row).or_insert(0) += count);
        rows_of(plan, &trees, thread, &state)?;
    }
    for (row, count) in hot {
        let value = trees.hot.get(&row.to_be_bytes()).map_err(words)?;
        let found = value.map_or(0, |value| u64_in(&value));
        if found != count {
            return Err(format!("row {} of all was counted up to {found}, not {count}", row - HOT));
        }
    }
    let problems = db.check(&mut |_, _| ()).map_err(words)?.problems;
    if !problems.is_empty() {
        return Err(format!("{problems:?}"));
    }
    db.close().map_err(words)
}

fn rows_of(plan: &Plan, trees: &Trees, thread: u32, state: &State) -> Result<(), String> {
    let mut cursor = trees.rows.cursor();
    let mut on = cursor.seek(&key_of(thread, 0)).map_err(|e| e.to_string())?;
    let mut expected = state.rows.iter();
    while on && cursor.key()[..4] == thread.to_be_bytes() {
        let row = u64_in(&cursor.key()[4..]);
        let value = cursor.value().map_err(|e| e.to_string())?;
        let Some((known, version)) = expected.next() else {
            return Err(format!("thread {thread}: row {row} must not be there"));
        };
        if *known != row || value != value_of(plan, row, *version) {
            let found = u64_in(value);
            return Err(format!(
                "thread {thread}: row {row} of version {found}, where row {known} of version \
                 {version} must be"
            ));
        }
        on = cursor.next().map_err(|e| e.to_string())?;
    }
    expected.next().map_or(Ok(()), |(row, _)| Err(format!("thread {thread}: row {row} is lost")))
}
