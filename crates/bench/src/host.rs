//! What the machine's processors did while a run went on. On a machine that others share, an uneven
//! line may be the host's: a processor that it takes away commits nothing.
use crate::figures::Rates;
use crate::processors::Processors;
use crate::section::Second;
use serde::Serialize;

/// Of a run: means over its seconds, in processors.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ProcessorFigures {
    /// At work, for any process.
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
