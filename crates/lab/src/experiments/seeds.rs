//! Seeds 1 to 4, and what seeds 0 and 4 wish for: experiments 1 and 7 to 12.
use super::{Experiment, Work};
use crate::arm::{Arm, Resize, Site};
use crate::judge::Finding;
use crate::policies::Kind;
use weir::lab::Neighbours;
use weir_bench::Durability;

pub(super) fn experiments() -> Vec<Experiment> {
    vec![waves(), cached(), io_bound(), xtradb(), log_size(), recovery(), change()]
}

fn waves() -> Experiment {
    Experiment {
        number: 1,
        name: "waves: three hours of TPC-C on MySQL and MariaDB",
        seed: "2, Checkpointing in MySQL and MariaDB (2020)",
        found: "MySQL 8.0 makes waves for nearly three hours and ends at 7500 tps; MariaDB 10.5 \
                settles sooner, at 4900",
        missing: "",
        site: |site| {
            if site.quick { Site { seconds: 8, ..site } } else { Site { seconds: 2700, ..site } }
        },
        work: Work::Arms(|_| {
            let tuned = |arm: Arm| arm.capacity(0.287, 0.575).with(|knobs| knobs.threads = 0);
            vec![
                Arm::deadline(),
                tuned(Arm::new("mysql_8", Kind::Mysql8)).original("7500 tps after 3 h of waves"),
                tuned(Arm::new("mariadb_10_5", Kind::Mariadb105)).original("4900 tps, sooner"),
            ]
        }),
        judge: |results| {
            let (mysql, mariadb) = (results.get("mysql_8"), results.get("mariadb_10_5"));
            let settled = |wraps: Option<f64>| match wraps {
                Some(wraps) => format!("after {wraps:.1} log wraps"),
                None => "not within the run".to_owned(),
            };
            Finding::new(
                mysql.tps > mariadb.tps && mysql.cv > results.get("deadline").cv,
                format!(
                    "mysql_8 has {:.0} tps (CV {:.3}, settled {}), mariadb_10_5 {:.0} (CV {:.3}, \
                     settled {}), deadline settled {}",
                    mysql.tps,
                    mysql.cv,
                    settled(mysql.settled_after_wraps()),
                    mariadb.tps,
                    mariadb.cv,
                    settled(mariadb.settled_after_wraps()),
                    settled(results.get("deadline").settled_after_wraps())
                ),
            )
        },
    }
}

fn cached() -> Experiment {
    Experiment {
        number: 7,
        name: "cached one-row updates by 1 to 64 clients, commits not synced",
        seed: "1, MySQL 5.6: flushing potential (2013)",
        found: "with furious flushing (4.0) updates fall from 36,473 at 8 clients to 9,718 at 32; \
                paced (5.6) they grow to 70,662",
        missing: "8 tables: the workload has one; more than 64 clients",
        site: |site| {
            let threads = if site.quick { "1:3s,8:3s,32:3s,64:3s" } else { THREADS_FULL };
            let (rows, log_bytes) =
                if site.quick { (1_000_000, 64 << 20) } else { (4_000_000, 320 << 20) };
            let pool_bytes = 2 << 30;
            let durability = Durability::Lazy;
            // No disk that is slow: the seed's had room.
            let disk = if site.quick { "20000iops,300MiB" } else { "4000iops,64MiB" };
            let (threads, disk) = (threads.to_owned(), disk.to_owned());
            let warmup = Some(5);
            Site { threads, rows, log_bytes, pool_bytes, durability, disk, warmup, ..site }
        },
        work: Work::Arms(|_| {
            vec![
                Arm::deadline(),
                Arm::new("furious", Kind::Furious)
                    .with(|knobs| knobs.threads = 0)
                    .capacity(0.1, 0.1)
                    .original("5411, 36473, 9718, 7367*"),
                Arm::new("mysql_5_6", Kind::Mysql56)
                    .with(|knobs| knobs.threads = 0)
                    .capacity(1.0, 2.0)
                    .original("4372, 34656, 70662, 23828*"),
            ]
        }),
        judge: |results| {
            let phases = |name: &str| results.get(name).phases;
            let shown = |name: &str| {
                let all = phases(name);
                let cells = all.iter().map(|(threads, tps)| format!("{threads}: {tps:.0}"));
                cells.collect::<Vec<_>>().join(", ")
            };
            let falls = |name: &str| {
                let all = phases(name);
                let best = all.iter().map(|phase| phase.1).fold(0.0, f64::max);
                all.last().is_some_and(|last| last.1 < 0.7 * best)
            };
            Finding::new(
                falls("furious") && !falls("mysql_5_6"),
                format!(
                    "updates a second by clients are, furious, {}; mysql_5_6, {}; deadline, {} \
                     (* the seed's column of 64 clients is of 8 tables)",
                    shown("furious"),
                    shown("mysql_5_6"),
                    shown("deadline")
                ),
            )
        },
    }
}

