//! When a disk of given rates has done what it is asked: pure arithmetic, no clock.
use crate::spec::{DiskSpec, RateChange};

/// An idle disk is at most this far ahead of its work, in microseconds. Without any credit, each
/// moment that a caller wakes too late would be lost capacity.
const CREDIT_MICROS: f64 = 2_000.0;

/// Two servers in parallel, one of operations and one of bytes, each first come, first served. An
/// operation is done when both have served it.
pub struct Bucket {
    ops: Server,
    bytes: Server,
    changes: Vec<RateChange>,
}

impl Bucket {
    /// An idle disk; its time begins at 0.
    #[must_use]
    pub fn new(spec: &DiskSpec) -> Self {
        let server = |rate: Option<u64>| match rate {
            None => Server::Free,
            Some(rate) => {
                let per_micro = rate as f64 / 1e6;
                if spec.slice_micros > 0 {
                    let length = spec.slice_micros as f64;
                    Server::Sliced { per_micro, length, slice: 0, left: None }
                } else {
                    Server::Smooth { per_micro, next_free: 0.0 }
                }
            }
        };
        Bucket {
            ops: server(spec.iops),
            bytes: server(spec.bytes_per_second),
            changes: spec.changes.clone(),
        }
    }

    /// Queues work that arrives at `now_micros`, and says when it is done, in the same time.
    /// That may be before `now_micros` when the disk was idle.
    pub fn serve(&mut self, now_micros: u64, ops: u64, bytes: u64) -> u64 {
        let now = now_micros as f64;
        let ops_done = self.ops.serve(now, ops as f64, &self.changes);
        let bytes_done = self.bytes.serve(now, bytes as f64, &self.changes);
        ops_done.max(bytes_done).ceil() as u64
    }
}

enum Server {
    Free,
    /// `next_free`: when all that was asked so far is done.
    Smooth {
        per_micro: f64,
        next_free: f64,
    },
    /// `left`: what is left of that slice; `None` before its first use.
    Sliced {
        per_micro: f64,
        length: f64,
        slice: u64,
        left: Option<f64>,
    },
}

impl Server {
    fn serve(&mut self, now: f64, amount: f64, changes: &[RateChange]) -> f64 {
        match self {
            // No work, but not during a stall either.
            Server::Free if factor_at(now, changes) == 0.0 => {
                work_until(now, f64::EPSILON, changes)
            }
            Server::Free => 0.0,
            Server::Smooth { per_micro, next_free } => {
                let start = next_free.max(now - CREDIT_MICROS).max(0.0);
                *next_free = work_until(start, amount / *per_micro, changes);
                *next_free
            }
            Server::Sliced { per_micro, length, slice, left } => {
                let begin = |slice: u64| slice as f64 * *length;
                let budget = |slice: u64| *per_micro * *length * factor_at(begin(slice), changes);
                let present = (now / *length) as u64;
                if present > *slice {
                    (*slice, *left) = (present, None);
                }
                let mut available = left.unwrap_or_else(|| budget(*slice));
                let mut wanted = amount;
                // Sums of tenths are not exact; a millionth of a token more or less is none.
                while wanted > available + 1e-6 {
                    wanted -= available;
                    *slice += 1;
                    available = budget(*slice);
                }
                *left = Some((available - wanted).max(0.0));
                begin(*slice).max(now.min(begin(*slice + 1)))
            }
        }
    }
}

/// When work of `full_speed_micros` is done that begins at `start`.
fn work_until(start: f64, full_speed_micros: f64, changes: &[RateChange]) -> f64 {
    let (mut at, mut left) = (start, full_speed_micros);
    loop {
        let factor = factor_at(at, changes);
        let Some(next) = next_change(at, changes) else {
            // After the last change the factor is one again.
            return at + left / factor;
        };
        let possible = (next - at) * factor;
        if left <= possible {
            return if left > 0.0 { at + left / factor } else { at };
        }
        left -= possible;
        at = next;
    }
}

/// What the rates are multiplied by at a moment.
fn factor_at(at: f64, changes: &[RateChange]) -> f64 {
    let holds = |change: &&RateChange| at >= start_of(change) && at < end_of(change);
    changes.iter().filter(holds).map(|c| f64::from(c.factor_thousandths) / 1000.0).product()
}

/// The next moment at which the factor changes.
fn next_change(at: f64, changes: &[RateChange]) -> Option<f64> {
    let edges = changes.iter().flat_map(|change| [start_of(change), end_of(change)]);
    edges.filter(|&edge| edge > at).min_by(f64::total_cmp)
}

fn start_of(change: &RateChange) -> f64 {
    change.start_micros as f64
}

