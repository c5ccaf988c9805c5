//! Group commit's protocol: which thread writes for which, and which is woken when. Knows no files.
//!
//! Writes happen in rounds. A thread that needs more than is written becomes the round's leader
//! (one compare-and-swap); while the round is *open* everything published joins it; the leader
//! *closes* it at a target, writes, and finishes it: all that waited for this round are woken by
//! one call, and of those that came too late one, to lead the next. A released leadership may be
//! taken by whichever thread comes first, so the device never waits for a particular thread to be
//! scheduled.
//!
//! No wake-up is lost (model: `loom_tests`): a waiter first counts itself as parked, then looks
//! again at everything it based its decision on, then sleeps; a leader first changes these, then
//! looks at the counts. Sequentially consistent fences between make one of them see the other.
use crate::claims::Apart;
use crate::sync::{AtomicU32, AtomicU64, Futex, Ordering, fence};

/// Two rounds have sleepers at a time; more words keep late sleepers of older rounds apart.
const WORDS: u64 = if cfg!(loom) { 2 } else { 16 };

#[derive(Default)]
struct Word {
    futex: Futex,
    parked: AtomicU32,
}

pub(crate) struct Rounds {
    /// 1 while a thread leads.
    led: Apart<AtomicU32>,
    /// The round's number, twice, plus one when it is closed.
    phase: AtomicU64,
    /// Up to where the closed round writes.
    target: AtomicU64,
    words: Box<[Apart<Word>]>,
    /// Those that wait for room in the ring.
    room: Apart<Word>,
}

impl Rounds {
    pub(crate) fn new() -> Rounds {
        Rounds {
            led: Apart(AtomicU32::new(0)),
            phase: AtomicU64::new(0),
            target: AtomicU64::new(0),
            words: (0..WORDS).map(|_| Apart(Word::default())).collect(),
            room: Apart(Word::default()),
        }
    }

    fn word(&self, round: u64) -> &Word {
        &self.words[(round % WORDS) as usize].0
    }

    /// Becomes the leader, when there is none. The thread that does must call [`Rounds::finish`].
    #[inline]
    pub(crate) fn try_lead(&self) -> bool {
        self.led.0.load(Ordering::Relaxed) == 0
            && self.led.0.compare_exchange(0, 1, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// For the leader: from now on, the thread that needs more than `target` waits for the next
    /// round.
    pub(crate) fn close(&self, target: u64) {
        let phase = self.phase.load(Ordering::Relaxed);
        debug_assert_eq!(phase % 2, 0, "a round is closed once");
        self.target.store(target, Ordering::Relaxed);
        self.phase.store(phase + 1, Ordering::Release);
    }

    /// For the leader: ends the round (if it was closed) and the leadership, and wakes those
    /// concerned. What the round reached must be stored before.
    pub(crate) fn finish(&self) {
        let phase = self.phase.load(Ordering::Relaxed);
        let round = phase / 2;
        if phase % 2 == 1 {
            self.phase.store(phase + 1, Ordering::Release);
        }
        self.led.0.store(0, Ordering::Release);
        fence(Ordering::SeqCst);
        let (this, next) = (self.word(round), self.word(round + 1));
        if phase.is_multiple_of(2) {
            // Nothing was written: another thread must try.
            wake_one(this);
        } else {
            wake_one(next);
            wake_all(this);
        }
        wake_all(&self.room.0);
    }

    /// Whether a thread leads.
    pub(crate) fn is_led(&self) -> bool {
        self.led.0.load(Ordering::Acquire) == 1
    }

    /// For the leader: room was made in the ring.
    pub(crate) fn room_made(&self) {
        fence(Ordering::SeqCst);
        wake_all(&self.room.0);
    }

    /// Wakes every thread: for the end of all rounds.
    pub(crate) fn wake_all(&self) {
        for word in &self.words {
            word.0.futex.change_and_wake_all();
        }
        self.room.0.futex.change_and_wake_all();
    }

    /// Sleeps until the round that will reach `need` is finished, or a thread must lead, or for no
    /// reason. `done` says whether there is nothing to wait for any more.
    pub(crate) fn park(&self, need: u64, done: impl Fn() -> bool) {
        let phase = self.phase.load(Ordering::Acquire);
        let late = phase % 2 == 1 && need > self.target.load(Ordering::Acquire);
        let word = self.word(phase / 2 + u64::from(late));
        let unchanged = || self.phase.load(Ordering::Acquire) == phase;
        self.sleep(word, || unchanged() && !done());
    }

    /// Sleeps until room is made in the ring, or a thread must lead, or for no reason.
    pub(crate) fn park_for_room(&self, done: impl Fn() -> bool) {
        self.sleep(&self.room.0, || !done());
    }

    fn sleep(&self, word: &Word, still: impl Fn() -> bool) {
        let seen = word.futex.value();
        word.parked.fetch_add(1, Ordering::AcqRel);
        fence(Ordering::SeqCst);
        if self.led.0.load(Ordering::Acquire) == 1 && still() {
            word.futex.wait(seen);
        }
        word.parked.fetch_sub(1, Ordering::AcqRel);
    }
}

fn wake_one(word: &Word) {
    if word.parked.load(Ordering::Acquire) > 0 {
        word.futex.change_and_wake_one();
    }
}

fn wake_all(word: &Word) {
    if word.parked.load(Ordering::Acquire) > 0 {
        word.futex.change_and_wake_all();
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use loom::sync::Arc;
    use loom::thread;

    /// Each thread publishes one step and waits until a leader has covered it. A lost wake-up is a
    /// deadlock, which loom reports.
    #[test]
    fn loom_all_are_served() {
        struct Shared {
            rounds: Rounds,
            published: AtomicU64,
            reached: AtomicU64,
        }
        let commit = |shared: &Shared| {
            let mine = shared.published.fetch_add(1, Ordering::AcqRel) + 1;
            let done = || shared.reached.load(Ordering::Acquire) >= mine;
            while !done() {
                if shared.rounds.try_lead() {
                    if !done() {
                        let target = shared.published.load(Ordering::Acquire);
                        shared.rounds.close(target);
                        shared.reached.store(target, Ordering::Release);
                    }
                    shared.rounds.finish();
                } else {
                    shared.rounds.park(mine, done);
                }
            }
        };
        let check = |others: usize, bound: usize| {
            let mut model = loom::model::Builder::new();
            model.preemption_bound = Some(bound);
            model.check(move || {
                let shared = Arc::new(Shared {
                    rounds: Rounds::new(),
                    published: AtomicU64::new(0),
                    reached: AtomicU64::new(0),
                });
                let others: Vec<_> = (0..others)
                    .map(|_| {
                        let shared = Arc::clone(&shared);
                        thread::spawn(move || commit(&shared))
                    })
                    .collect();
                commit(&shared);
                for other in others {
                    other.join().unwrap();
                }
            });
        };
        check(1, 3);
        check(2, 1);
    }
}