const THREADS_FULL: &str = "1:120s,2:120s,4:120s,8:120s,16:120s,32:120s,64:120s";

fn io_bound() -> Experiment {
    Experiment {
        number: 8,
        name: "IO-bound updates, data sixteen times the pool",
        seed: "1, MySQL 5.6: flushing potential (2013)",
        found: "updates reach the peak rate of LRU flushing (15.5k of 16k) once a bug is fixed; \
                4.0 reaches 6.7k",
        missing: "8 tables",
        site: |site| {
            let (rows, pool_bytes) =
                if site.quick { (400_000, 4 << 20) } else { (14_000_000, 128 << 20) };
            // So that what binds is the pool: a log that hardly wraps.
            let log_bytes = if site.quick { 16 << 20 } else { 512 << 20 };
            Site { rows, pool_bytes, log_bytes, durability: Durability::Lazy, ..site }
        },
        work: Work::Arms(|_| {
            let scan = |knobs: &mut crate::policies::Knobs| {
                (knobs.pool_instances, knobs.lru_scan_depth, knobs.threads) = (4, 4000, 0);
            };
            vec![
                Arm::deadline(),
                Arm::new("furious", Kind::Furious)
                    .with(|knobs| knobs.threads = 0)
                    .original("6759 at 16 clients"),
                Arm::new("mysql_5_6", Kind::Mysql56)
                    .with(scan)
                    .capacity(1.0, 2.0)
                    .original("15514 of 16000 (fixed)"),
            ]
        }),
        judge: |results| {
            let (furious, paced) = (results.get("furious"), results.get("mysql_5_6"));
            Finding::new(
                paced.tps > furious.tps,
                format!(
                    "mysql_5_6 has {:.0} updates/s with {:.0} % of its page writes for free \
                     frames, furious {:.0}, deadline {:.0}; the disk, not the scan depth, sets \
                     the peak here",
                    paced.tps,
                    100.0 * paced.free_share,
                    furious.tps,
                    results.get("deadline").tps
                ),
            )
        },
    }
}

