//! A gate for writes that keep no older version: they may pass while no transaction holds a
//! snapshot, and the first snapshot waits for those inside. Each thread counts itself in a line of
//! its own. A thread that makes room for the row, or joins leaves behind it, is outside meanwhile:
//! that may take long.
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const LINES: usize = 16;

/// A thread that closes looks so often whether a thread is inside before it sleeps between looks.
const LOOKS_AWAKE: u32 = 300;
/// The first sleep between two looks; each next one is twice as long, up to the last.
const FIRST_NAP: Duration = Duration::from_micros(200);
const LAST_NAP: Duration = Duration::from_millis(5);

#[repr(align(128))]
#[derive(Default)]
struct Line(AtomicU64);

/// The gate.
#[derive(Default)]
pub(crate) struct Gate {
    lines: [Line; LINES],
    /// Snapshots held.
    closed: AtomicU64,
}

/// Being inside.
pub(crate) struct Inside<'g>(&'g Line);

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Release);
    }
}

thread_local! {
    static LINE: usize = {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        NEXT.fetch_add(1, Ordering::Relaxed) as usize % LINES
    };
}

impl Gate {
    /// Whether a snapshot is held. May be out of date at once.
    #[inline]
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed) != 0
    }

    /// Goes in, unless a snapshot is held.
    #[inline]
    pub(crate) fn enter(&self) -> Option<Inside<'_>> {
        let line = &self.lines[LINE.with(|line| *line)];
        // The thread's own, as a rule.
        weir_base::lines::wrote("a thread's line of the gate");
        line.0.fetch_add(1, Ordering::SeqCst);
        let inside = Inside(line);
        (self.closed.load(Ordering::SeqCst) == 0).then_some(inside)
    }

    /// Closes the gate (once more) and waits until no thread is inside. Must not be called inside.
    pub(crate) fn close(&self) {
        weir_base::lines::wrote("the number of snapshots");
        self.closed.fetch_add(1, Ordering::SeqCst);
        let (mut looks, mut nap) = (0, FIRST_NAP);
        for line in &self.lines {
            while line.0.load(Ordering::SeqCst) != 0 {
                // Microseconds as a rule: a thread that is inside holds a leaf and only adds to the
                // log. But there it waits for room as long as the device does not answer.
                if looks < LOOKS_AWAKE {
                    looks += 1;
                    std::thread::yield_now();
                } else {
                    // A wake-up costs tens of microseconds on a busy machine: naps of one length
                    // took a tenth of a processor for as long as the device was silent.
                    std::thread::sleep(nap);
                    nap = (nap * 2).min(LAST_NAP);
                }
            }
        }
    }

    /// Takes one closing back.
    pub(crate) fn reopen(&self) {
        weir_base::lines::wrote("the number of snapshots");
        self.closed.fetch_sub(1, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::Gate;
    use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

    #[test]
    fn a_closed_gate_is_empty() {
        let (gate, inside, passed) = (Gate::default(), AtomicU64::new(0), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    while passed.load(SeqCst) < 1000 {
                        if let Some(_guard) = gate.enter() {
                            inside.fetch_add(1, SeqCst);
                            passed.fetch_add(1, SeqCst);
                            inside.fetch_sub(1, SeqCst);
                        }
                    }
                });
            }
            for _ in 0..200 {
                gate.close();
                assert!(gate.is_closed());
                for _ in 0..50 {
                    assert_eq!(inside.load(SeqCst), 0);
                }
                gate.reopen();
                std::thread::yield_now();
            }
        });
        assert!(!gate.is_closed());
    }

    /// Nanoseconds that this thread has had a processor.
    #[cfg(target_os = "linux")]
    fn on_processor_ns() -> Option<u64> {
        let stat = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
        stat.split_whitespace().next()?.parse().ok()
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn closing_sleeps_while_a_thread_is_inside_for_long() {
        let gate = Gate::default();
        let inside = gate.enter();
        let used = std::thread::scope(|scope| {
            let closer = scope.spawn(|| {
                let before = on_processor_ns();
                gate.close();
                Some(on_processor_ns()? - before?)
            });
            std::thread::sleep(std::time::Duration::from_millis(800));
            drop(inside);
            closer.join().expect("closed")
        });
        // `None` where the system does not count.
        assert!(used.is_none_or(|ns| ns < 80_000_000), "{used:?} of 800 ms");
    }
}
