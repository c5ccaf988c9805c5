//! Whether the leader of a round of group commit should wait a moment for others to join: a pure
//! decision over counts and times.
//!
//! Threads that commit in a closed loop come back within microseconds of being released. A leader
//! that starts at once would write alone, with all others in the next round: halves alternate and
//! each commit waits for two writes. So the leader waits until as many have come as took part in
//! the last round or came while it was written, but no longer than a part of a write's time, and
//! only while that pays: when what the waits brought is not worth the time that they took, the next
//! rounds start at once, ever more of them.

/// The share of a write's time that a leader waits at most, in percent.
const PATIENCE_PERCENT: u64 = 75;
/// What a wait has to bring, in percent of what it takes: it gives the processor away again and
/// again, which costs those who run meanwhile (measured: docs/decisions/gathering.md).
const WORTH_PERCENT: u64 = 150;
/// Longer waits count as this much: where a write takes long, processors are idle meanwhile and
/// the device's writes are what is short.
const COST_MICROS_MAX: u64 = 100;
/// The most rounds in a row without waiting.
const REST_MAX: u32 = 63;
/// Rounds longer than this are slept through.
const LINGER_WRITE_MICROS_MAX: u64 = 100;
/// How many times a round's length a waiter stays awake: the rest of the round under way, its own
/// round, and the gathering before it.
const LINGER_ROUNDS: u64 = 3;
/// The longest that a waiter stays awake.
const LINGER_MICROS_MAX: u64 = 150;

#[derive(Default)]
pub(crate) struct Gather {
    /// Arrivals that were there when the last round was closed.
    closed_at: u64,
    /// How many took part in the last round, or came while it was written.
    expected: u64,
    /// Mean time of a durable write, in sixteenths of a microsecond.
    write_time: u64,
    /// Rounds to start without waiting.
    rest: u32,
    rest_next: u32,
    /// What waits brought lately: who came, as a share of who was there already.
    brought: Lately,
    /// What they took: the time, as a share of a write's.
    took: Lately,
}

/// A sum of shares in 1/64, of which each later one leaves seven eighths.
#[derive(Default)]
struct Lately(u64);

impl Lately {
    fn add(&mut self, part: u64, whole: u64) {
        self.0 = self.0 * 7 / 8 + part * 64 / whole.max(1);
    }
}

/// What a leader should do before it closes its round.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Wait {
    /// Until this many have arrived (counted since the log was opened),
    pub(crate) until_arrived: u64,
    /// but no longer than this.
    pub(crate) micros_max: u64,
}

impl Gather {
    /// For a leader that sees `arrived` arrivals so far; `None`: start at once.
    pub(crate) fn plan(&mut self, arrived: u64) -> Option<Wait> {
        let until_arrived = self.closed_at + self.expected;
        if arrived >= until_arrived {
            return None;
        }
        if self.rest > 0 {
            self.rest -= 1;
            return None;
        }
        let micros_max = self.write_micros() * PATIENCE_PERCENT / 100;
        (micros_max > 0).then_some(Wait { until_arrived, micros_max })
    }

    /// After waiting for `micros`: `before` and `after` are the arrivals seen.
    ///
    /// Where `n` are there, `k` more spare `k/n` of a write: theirs would have served `n` as well.
    pub(crate) fn waited(&mut self, before: u64, after: u64, micros: u64) {
        self.brought.add(after - before, before - self.closed_at);
        self.took.add(micros.min(COST_MICROS_MAX), self.write_micros());
        if self.brought.0 * 100 >= self.took.0 * WORTH_PERCENT {
            self.rest_next = 0;
        } else {
            self.rest_next = (self.rest_next * 2 + 1).min(REST_MAX);
            self.rest = self.rest_next;
        }
    }

    /// Mean time of a durable write.
    fn write_micros(&self) -> u64 {
        self.write_time / 16
    }

    /// How long a waiter should stay awake before it sleeps, in microseconds. With fewer than three
    /// threads there is nobody whose waking is spared.
    pub(crate) fn linger_micros(&self) -> u32 {
        let write_micros = self.write_micros();
        if self.expected < 3 || write_micros > LINGER_WRITE_MICROS_MAX {
            return 0;
        }
        (write_micros * LINGER_ROUNDS).min(LINGER_MICROS_MAX) as u32
    }