fn xtradb() -> Experiment {
    Experiment {
        number: 9,
        name: "XtraDB on a solid-state disk: io_capacity, keep_average, neighbours",
        seed: "3, MariaDB and SSD: the checkpoint blues (2013)",
        found: "io_capacity=20000 removes the stall but leaves a spike of writes at 75 % of the \
                age; keep_average fails; neighbours none is best",
        missing: "",
        site: |site| {
            let log_bytes = if site.quick { site.log_bytes } else { 256 << 20 };
            let warehouses = if site.quick { 0 } else { 8 };
            Site { log_bytes, warehouses, pool_bytes: site.pool_bytes / 2, ..site }
        },
        work: Work::Arms(|_| {
            let estimate = |name: &str, neighbours| {
                Arm::new(name, Kind::Estimate)
                    .with(|knobs| knobs.threads = 0)
                    .capacity(2.0, 2.0)
                    .neighbours(neighbours)
            };
            vec![
                Arm::deadline(),
                estimate("estimate, C low, area", Neighbours::Area)
                    .capacity(0.05, 0.05)
                    .original("stall"),
                estimate("estimate, area", Neighbours::Area).original("no stall; spike at 370 s"),
                Arm::new("keep_average, area", Kind::KeepAverage)
                    .with(|knobs| knobs.threads = 0)
                    .capacity(2.0, 2.0)
                    .neighbours(Neighbours::Area)
                    .original("FAIL"),
                estimate("estimate, contiguous", Neighbours::Contiguous)
                    .original("smaller spike at 400 s"),
                estimate("estimate, none", Neighbours::None).original("best"),
                // XtraDB's first attempt: the seed does not run it, the reference names it.
                Arm::new("reflex, none", Kind::Reflex)
                    .with(|knobs| knobs.threads = 0)
                    .capacity(2.0, 2.0),
            ]
        }),
        judge: |results| {
            let (area, none) = (results.get("estimate, area"), results.get("estimate, none"));
            Finding::new(
                none.tps > area.tps,
                format!(
                    "estimate writes {:.3} pages a transaction with the area's neighbours and \
                     {:.3} without, at {:.0} and {:.0} tps; keep_average has {:.0} with CV {:.3}, \
                     reflex, their forerunner, {:.0} with {:.3}",
                    area.pages_per_tx,
                    none.pages_per_tx,
                    area.tps,
                    none.tps,
                    results.get("keep_average, area").tps,
                    results.get("keep_average, area").cv,
                    results.get("reflex, none").tps,
                    results.get("reflex, none").cv
                ),
            )
        },
    }
}

fn log_size() -> Experiment {
    Experiment {
        number: 10,
        name: "how large a log: 4 GB or 30",
        seed: "4, What is a big innodb_log_file_size? (2016)",
        found: "the small log costs 20 % of throughput and has seconds without a transaction; \
                with the large one pages are flushed for the LRU, not for the log",
        missing: "",
        site: |site| {
            // Data 2.3 times the pool, as 150 GB are of 64.
            let pool_bytes = if site.quick { 20 << 20 } else { 1 << 30 };
            let log_bytes = if site.quick { 768 << 10 } else { 64 << 20 };
            Site { pool_bytes, log_bytes, warehouses: 28, ..site }
        },
        work: Work::Arms(|_| {
            // 5000/7500 where the small log needed about all of it.
            let mysql = |name: &str| {
                Arm::new(name, Kind::Mysql8).capacity(0.67, 1.0).with(|knobs| knobs.threads = 0)
            };
            vec![
                Arm::deadline(),
                mysql("mysql_8, small log").original("-20 % tps, zero seconds"),
                mysql("mysql_8, log x7.5").log(7.5).original("reference"),
                Arm::deadline().log(7.5).named("deadline, log x7.5"),
            ]
        }),
        judge: |results| {
            let (small, large) =
                (results.get("mysql_8, small log"), results.get("mysql_8, log x7.5"));
            Finding::new(
                small.tps < 0.9 * large.tps && large.free_share > small.free_share,
                format!(
                    "the small log has {:.0} tps with {} stalled seconds and {:.0} % of page \
                     writes for free frames, the large one {:.0} with {} and {:.0} %",
                    small.tps,
                    small.stalled,
                    100.0 * small.free_share,
                    large.tps,
                    large.stalled,
                    100.0 * large.free_share
                ),
            )
        },
    }
}

fn recovery() -> Experiment {
    Experiment {
        number: 11,
        name: "kill with an old checkpoint: how long until it is open again",
        seed: "4, What is a big innodb_log_file_size? (2016)",
        found: "10 GB of age take 20 minutes, 25 GB take 45, on one core: 9 MB of log a second",
        missing: "",
        site: |site| {
            let (rows, log_bytes) =
                if site.quick { (1_000_000, 64 << 20) } else { (10_000_000, 400 << 20) };
            Site { rows, log_bytes, pool_bytes: 2 << 30, page_size: 8192, ..site }
        },
        work: Work::Recoveries(&[
            ("1 thread", "20 min for 10 GB: 8.5 MB/s", 1),
            ("2 threads", "45 min for 25 GB: 9.3 MB/s", 2),
        ]),
        judge: |results| {
            let rates = [results.get("1 thread").tps, results.get("2 threads").tps];
            Finding::new(
                rates[0] < 30.0,
                format!(
                    "with one thread {:.0} MB of log are recovered a second, with two {:.0}, \
                     where the seed had 9",
                    rates[0], rates[1]
                ),
            )
        },
    }
}

