//! Bursts and slow disks, with every policy beside `deadline`: experiments 13 and 14. No seed has
//! them; what they ask is what all seeds want, that the log's room is used and no commit stalls.
use super::{Experiment, Work};
use crate::arm::{Arm, Site};
use crate::judge::{Finding, behind};
use crate::policies::Kind;

/// Bursts of 10, 30, 60 and 300 seconds on a database that is clean at first, with pauses.
const BURSTS: &str = "32:10s,1:90s,32:30s,1:90s,32:60s,1:90s,32:300s,1:90s";
/// On a log that is full within some seconds.
const BURSTS_QUICK: &str = "32:1s,1:4s,32:2s,1:4s,32:4s,1:4s,32:10s,1:4s";
/// The disks of experiment 14, and how many times the log of the slowest each gets: what goes round
/// within a second has no room for a disk that stands still for one.
const DISKS: [(&str, f64); 3] =
    [("hdd", 1.0), ("500iops,8MiB", 4.0), ("2000iops,32MiB,slices=1s", 8.0)];

pub(super) fn experiments() -> Vec<Experiment> {
    vec![bursts(), slow_disks()]
}

/// The policy with what its work needs on average; `deadline` has no such knob.
fn arm(kind: Kind) -> Arm {
    match kind {
        Kind::Deadline => Arm::deadline(),
        other => Arm::new(other.name(), other),
    }
}

fn bursts() -> Experiment {
    Experiment {
        number: 13,
        name: "bursts with pauses, from a clean start",
        seed: "none; what seed 0 asks for: do not flush aggressively",
        found: "an age below its limit is room, and writing early gives it away",
        missing: "a restart and a burst that meets an age at its limit are in the simulator \
                  (crates/checkpoint/tests/it/bursts.rs)",
        site: |site| {
            let threads = if site.quick { BURSTS_QUICK } else { BURSTS };
            let disk = "2000iops,32MiB".to_owned();
            let (log_bytes, pool_bytes) = match site.quick {
                true => (site.log_bytes, site.pool_bytes),
                false => (256 << 20, 4 << 30),
            };
            let page_size = 8192;
            Site { threads: threads.to_owned(), disk, log_bytes, pool_bytes, page_size, ..site }
                .measured_at_once()
        },
        work: Work::Arms(|_| Kind::ALL.map(arm).into()),
        judge: |results| {
            let deadline = results.get("deadline");
            let others = Kind::ALL.iter().filter(|kind| **kind != Kind::Deadline);
            let said = others.map(|kind| behind(&deadline, &results.get(kind.name())));
            let (ahead, lines): (Vec<bool>, Vec<String>) = said.unzip();
            let all = ahead.iter().all(|ahead| *ahead);
            Finding::new(all, format!("in transactions since the start, {}", lines.join("; ")))
        },
    }
}

fn slow_disks() -> Experiment {
    Experiment {
        number: 14,
        name: "slow disks: hdd, 500 writes/s, slices of a second",
        seed: "none; what seed 3 asks for: no stall on any disk",
        found: "a policy that was tuned on one disk makes waves on another",
        missing: "",
        site: |site| {
            // So small a log goes round twice in the warm-up of a disk of 180 writes a second too:
            // before, what is seen is which policy still lets its age rise.
            let (rows, log_bytes, seconds) =
                if site.quick { (20_000, 2 << 20, 30) } else { (80_000, 8 << 20, 120) };
            let threads = "16".to_owned();
            Site {
                rows,
                warehouses: 0,
                page_size: 8192,
                pool_bytes: 128 << 20,
                log_bytes,
                threads,
                warmup: Some(seconds),
                seconds,
                ..site
            }
        },
        work: Work::Arms(|_| {
            let on = |(disk, log_factor): (&'static str, f64)| {
                Kind::ALL.map(|kind| {
                    let arm = arm(kind);
                    let name = match (disk, kind) {
                        ("hdd", Kind::Deadline) => arm.name.clone(),
                        _ => format!("{} {disk}", arm.name),
                    };
                    Arm { disk: Some(disk), log_factor, ..arm.named(&name) }
                })
            };
            DISKS.into_iter().flat_map(on).collect()
        }),
        judge: |results| {
            let named = |kind: &str, disk: &str| match (kind, disk) {
                ("deadline", "hdd") => results.get("deadline"),
                _ => results.get(&format!("{kind} {disk}")),
            };
            let mut waves = true;
            let lines = DISKS.map(|(disk, _)| {
                let own = named("deadline", disk);
                let others = Kind::ALL.iter().filter(|kind| **kind != Kind::Deadline);
                let worst = others.map(|kind| named(kind.name(), disk).cv).fold(0.0, f64::max);
                waves &= worst > own.cv;
                format!("{disk}: CV {:.3}, and up to {worst:.3} with others", own.cv)
            });
            Finding::new(waves, lines.join("; "))
        },
    }
}
