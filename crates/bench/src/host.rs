//! What the machine's processors did while a run went on. On a machine that others share, an uneven
//! line may be the host's: a processor that it takes away commits nothing.
use crate::figures::Rates;
use crate::section::Second;
use serde::Serialize;

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

/// Of a run: means over its seconds, in processors.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ProcessorFigures {
    /// At work, for whomever.
    pub busy_mean: f64,
    /// Without work.
    pub idle_mean: f64,
    /// Wanted here, and given to others by the host.
    pub stolen_mean: f64,
    /// Coefficient of variation of the transactions in a second of a busy processor: what of a
    /// line's unevenness is left when the processors' own is taken out.
    pub tps_over_busy_cv: f64,
}

impl ProcessorFigures {
    /// `None` if one of the seconds does not know.
    pub(crate) fn of<'a>(seconds: impl Iterator<Item = &'a Second>) -> Option<Self> {
        let told = seconds.map(|second| Some((second.tps, second.processors?)));
        let told: Vec<(f64, Processors)> = told.collect::<Option<_>>()?;
        let mean = |of: fn(&Processors) -> f64| {
            told.iter().map(|(_, processors)| of(processors)).sum::<f64>() / told.len() as f64
        };
        let busy = told.iter().filter(|(_, processors)| processors.busy > 0.0);
        let over_busy: Vec<f64> = busy.map(|(tps, processors)| tps / processors.busy).collect();
        (!told.is_empty()).then(|| ProcessorFigures {
            busy_mean: mean(|p| p.busy),
            idle_mean: mean(|p| p.idle),
            stolen_mean: mean(|p| p.stolen),
            tps_over_busy_cv: Rates::of(&over_busy).cv,
        })
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

    #[test]
    fn what_the_host_takes_is_not_the_stores() {
        let second = |tps: f64, busy: f64| Second {
            tps,
            processors: Some(Processors { busy, idle: 0.0, stolen: 2.0 - busy }),
            ..Second::default()
        };
        let seconds = [second(200.0, 2.0), second(100.0, 1.0), second(0.0, 0.0)];
        let figures = ProcessorFigures::of(seconds.iter()).unwrap();
        assert_eq!((figures.busy_mean, figures.stolen_mean), (1.0, 1.0));
        assert_eq!(figures.tps_over_busy_cv, 0.0);
        let unknown = Second { processors: None, ..second(1.0, 1.0) };
        assert_eq!(ProcessorFigures::of([second(1.0, 1.0), unknown].iter()), None);
        assert_eq!(ProcessorFigures::of([].iter()), None);
    }
}