/// Bursts of twice the usual clients, then a wave from few to many and back.
const BURSTS_AND_WAVE: &str =
    "4:120s,64:30s,4:120s,64:30s,4:120s,10:60s,18:60s,26:60s,32:60s,26:60s,18:60s,10:60s,4:60s";
const BURSTS_AND_WAVE_QUICK: &str = "4:1s,64:1s,4:1s,64:1s,4:1s,14:1s,24:1s,32:1s,24:1s,14:1s";

fn change() -> Experiment {
    Experiment {
        number: 12,
        name: "the load changes, and the log's size, while it runs",
        seed: "0 and 4: what their authors wish for",
        found: "it is impossible to come up with a value of io_capacity for a load that changes; \
                the log cannot be resized without a restart",
        missing: "where the log is resized, ages are parts of the smaller log's limit: beyond 100 \
                  % are those that the larger one left; quick bursts and waves change by the \
                  second, so that their CV and worst second are those of very few",
        site: |site| {
            let threads = if site.quick { "4:4s,32:4s,4:4s" } else { "4:600s,32:600s,4:600s" };
            let seconds = if site.quick { 12 } else { 1800 };
            let warmup = Some(if site.quick { 3 } else { 600 });
            // Small enough that four threads have filled it when the first step comes.
            let log_bytes = if site.quick { site.log_bytes / 2 } else { site.log_bytes };
            Site { threads: threads.to_owned(), seconds, warmup, log_bytes, ..site }
        },
        work: Work::Arms(|site| {
            // Twice as large in the middle of the first step, back in the middle of the second.
            let resizes =
                vec![Resize { after: 0.17, factor: 2.0 }, Resize { after: 0.5, factor: 1.0 }];
            let mysql = |name: &str, capacity| {
                Arm::new(name, Kind::Mysql8)
                    .capacity(capacity, capacity)
                    .with(|knobs| knobs.threads = 0)
            };
            let own = Arm::deadline().named("deadline, log x2 and back");
            let other = mysql("mysql_8 C=1, log x2 and back", 1.0);
            let load = Some(if site.quick { BURSTS_AND_WAVE_QUICK } else { BURSTS_AND_WAVE });
            vec![
                Arm::deadline(),
                mysql("mysql_8 C=1", 1.0),
                mysql("mysql_8 C=2", 2.0),
                Arm { resizes: resizes.clone(), ..own },
                Arm { resizes, ..other },
                Arm { load, ..Arm::deadline().named("deadline, bursts and a wave") },
                Arm { load, ..mysql("mysql_8 C=1, bursts and a wave", 1.0) },
            ]
        }),
        judge: |results| {
            let stalled = |name: &str| results.get(name).stalled;
            let (own, resized) = ("deadline", "deadline, log x2 and back");
            let waves = "deadline, bursts and a wave";
            let steps = |name: &str| {
                let all = results.get(name).phases;
                let cells = all.iter().map(|(threads, tps)| format!("{threads}: {tps:.0}"));
                cells.collect::<Vec<_>>().join(", ")
            };
            Finding::new(
                stalled(own) + stalled(resized) + stalled(waves) == 0,
                format!(
                    "without a knob there are {} stalled seconds and by threads {}; mysql_8 with \
                     C as needed on average has {}, with twice that {}. While the log is resized \
                     twice deadline has {} stalled seconds, mysql_8 {}; with bursts and a wave {} \
                     and {}",
                    stalled(own),
                    steps(own),
                    steps("mysql_8 C=1"),
                    steps("mysql_8 C=2"),
                    stalled(resized),
                    stalled("mysql_8 C=1, log x2 and back"),
                    stalled(waves),
                    stalled("mysql_8 C=1, bursts and a wave"),
                ),
            )
        },
    }
}