    /// A durable round was closed when `at_close` had arrived, took `micros`, and `at_end` have
    /// arrived by now. Gives the number of those that it served.
    pub(crate) fn finished(&mut self, at_close: u64, at_end: u64, micros: u64) -> u64 {
        let members = at_close - self.closed_at;
        self.expected = at_end - self.closed_at;
        self.closed_at = at_close;
        let time = (micros * 16).clamp(1, 16_000_000);
        self.write_time =
            if self.write_time == 0 { time } else { (self.write_time * 7 + time) / 8 };
        members
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thread_never_waits() {
        let mut gather = Gather::default();
        for n in 1..100 {
            assert_eq!(gather.plan(n), None);
            assert_eq!(gather.finished(n, n, 30), 1);
        }
    }

    #[test]
    fn a_leader_waits_for_those_who_were_there() {
        let mut gather = Gather::default();
        // Eight threads: one leads, seven arrive meanwhile.
        gather.finished(1, 8, 40);
        let plan = gather.plan(8).unwrap_or(Wait { until_arrived: 0, micros_max: 0 });
        assert_eq!(
            plan,
            Wait { until_arrived: 9, micros_max: 30 },
            "seven waiting and one to come"
        );
        gather.finished(9, 9, 40);
        assert_eq!(gather.plan(10), Some(Wait { until_arrived: 17, micros_max: 30 }));
    }

    /// Rounds of a log whose writes take `write_micros`, where each wait of `micros` brings `came`
    /// to the `there` who are there: how many of a hundred leaders wait.
    fn waits_of_a_hundred(there: u64, came: u64, micros: u64, write_micros: u64) -> u32 {
        let mut gather = Gather::default();
        let (mut closed, mut waits) = (there, 0);
        gather.finished(closed, closed, write_micros);
        for _ in 0..100 {
            let mut arrived = closed + there;
            gather.expected = there + came.max(1);
            if gather.plan(arrived).is_some() {
                waits += 1;
                gather.waited(arrived, arrived + came, micros);
                arrived += came;
            }
            gather.finished(arrived, arrived, write_micros);
            closed = arrived;
        }
        waits
    }

    #[test]
    fn a_wait_goes_on_while_it_is_worth_its_time() {
        let waits = waits_of_a_hundred;
        assert_eq!(waits(4, 4, 25, 40), 100, "half of eight alternate with the others");
        assert_eq!(waits(5, 9, 30, 40), 100, "many");
        assert_eq!(waits(7, 1, 3, 40), 100, "few, but at once");
        assert!(waits(2, 1, 30, 40) < 10, "half as many again for most of a write");
        assert!(waits(4, 0, 30, 40) < 10, "in vain");
        assert_eq!(waits(2, 1, 400, 540), 100, "the same on a slow device");
        assert!(waits(4, 0, 400, 540) < 10, "in vain there");
    }

    #[test]
    fn waiters_stay_awake_only_on_fast_devices_and_in_company() {
        let lingers = |arrived, write_micros| {
            let mut gather = Gather::default();
            gather.finished(1, arrived, write_micros);
            gather.linger_micros()
        };
        assert_eq!(lingers(8, 20), 60);
        assert_eq!(lingers(8, 90), 150, "bounded");
        assert_eq!(lingers(8, 101), 0, "a slow device");
        assert_eq!(lingers(2, 20), 0, "two threads");
    }

    #[test]
    fn waiting_in_vain_is_given_up_for_longer_and_longer() {
        let mut gather = Gather::default();
        let mut waits = 0;
        let mut arrived = 0;
        for _ in 0..200 {
            arrived += 1;
            if let Some(plan) = gather.plan(arrived) {
                waits += 1;
                gather.waited(arrived, arrived, plan.micros_max);
            }
            // Somebody is always counted as expected, but never comes back in time.
            gather.finished(arrived, arrived + 3, 40);
            arrived += 3;
            gather.expected += 2;
        }
        assert!(waits > 2 && waits < 20, "{waits}");
    }
}
