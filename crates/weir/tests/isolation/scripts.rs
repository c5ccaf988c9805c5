//! The named anomalies: each level shows those that it allows and prevents the others, in the way
//! that is expected of it.

use weir::{Background, SimVolume};
use weir_history::{CATALOGUE, Demand, check};

use crate::engine::{LEVELS, connect, database};

#[test]
fn each_level_does_what_is_expected() {
    let (mut surprises, mut played_in_all) = (Vec::new(), 0);
    for script in CATALOGUE {
        for &level in LEVELS {
            let volume = SimVolume::new(0);
            let db = database(&volume, Background::Manual);
            let played =
                script.play(level, |rows, sessions| connect((&volume, &db), rows, sessions, None));
            let report = check(&played.history, &Demand::OWN);
            played_in_all += 1;
            if played.outcome != script.expected(level) || !report.is_clean() {
                surprises.push(format!(
                    "{} at {level}: {:?} instead of {:?}\n{}{}",
                    script.name,
                    played.outcome,
                    script.expected(level),
                    played.transcript,
                    report.explain(&played.history)
                ));
            }
        }
    }
    assert!(surprises.is_empty(), "{}", surprises.join("\n"));
    assert!(played_in_all >= 100, "{played_in_all}");
}