fn end_of(change: &RateChange) -> f64 {
    (change.start_micros + change.duration_micros) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECOND: u64 = 1_000_000;

    fn bucket(spec: &str) -> Bucket {
        Bucket::new(&spec.parse().unwrap())
    }

    /// (now, ops, bytes, finish) one after another.
    fn check(spec: &str, steps: &[(u64, u64, u64, u64)]) {
        let mut bucket = bucket(spec);
        for (number, &(now, ops, bytes, finish)) in steps.iter().enumerate() {
            assert_eq!(bucket.serve(now, ops, bytes), finish, "{spec}, step {number}");
        }
    }

    #[test]
    fn first_come_first_served() {
        check("1000iops", &[(0, 1, 0, 1000), (0, 2, 0, 3000), (100, 1, 1 << 30, 4000)]);
        check("1000iops", &[(0, 10, 0, 10_000), (10_000, 1, 0, 11_000), (10_900, 1, 0, 12_000)]);
        check("1MiB", &[(0, 9, 1 << 20, SECOND), (5, 9, 1 << 19, SECOND * 3 / 2)]);
        check("none", &[(7, 1000, 1 << 40, 0)]);
    }

    #[test]
    fn done_when_both_have_served() {
        let (few_large, many_small) = ((0, 1, 1 << 20, SECOND), (0, 3000, 0, 3001 * 1000));
        check("1000iops,1MiB", &[few_large, many_small]);
    }

    #[test]
    fn oversleeping_loses_nothing_and_idling_banks_little() {
        // The second caller comes 700 us late, and still finishes on the beat.
        check("1000iops", &[(0, 1, 0, 1000), (1700, 1, 0, 2000)]);
        // After a long idle time, credit for 2 ms and no more.
        let idle = 10 * SECOND;
        check(
            "1000iops",
            &[(idle, 1, 0, idle - 1000), (idle, 1, 0, idle), (idle, 1, 0, idle + 1000)],
        );
    }

    #[test]
    fn slices_are_used_at_once() {
        // 100 operations per slice.
        check(
            "1000iops,slices",
            &[
                (0, 60, 0, 0),
                (10, 40, 0, 10),
                (20, 1, 0, 100_000),
                (30, 99, 0, 100_000),
                (40, 1, 0, 200_000),
                (250_000, 99, 0, 250_000),
                // An idle slice banks nothing, and a large batch takes several.
                (900_000, 250, 0, 1_100_000),
                (900_000, 50, 0, 1_100_000),
                (900_000, 1, 0, 1_200_000),
            ],
        );
    }

    #[test]
    fn slices_have_the_length_that_was_asked_for() {
        check("100iops,slices=1s", &[(0, 100, 0, 0), (10, 1, 0, SECOND), (20, 100, 0, 2 * SECOND)]);
    }

    #[test]
    fn rates_change_on_schedule() {
        check("1000iops,half=1s+1s", &[(0, 1000, 0, SECOND), (0, 500, 0, 2 * SECOND)]);
        check("1000iops,half=1s+1s", &[(0, 2000, 0, SECOND * 5 / 2)]);
        check("1000iops,stall=1s+1s", &[(0, 1500, 0, SECOND * 5 / 2)]);
        check("1000iops,stall=0s+1s", &[(0, 1, 0, SECOND + 1000)]);
        check("1000iops,x2=0s+1s", &[(0, 3000, 0, 2 * SECOND)]);
        check("1000iops,half=0s+1s,half=0s+1s", &[(0, 250, 0, SECOND)]);
        check("1000iops,slices,stall=0s+1s", &[(0, 1, 0, SECOND), (0, 100, 0, SECOND + 100_000)]);
        check(
            "none,stall=1s+1s",
            &[(0, 1, 0, 0), (SECOND, 1, 0, 2 * SECOND), (2 * SECOND, 1, 0, 0)],
        );
        check("1000iops,slices,half=0s+1s", &[(0, 51, 0, 100_000)]);
    }

    proptest! {
        /// Never faster than the rate plus the credit (or one slice), and never idle while a thread
        /// waits.
        #[test]
        fn the_rate_is_kept(
            slices in any::<bool>(),
            calls in prop::collection::vec((0u64..5_000, 1u64..20), 1..200)
        ) {
            let slice_micros = if slices { 100_000 } else { 0 };
            let spec = DiskSpec { iops: Some(2000), slice_micros, ..DiskSpec::default() };
            let mut bucket = Bucket::new(&spec);
            let (mut now, mut total, mut last) = (0, 0, 0);
            for (gap, ops) in calls {
                now += gap;
                total += ops;
                let finish = bucket.serve(now, ops, 0);
                prop_assert!(finish >= last, "first come, first served");
                last = finish;
                let ahead = if slices { 200.0 } else { 4.0 };
                let done_by = finish.max(now) as f64;
                prop_assert!(total as f64 <= done_by * 0.002 + ahead + 1.0);
            }
            prop_assert!(last as f64 <= now as f64 + total as f64 * 500.0 + 100_000.0);
        }
    }
}
