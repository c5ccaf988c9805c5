//! The seed's kill: a process is killed under load with an old checkpoint, and what opening takes
//! is measured.
use crate::arm::Site;
use crate::results::Result1;
use anyhow::{Context, Result, bail, ensure};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use weir::{Config, Create, Db};
use weir_base::{Clock, SystemClock, format_size};

/// Fills the log in another process, kills it with SIGKILL, and opens the database here.
pub(crate) fn run(
    name: &str,
    original: &str,
    site: &Site,
    dir: &Path,
    recovery_threads: usize,
) -> Result<Result1> {
    fill_and_kill(site, dir)?;
    let config = Config {
        pool_bytes: site.pool_bytes,
        create: Create::Never,
        recovery_threads,
        ..Config::default()
    };
    let clock = SystemClock::new();
    let db = Db::open(dir, config).context("opening after the kill")?;
    let open_seconds = clock.now_micros() as f64 / 1e6;
    let report = db.recovery_report().context("there was nothing to recover")?;
    while db.stats().pages_pending_redo > 0 {
        if let Some(why) = db.stats().halted {
            bail!("after the kill the engine halted: {why}");
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let all_seconds = clock.now_micros() as f64 / 1e6;
    db.close()?;
    let redo = report.redo_bytes();
    let second = |seconds: f64| format!("{seconds:.2} s");
    let extra = [
        ("redone", format_size(redo)),
        ("open after", second(open_seconds)),
        ("reading the log", second(report.scan_micros as f64 / 1e6)),
        ("all pages forward after", second(all_seconds)),
        ("MB/s", format!("{:.0}", redo as f64 / 1e6 / all_seconds.max(1e-9))),
        ("pages", report.pending_pages.to_string()),
    ];
    Ok(Result1 {
        name: name.to_owned(),
        original: original.to_owned(),
        is_deadline: true,
        tps: redo as f64 / 1e6 / all_seconds.max(1e-9),
        verified: true,
        extra: extra.map(|(key, value)| (key.to_owned(), value)).to_vec(),
        ..Result1::default()
    })
}

/// How long the log is filled at most.
const FILL_SECONDS_MAX: u64 = 240;

fn fill_and_kill(site: &Site, dir: &Path) -> Result<()> {
    let seconds = if site.quick { 8 } else { FILL_SECONDS_MAX };
    let program = std::env::current_exe().context("finding the program to kill")?;
    let rows = site.rows.to_string();
    let mut child = Command::new(program)
        .args(["bench", "update", "--plain", "--no-raw", "--durability", "lazy", "--warmup", "0"])
        .args(["--threads", "4", "--seconds", "100000", "--rows", &rows])
        .args(["--pool", &site.pool_bytes.to_string(), "--log", &site.log_bytes.to_string()])
        .args(["--page-size", &site.page_size.to_string()])
        .arg("--dir")
        .arg(dir)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .context("starting the process to be killed")?;
    std::thread::sleep(Duration::from_secs(seconds));
    let still = child.try_wait()?.is_none();
    child.kill()?;
    child.wait()?;
    ensure!(still, "the process to be killed had ended before");
    Ok(())
}
