//! An experiment as data: what is run, and how it is judged.
use crate::arm::{Arm, Site};
use crate::judge::{Finding, Results};
use crate::policies::Kind;

/// One experiment of the reference.
pub struct Experiment {
    /// Its number in the reference.
    pub number: u8,
    /// A few words.
    pub name: &'static str,
    /// Which seed it is from.
    pub seed: &'static str,
    /// What the seed found.
    pub found: &'static str,
    /// What of it cannot be repeated on this engine; empty if all can.
    pub missing: &'static str,
    pub(crate) site: fn(Site) -> Site,
    pub(crate) work: Work,
    pub(crate) judge: fn(&Results<'_>) -> Finding,
}

impl Experiment {
    /// Whether there are runs of this policy in it.
    #[must_use]
    pub fn has(&self, policy: Kind) -> bool {
        match &self.work {
            Work::Arms(arms) => arms(&Site::quick()).iter().any(|arm| arm.kind == policy),
            Work::Recoveries(_) => false,
        }
    }
}

/// What is run for an experiment.
pub(crate) enum Work {
    /// Runs; the first is always `deadline`, from which the need for page writes is known.
    Arms(fn(&Site) -> Vec<Arm>),
    /// Recoveries with so many threads, by name.
    Recoveries(&'static [(&'static str, &'static str, usize)]),
}
