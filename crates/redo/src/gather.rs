//! Whether the leader of a round of group commit should wait a moment for others to join: a pure
//! decision over counts and times.
//!
//! Threads that commit in a closed loop come back within microseconds of being released. A leader
//! that starts at once would write alone, with all others in the next round: halves alternate and
//! each commit waits for two writes. So the leader waits until as many have come as took part in
//! the last round or came while it was written, but no longer than a part of a write's time, and
//! only where that pays. Whether it does is tried: now and then rounds are led the other way for a
//! while, and the way that serves more commits in the same time is kept. (Nothing else tells. A
//! thread that comes during a wait says little: with a binary log, most would have met in a later
//! round all the same; and with many threads fewer writes can go with fewer commits.
//! docs/decisions/gathering.md) It gives the processor away meanwhile, and gives up when no thread
//! takes it any more: a thread that is missing then waits for something else, such as a binary log.
//! Only where writes take long, the writes that it spares count as well: pages need them, which
//! shows much later. There the leader does not give up.

/// The share of a write's time that a leader waits at most, in percent.
const GATHER_PERCENT: u64 = 75;
/// A yield that returns within this time has given the processor to no thread.
const ALONE_MICROS: u64 = 3;
/// So many of these one after the other, and no thread is about to come: those that are missing
/// wait for something else, or run on another processor.
const ALONE_MAX: u32 = 16;
/// Waiting has to serve so much more, as it gives the processor away again and again.
const GAIN_LEAST: f64 = 0.04;
/// Where a write takes longer, the device is what is short: each commit's part in fewer writes
/// counts, by this share.
const SLOW_WRITE_MICROS: u64 = 500;
const SPARED_SHARE: f64 = 0.5;
/// How long rounds are led in the better way before the other is tried again.
const STAY_MICROS: u64 = 400_000;
/// How long the other way is tried, and for how many rounds at least.
const TRY_MICROS: u64 = 25_000;
const TRY_ROUNDS: u32 = 32;
/// The first rounds, which do not count: those that come were released by rounds of before.
const SETTLE_ROUNDS: u32 = 4;
/// Time without commits counts as this much a round.
const IDLE_MICROS_MAX: u64 = 10_000;
/// Trials that the mean is about: machines are busy with other things now and then.
const TRIALS: f64 = 32.0;
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
    /// When the last round ended.
    ended_at: u64,
    trial: Trial,
}

/// Commits in a time.
#[derive(Clone, Copy, Default)]
struct Served {
    rounds: u32,
    members: u64,
    micros: u64,
}

impl Served {
    fn rate(self) -> f64 {
        self.members as f64 / self.micros.max(1) as f64
    }

    fn members_a_round(self) -> f64 {
        self.members as f64 / f64::from(self.rounds - SETTLE_ROUNDS)
    }
}

/// Which way rounds are led, and what is known of the other.
#[derive(Default)]
struct Trial {
    /// Leaders start at once, as far as is known the better way.
    rests: bool,
    /// The other way is being tried.
    is_on: bool,
    /// In the present way so far; what was served in the better way before the trial.
    now: Served,
    before: Served,
    /// How much more is served where leaders wait, as a share: the mean, and of how many trials.
    gain: f64,
    trials: f64,
}

impl Trial {
    fn waits(&self) -> bool {
        self.rests == self.is_on
    }

    /// A round has served `members` in `micros`, since the round before.
    fn round(&mut self, members: u64, micros: u64, is_slow: bool) {
        self.now.rounds += 1;
        if self.now.rounds <= SETTLE_ROUNDS {
            return;
        }
        self.now.members += members;
        self.now.micros += micros;
        let long = if self.is_on { TRY_MICROS } else { STAY_MICROS };
        if self.now.micros < long || self.now.rounds < TRY_ROUNDS {
            return;
        }
        let now = std::mem::take(&mut self.now);
        if self.is_on && now.members > 0 && self.before.members > 0 {
            self.learn(now, is_slow);
        }
        self.before = now;
        self.is_on = !self.is_on;
    }

