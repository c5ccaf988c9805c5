//! Seed 0, "More on Checkpoints in InnoDB MySQL 8" (2020): experiments 2 to 6. There C = 7000 was
//! what the work needed (6961 pages a second, `docs/flushing.md` section 1); other values of C
//! are multiples of that.
use super::{Experiment, Work};
use crate::arm::{Arm, Site};
use crate::judge::Finding;
use crate::policies::Kind;

/// What the seed's work needed, in pages a second.
const NEED: f64 = 6961.0;

fn mysql(io_capacity: f64) -> Arm {
    Arm::new(&format!("mysql_8 C={io_capacity}"), Kind::Mysql8)
        .capacity(io_capacity / NEED, io_capacity / NEED)
        .with(|knobs| knobs.threads = 0)
}

pub(super) fn experiments() -> Vec<Experiment> {
    vec![too_low(), doublewrite(), instances(), sweep(), larger_log()]
}

fn too_low() -> Experiment {
    Experiment {
        number: 2,
        name: "io_capacity too low: 2000/4000, then 7000",
        seed: "0, More on Checkpoints in InnoDB MySQL 8 (2020)",
        found: "with 2000/4000 pages are flushed at 4000 a second, the age passes its limit of \
                16.61 GiB, emergency flushing makes waves",
        missing: "",
        site: |site| site,
        work: Work::Arms(|_| {
            vec![
                Arm::deadline(),
                mysql(2000.0)
                    .capacity(2000.0 / NEED, 4000.0 / NEED)
                    .named("mysql_8 C=2000/4000")
                    .original("waves; age > 16.61 GiB"),
                mysql(7000.0).original("5600 pages/s, still waves"),
            ]
        }),
        judge: |results| {
            let low = results.get("mysql_8 C=2000/4000");
            // The limit that the policy works against is 7/8 of 0.95 of the log.
            let passed = low.age_max > 0.83;
            Finding::new(
                passed && low.cv > results.get("deadline").cv,
                format!(
                    "with C and Cm at 0.29 and 0.57 of the need the age goes up to {:.0} % of \
                     Weir's limit, past the synchronous point, with CV {:.3} and {} stalled \
                     seconds",
                    100.0 * low.age_max,
                    low.cv,
                    low.stalled
                ),
            )
        },
    }
}

fn doublewrite() -> Experiment {
    Experiment {
        number: 3,
        name: "doublewrite pages 4 to 128",
        seed: "0, More on Checkpoints in InnoDB MySQL 8 (2020)",
        found: "doublewrite_pages=128 (files=2) instead of 4 removes the waves at C=7000",
        missing: "out-of-place writes: the page store has none. The disk takes 1 ms to sync here: \
                  without that, a batch's syncs cost nothing",
        site: |site| Site { disk: format!("{},sync=1ms", site.disk), ..site },
        work: Work::Arms(|_| {
            vec![
                Arm::deadline().doublewrite_pages(128),
                mysql(7000.0)
                    .doublewrite_pages(4)
                    .named("mysql_8 pages=4")
                    .original("waves at 5600 pages/s"),
                mysql(7000.0)
                    .doublewrite_pages(128)
                    .named("mysql_8 pages=128")
                    .original("7579 tps, no waves"),
                mysql(7000.0).doublewrite_off().named("mysql_8 off"),
                Arm::deadline().doublewrite_pages(4).named("deadline pages=4"),
                Arm::deadline().doublewrite_off().named("deadline off"),
            ]
        }),
        judge: |results| {
            let (few, many) = (results.get("mysql_8 pages=4"), results.get("mysql_8 pages=128"));
            // Waves are what it is about; what they cost depends on how deep they are.
            Finding::new(
                many.cv < few.cv / 2.0,
                format!(
                    "batches of 4 pages give {:.0} tps with CV {:.3}, batches of 128 {:.0} with \
                     {:.3}",
                    few.tps, few.cv, many.tps, many.cv
                ),
            )
        },
    }
}

