//! The processors' time, as the kernel counts it.

/// Time of all processors since the machine's start, in the kernel's ticks (`proc_stat(5)`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticks {
    processors: usize,
    busy: u64,
    idle: u64,
    stolen: u64,
}

/// What became of the processors' time in one second: they add up to their number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Processors {
    pub(crate) busy: f64,
    pub(crate) idle: f64,
    pub(crate) stolen: f64,
}

impl Ticks {
    /// Up to now. `None` where the system does not tell.
    pub(crate) fn now() -> Option<Ticks> {
        Ticks::parse(&std::fs::read_to_string("/proc/stat").ok()?)
    }

    fn parse(text: &str) -> Option<Ticks> {
        let mut lines = text.lines();
        let all = lines.next()?.strip_prefix("cpu ")?;
        let mut ticks = [0; 8];
        let mut fields = all.split_ascii_whitespace();
        for tick in &mut ticks {
            *tick = fields.next()?.parse().ok()?;
        }
        let [user, nice, system, idle, waiting, irq, soft_irq, stolen] = ticks;
        Some(Ticks {
            processors: lines.take_while(|line| line.starts_with("cpu")).count(),
            busy: user + nice + system + irq + soft_irq,
            idle: idle + waiting,
            stolen,
        })
    }

    /// What has become of the time since. `None` if the clock has not ticked, or ran backwards, as
    /// the kernel's counts of idling may.
    pub(crate) fn since(&self, before: &Ticks) -> Option<Processors> {
        let busy = self.busy.checked_sub(before.busy)?;
        let idle = self.idle.checked_sub(before.idle)?;
        let stolen = self.stolen.checked_sub(before.stolen)?;
        let all = busy + idle + stolen;
        let part = |ticks: u64| ticks as f64 / all as f64 * self.processors as f64;
        let parts = Processors { busy: part(busy), idle: part(idle), stolen: part(stolen) };
        (all > 0).then_some(parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "cpu  100 2 30 400 50 6 7 80 9 0\ncpu0 50 1 15 200 25 3 4 40 4 0\n\
        cpu1 50 1 15 200 25 3 3 40 5 0\nintr 1 2 3\n";

    #[test]
    fn ticks_are_read() {
        let expected = Ticks { processors: 2, busy: 145, idle: 450, stolen: 80 };
        assert_eq!(Ticks::parse(STAT), Some(expected));
        for foreign in ["", "cpu", "cpu  1 2 3", "cpu  1 2 3 4 5 6 7 x", "intr 1 2 3 4 5 6 7 8"] {
            assert_eq!(Ticks::parse(foreign), None, "{foreign}");
        }
        if cfg!(target_os = "linux") {
            assert!(Ticks::now().is_some_and(|ticks| ticks.processors > 0 && ticks.busy > 0));
        }
    }

    #[test]
    fn parts_of_a_second() {
        let before = Ticks { processors: 2, busy: 100, idle: 100, stolen: 0 };
        let after = Ticks { processors: 2, busy: 250, idle: 120, stolen: 30 };
        assert_eq!(after.since(&before), Some(Processors { busy: 1.5, idle: 0.2, stolen: 0.3 }));
        assert_eq!(before.since(&before), None);
        assert_eq!(before.since(&after), None);
    }
}