    fn learn(&mut self, tried: Served, is_slow: bool) {
        let (waiting, at_once) =
            if self.rests { (tried, self.before) } else { (self.before, tried) };
        let mut gain = (waiting.rate() / at_once.rate()).ln();
        if is_slow {
            gain += (waiting.members_a_round() / at_once.members_a_round()).ln() * SPARED_SHARE;
        }
        let gain = gain.clamp(-0.5, 0.5);
        self.trials = (self.trials + 1.0).min(TRIALS);
        self.gain += (gain - self.gain) / self.trials;
        self.rests = self.gain < GAIN_LEAST;
    }
}

/// What a leader should do before it closes its round.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Wait {
    /// Until this many have arrived (counted since the log was opened),
    pub(crate) until_arrived: u64,
    /// but no longer than this.
    pub(crate) micros_max: u64,
    /// Also when no thread takes the processor: the device is what is short.
    pub(crate) patient: bool,
}

/// Giving the processor away, and whether any thread takes it.
#[derive(Default)]
pub(crate) struct Alone(u32);

impl Alone {
    /// A yield took so long. Returns whether no thread takes the processor any more.
    pub(crate) fn is_sure(&mut self, yielded_micros: u64) -> bool {
        self.0 = if yielded_micros < ALONE_MICROS { self.0 + 1 } else { 0 };
        self.0 >= ALONE_MAX
    }
}

impl Gather {
    /// For a leader that sees `arrived` arrivals so far; `None`: start at once.
    pub(crate) fn plan(&self, arrived: u64) -> Option<Wait> {
        let until_arrived = self.closed_at + self.expected;
        if arrived >= until_arrived || !self.trial.waits() {
            return None;
        }
        let micros_max = self.write_micros() * GATHER_PERCENT / 100;
        let patient = self.is_slow();
        (micros_max > 0).then_some(Wait { until_arrived, micros_max, patient })
    }

    /// Mean time of a durable write.
    fn write_micros(&self) -> u64 {
        self.write_time / 16
    }

    fn is_slow(&self) -> bool {
        self.write_micros() > SLOW_WRITE_MICROS
    }

    /// How long a waiter should stay awake before it sleeps, in microseconds. With fewer than three
    /// threads no waking is spared.
    pub(crate) fn linger_micros(&self) -> u32 {
        let write_micros = self.write_micros();
        if self.expected < 3 || write_micros > LINGER_WRITE_MICROS_MAX {
            return 0;
        }
        (write_micros * LINGER_ROUNDS).min(LINGER_MICROS_MAX) as u32
    }