fn instances() -> Experiment {
    Experiment {
        number: 4,
        name: "hash index, pool instances, change buffering",
        seed: "0, More on Checkpoints in InnoDB MySQL 8 (2020)",
        found: "no adaptive hash index: 7579 to 7996 tps; 32 pool instances: less variance at \
                the same mean; change buffering: no difference",
        missing: "the hash index and the change buffer: this engine has neither; of pool \
                  instances only what the formula makes of them (one list of dirty pages here)",
        site: |site| site,
        work: Work::Arms(|_| {
            vec![
                Arm::deadline(),
                mysql(7000.0).named("mysql_8 instances=8").original("7996 tps"),
                mysql(7000.0)
                    .with(|knobs| knobs.pool_instances = 32)
                    .named("mysql_8 instances=32")
                    .original("7936 tps, less variance"),
            ]
        }),
        judge: |results| {
            let (few, many) =
                (results.get("mysql_8 instances=8"), results.get("mysql_8 instances=32"));
            let same = (many.tps / few.tps.max(1.0) - 1.0).abs() < 0.05;
            Finding::new(
                same && many.cv <= few.cv,
                format!(
                    "32 instances give {:.0} tps with CV {:.3}, 8 give {:.0} with {:.3}; that is \
                     the formula's division alone",
                    many.tps, many.cv, few.tps, few.cv
                ),
            )
        },
    }
}

fn sweep() -> Experiment {
    Experiment {
        number: 5,
        name: "io_capacity 8000, 7000, 6500: less is more",
        seed: "0, More on Checkpoints in InnoDB MySQL 8 (2020)",
        found: "the lower C, the older the checkpoint and the higher the throughput, as long as \
                the age stays below its limit: 7 % between 8000 and 6500",
        missing: "",
        site: |site| site,
        work: Work::Arms(|_| {
            vec![
                Arm::deadline(),
                mysql(8000.0).original("7693 tps, age 12.51 GiB"),
                mysql(7000.0).original("7936 tps, age 13.66 GiB"),
                mysql(6500.0).original("8234 tps, age 15.47 GiB"),
            ]
        }),
        judge: |results| {
            let at = ["8000", "7000", "6500"].map(|c| results.get(&format!("mysql_8 C={c}")));
            let older = at[0].age_mean < at[1].age_mean && at[1].age_mean < at[2].age_mean;
            let faster = at[0].tps < at[2].tps;
            Finding::new(
                older && faster,
                format!(
                    "mean ages of {:.0}, {:.0} and {:.0} % of the limit go with {:.0}, {:.0} and \
                     {:.0} tps",
                    100.0 * at[0].age_mean,
                    100.0 * at[1].age_mean,
                    100.0 * at[2].age_mean,
                    at[0].tps,
                    at[1].tps,
                    at[2].tps
                ),
            )
        },
    }
}

fn larger_log() -> Experiment {
    Experiment {
        number: 6,
        name: "a log twice as large: io_capacity must come down",
        seed: "0, More on Checkpoints in InnoDB MySQL 8 (2020)",
        found: "with twice the log C=7000 leaves a third of it unused; C=4500 uses it and gains \
                5.2 %",
        missing: "",
        site: |site| site,
        work: Work::Arms(|_| {
            let mut large = vec![
                mysql(7000.0).log(2.0).original("9374 tps, age 22.58 GiB"),
                mysql(4500.0).log(2.0).original("9865 tps, age 29.80 GiB"),
            ];
            // The need is that of the smaller log, which C = 7000 was found for.
            large.insert(0, Arm::deadline());
            large.push(Arm::deadline().log(2.0).named("deadline, log x2"));
            large
        }),
        judge: |results| {
            let (high, low) = (results.get("mysql_8 C=7000"), results.get("mysql_8 C=4500"));
            Finding::new(
                low.age_mean > high.age_mean && low.tps > high.tps,
                format!(
                    "C=4500 holds the age at {:.0} % of the limit with {:.0} tps, C=7000 at {:.0} \
                     % with {:.0}",
                    100.0 * low.age_mean,
                    low.tps,
                    100.0 * high.age_mean,
                    high.tps
                ),
            )
        },
    }
}
