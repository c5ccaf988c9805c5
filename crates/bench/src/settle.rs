//! How long a run took to settle after its load or its disk had changed. Pure computation over what
//! was seen second by second.
use crate::options::Options;
use crate::report::Series;
use serde::Serialize;
use weir::DiskSpec;

/// A change in the middle of a run, and how long it was felt.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Settling {
    /// What changed.
    pub change: String,
    /// In which of the measured seconds, from 0.
    pub at_second: usize,
    /// After so many seconds throughput stayed within a tenth of where it ended up; none: it did
    /// not before the next change or the end, or there was too little time to say.
    pub tps_seconds: Option<usize>,
    /// The same of the checkpoint age, within a twentieth of its limit.
    pub age_seconds: Option<usize>,
    /// The later of the two, as redo written until then over the log's capacity.
    pub log_wraps: Option<f64>,
}

/// Seconds looked at together: single ones are noise.
const WINDOW: usize = 3;
/// Throughput has settled within this part of where it ends up.
const TPS_WITHIN: f64 = 0.1;
/// The age has settled within this part of its limit.
const AGE_WITHIN: f64 = 0.05;

/// From which second on all means of three seconds differ by at most `within` (of that mean) from
/// the mean of the last half. `None`: they never do, or there are too few of them to say.
#[must_use]
pub fn settled(values: &[f64], within: impl Fn(f64) -> f64) -> Option<usize> {
    if values.len() < 2 * WINDOW {
        return None;
    }
    let half = &values[values.len() / 2..];
    let last = half.iter().sum::<f64>() / half.len() as f64;
    let off = |window: &[f64]| {
        let mean = window.iter().sum::<f64>() / WINDOW as f64;
        (mean - last).abs() > within(last)
    };
    match values.windows(WINDOW).rposition(off) {
        None => Some(0),
        Some(at) if at + WINDOW >= values.len() => None,
        Some(at) => Some(at + 1),
    }
}

/// As [`settled`], for throughput: within a tenth.
#[must_use]
pub fn settled_tps(tps: &[f64]) -> Option<usize> {
    settled(tps, |last| TPS_WITHIN * last)
}

/// What changes in the measured seconds: threads, and the disk (whose times count from
/// `measured_from_seconds` before the first of them).
pub(crate) fn changes(options: &Options, measured_from_seconds: f64) -> Vec<(usize, String)> {
    let mut changes = Vec::new();
    let mut at = 0;
    for phase in options.phases.all() {
        if at > 0 {
            changes.push((at, format!("{} threads", phase.threads)));
        }
        at += phase.seconds as usize;
    }
    let disk = options.disk.as_deref().and_then(|text| text.parse::<DiskSpec>().ok());
    for change in disk.iter().flat_map(|disk| &disk.changes) {
        let factor = f64::from(change.factor_thousandths) / 1e3;
        let end = change.start_micros + change.duration_micros;
        for (micros, what) in
            [(change.start_micros, format!("disk x{factor}")), (end, "disk as before".to_owned())]
        {
            let second = micros as f64 / 1e6 - measured_from_seconds;
            if second >= 1.0 && second < at as f64 {
                changes.push((second as usize, what));
            }
        }
    }
    changes.sort_by_key(|change| change.0);
    changes
}

/// How long each of these changes was felt.
pub(crate) fn settlings(
    changes: &[(usize, String)],
    series: &Series,
    log_bytes: u64,
) -> Vec<Settling> {
    let mut settlings = Vec::new();
    for (number, (at, change)) in changes.iter().enumerate() {
        let end = changes.get(number + 1).map_or(series.tps.len(), |next| next.0);
        let from = (*at).min(series.tps.len());
        let span = from..end.min(series.tps.len()).max(from);
        if span.is_empty() {
            continue;
        }
        let tps_seconds = settled_tps(&series.tps[span.clone()]);
        let ages = &series.checkpoint_age_over_limit[span.clone()];
        let age_seconds = settled(ages, |_| AGE_WITHIN);
        let both = tps_seconds.zip(age_seconds).map(|(tps, age)| tps.max(age));
        let redo = &series.redo_bytes_per_second[span];
        // The sum of no numbers is -0.0, which is not worth reading.
        let written = |until: usize| 0.0 + redo[..until].iter().sum::<f64>();
        let log_wraps = both.map(|until| written(until) / log_bytes.max(1) as f64);
        let (change, at_second) = (change.clone(), *at);
        settlings.push(Settling { change, at_second, tps_seconds, age_seconds, log_wraps });
    }
    settlings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::{Phases, WorkloadKind};

    #[test]
    fn settling() {
        let flat = [10.0; 12];
        assert_eq!(settled_tps(&flat), Some(0));
        let mut late = [10.0; 12];
        late[..3].fill(2.0);
        assert_eq!(settled_tps(&late), Some(3), "the window from second 2 is 22 / 3");
        let waves: Vec<f64> = (0..40).map(|i| if i / 5 % 2 == 0 { 4.0 } else { 12.0 }).collect();
        assert_eq!(settled_tps(&waves), None, "it never does");
        assert_eq!(settled_tps(&[1.0; 5]), None, "too short to say");
        let ramp: Vec<f64> = (0..12).map(|i| 0.6 + 0.06 * f64::from(i)).collect();
        assert_eq!(settled(&ramp, |_| 0.05), None, "still growing at the end");
    }

    #[test]
    fn changes_are_those_of_threads_and_of_the_disk() {
        let phases = Phases::parse("2:20s,32:20s", None).expect("phases");
        let mut options = Options::new(WorkloadKind::Update, "unused".into(), phases);
        options.disk = Some("2000iops,32MiB,half=75s+30s".to_owned());
        let told = changes(&options, 50.5);
        let at = |second: usize, what: &str| (second, what.to_owned());
        assert_eq!(told, [at(20, "32 threads"), at(24, "disk x0.5")], "the end is not measured");
        assert_eq!(changes(&options, 80.0).last(), Some(&at(25, "disk as before")));
    }

    #[test]
    fn each_change_is_judged_until_the_next() {
        let mut series = Series::default();
        for second in 0..30 {
            // Ten seconds each; the second step takes two seconds of throughput, five of age.
            let step = second / 10;
            series.tps.push(if matches!(second, 10 | 11) { 200.0 } else { 1000.0 });
            series.checkpoint_age_over_limit.push(match second {
                10..15 => 0.5,
                _ => 0.9,
            });
            series.redo_bytes_per_second.push(if step == 1 { 300.0 } else { 100.0 });
        }
        let told = settlings(&[(10, "a".to_owned()), (20, "b".to_owned())], &series, 1000);
        assert_eq!(told[0].tps_seconds, Some(2));
        assert_eq!(told[0].age_seconds, Some(5), "0.5, 0.9, 0.9 is 0.13 off");
        assert_eq!(told[0].log_wraps, Some(1.5));
        assert_eq!((told[1].tps_seconds, told[1].log_wraps), (Some(0), Some(0.0)));
        assert!(told[1].log_wraps.is_some_and(f64::is_sign_positive));
        assert_eq!(
            settlings(&[(40, "late".to_owned())], &series, 1000),
            [],
            "it was never reached"
        );
    }
}