    /// A durable round was closed when `at_close` had arrived, took `micros`, and `at_end` have
    /// arrived by `now`. Gives the number of those that it served.
    pub(crate) fn finished(&mut self, at_close: u64, at_end: u64, micros: u64, now: u64) -> u64 {
        let members = at_close - self.closed_at;
        let since = now.saturating_sub(self.ended_at).min(IDLE_MICROS_MAX);
        self.trial.round(members, since, self.is_slow());
        self.ended_at = now;
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
            assert_eq!(gather.finished(n, n, 30, n * 40), 1);
        }
    }

    #[test]
    fn a_leader_that_no_thread_relieves_gives_up() {
        let mut alone = Alone::default();
        for _ in 0..3 {
            assert!((1..ALONE_MAX).all(|_| !alone.is_sure(1)));
            assert!(!alone.is_sure(ALONE_MICROS), "another thread ran");
        }
        assert_eq!((1..).find(|_: &u32| alone.is_sure(0)), Some(ALONE_MAX));
    }

    #[test]
    fn a_leader_is_patient_where_writes_take_long() {
        let mut gather = Gather::default();
        for n in 1..50 {
            gather.finished(8 * n, 8 * n, SLOW_WRITE_MICROS + 1, 1000 * n);
        }
        assert_eq!(gather.plan(8 * 49).map(|wait| wait.patient), Some(true));
    }

    #[test]
    fn a_leader_waits_for_the_threads_of_rounds_before() {
        let mut gather = Gather::default();
        // Eight threads: one leads, seven arrive meanwhile.
        gather.finished(1, 8, 40, 40);
        let plan =
            gather.plan(8).unwrap_or(Wait { until_arrived: 0, micros_max: 0, patient: true });
        assert_eq!(
            plan,
            Wait { until_arrived: 9, micros_max: 30, patient: false },
            "seven waiting and one to come"
        );
        gather.finished(9, 9, 40, 100);
        assert_eq!(
            gather.plan(10),
            Some(Wait { until_arrived: 17, micros_max: 30, patient: false })
        );
    }

    /// Threads in a closed loop: each is released with its round, and comes back after a time of
    /// its own. How many of the last 20,000 rounds had a leader that waited, in percent.
    fn waits(threads: u64, away_micros: impl Fn(u64) -> u64, write_micros: u64) -> u32 {
        let (mut gather, mut now, mut arrived, mut waits) = (Gather::default(), 0, 0, 0);
        // When each comes next; those that are there have come already.
        let mut next: Vec<u64> = (0..threads).map(&away_micros).collect();
        let mut draws = threads;
        for round in 0..60_000 {
            now = now.max(next.iter().copied().min().unwrap_or(0));
            let there = |next: &[u64], now| next.iter().filter(|at| **at <= now).count() as u64;
            let before = arrived + there(&next, now);
            if let Some(plan) = gather.plan(before) {
                let late = now + plan.micros_max;
                while now < late && arrived + there(&next, now) < plan.until_arrived {
                    now += 1;
                }
                waits += u32::from(round >= 40_000);
            }
            let members: Vec<usize> = (0..next.len()).filter(|i| next[*i] <= now).collect();
            let at_close = arrived + members.len() as u64;
            now += write_micros;
            for i in members {
                draws += 1;
                next[i] = now + away_micros(draws);
                arrived += 1;
            }
            gather.finished(at_close, at_close + there(&next, now), write_micros, now);
        }
        waits / 200
    }

    #[test]
    fn leaders_wait_where_that_serves_more() {
        // Back within the time of a write: without a wait, halves alternate.
        assert!(waits(8, |n| 5 + n % 7, 40) > 80, "all at once");
        assert!(waits(64, |n| 5 + n * 7 % 25, 100) > 80, "many");
        assert!(waits(8, |n| 100 + n * 37 % 300, 1_000) > 80, "a slow device");
        // Away for long, and at any time.
        assert!(waits(8, |n| 200 + n * 7919 % 997, 100) < 15, "few, now and then");
        assert!(waits(2, |n| 3_000 + n * 7919 % 997, 100) < 15, "nearly alone");
    }

    #[test]
    fn fewer_writes_count_where_they_take_long() {
        // Each commit takes as long either way; a wait brings a second one to each write.
        let waits = |write_micros| {
            let (mut gather, mut arrived, mut now) = (Gather::default(), 0, 0);
            for _ in 0..60_000 {
                let members = 1 + u64::from(gather.trial.waits());
                (arrived, now) = (arrived + members, now + members * write_micros);
                gather.finished(arrived, arrived, write_micros, now);
            }
            !gather.trial.rests
        };
        assert!(waits(1_000));
        assert!(!waits(100));
    }

    #[test]
    fn waiters_stay_awake_only_on_fast_devices_and_in_company() {
        let lingers = |arrived, write_micros| {
            let mut gather = Gather::default();
            gather.finished(1, arrived, write_micros, write_micros);
            gather.linger_micros()
        };
        assert_eq!(lingers(8, 20), 60);
        assert_eq!(lingers(8, 90), 150, "bounded");
        assert_eq!(lingers(8, 101), 0, "a slow device");
        assert_eq!(lingers(2, 20), 0, "two threads");
    }

    #[test]
    fn waiting_in_vain_is_given_up() {
        let (mut gather, mut waits, mut arrived, mut now) = (Gather::default(), 0, 0, 0);
        for _ in 0..100_000 {
            arrived += 1;
            if let Some(plan) = gather.plan(arrived) {
                waits += 1;
                now += plan.micros_max;
            }
            now += 40;
            // A thread is always counted as expected, but never comes back in time.
            gather.finished(arrived, arrived + 3, 40, now);
            arrived += 3;
            gather.expected += 2;
        }
        assert!(waits > 5_000 && waits < 15_000, "{waits}");
    }
}
