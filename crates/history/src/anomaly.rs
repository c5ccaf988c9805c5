//! The names that the field has for what goes wrong, and how a circle gets one.

use crate::check::Link;
use crate::depend::{Dependency, Fault, Kind};
use crate::record::{Level, Lock};
use std::fmt;

/// Named phenomena: A. Adya's (1999) G0 to G2, P. Bailis and others' (VLDB 2014) OTV, the older P4
/// of H. Berenson and others (SIGMOD 1995), and what no level of any store may show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Anomaly {
    /// Dirty write: a circle of overwritings.
    G0,
    /// Aborted read: saw what was rolled back.
    G1a,
    /// Intermediate read: saw what its writer replaced before it ended.
    G1b,
    /// Circular information flow: overwritings and reads of writes only.
    G1c,
    /// Observed transaction vanishes: saw a transaction's write, and later a state from before it.
    Otv,
    /// Predicate-many-preceders: a range was read without a row, and then its writer was seen.
    Pmp,
    /// Read skew: a single antidependency, its read before what closes the circle.
    GSingle,
    /// Lost update: read a row, and overwrote what another had made of it meanwhile.
    LostUpdate,
    /// Write skew: several antidependencies, all from rows that were seen.
    G2Item,
    /// Several antidependencies, among them one from a range in which a row was not yet there.
    G2,
    /// A circle that needs the clock: the order is serial, but not the one that took place.
    Stale,
    /// Did not see its own write.
    Internal,
    /// Saw what no transaction wrote.
    Garbage,
}

impl Anomaly {
    /// The short name.
    pub fn name(self) -> &'static str {
        match self {
            Anomaly::G0 => "G0",
            Anomaly::G1a => "G1a",
            Anomaly::G1b => "G1b",
            Anomaly::G1c => "G1c",
            Anomaly::Otv => "OTV",
            Anomaly::Pmp => "PMP",
            Anomaly::GSingle => "G-single",
            Anomaly::LostUpdate => "P4",
            Anomaly::G2Item => "G2-item",
            Anomaly::G2 => "G2",
            Anomaly::Stale => "stale",
            Anomaly::Internal => "internal",
            Anomaly::Garbage => "garbage",
        }
    }

    /// What it is, in words.
    pub fn meaning(self) -> &'static str {
        match self {
            Anomaly::G0 => "dirty write",
            Anomaly::G1a => "aborted read",
            Anomaly::G1b => "intermediate read",
            Anomaly::G1c => "circular information flow",
            Anomaly::Otv => "observed transaction vanishes",
            Anomaly::Pmp => "read skew over a range",
            Anomaly::GSingle => "read skew",
            Anomaly::LostUpdate => "lost update",
            Anomaly::G2Item => "write skew",
            Anomaly::G2 => "write skew over a range, phantoms",
            Anomaly::Stale => "against the order of time",
            Anomaly::Internal => "own write not seen",
            Anomaly::Garbage => "a state that was never written",
        }
    }

    /// What a single operation's fault is called.
    pub(crate) fn of_fault(fault: Fault) -> Anomaly {
        match fault {
            Fault::Aborted(_) => Anomaly::G1a,
            Fault::Intermediate(_) => Anomaly::G1b,
            Fault::Internal { .. } => Anomaly::Internal,
            Fault::Garbage(_) => Anomaly::Garbage,
            Fault::Forked { .. } => Anomaly::LostUpdate,
        }
    }

    /// What a circle is called.
    pub(crate) fn of_circle(circle: &[Link]) -> Anomaly {
        let known = |link: &Link| match *link {
            Link::Dependency(dependency) => Some(dependency),
            Link::Time { .. } => None,
        };
        let Some(circle): Option<Vec<Dependency>> = circle.iter().map(known).collect() else {
            return Anomaly::Stale;
        };
        let reads: Vec<usize> =
            (0..circle.len()).filter(|&at| circle[at].kind == Kind::Rw).collect();
        match *reads {
            [] if circle.iter().all(|link| link.kind == Kind::Ww) => Anomaly::G0,
            [] => Anomaly::G1c,
            [single] => of_single(&circle, single),
            _ if reads.iter().any(|&at| circle[at].phantom) => Anomaly::G2,
            _ => Anomaly::G2Item,
        }
    }
}

/// A circle whose one antidependency is at `single`.
fn of_single(circle: &[Dependency], single: usize) -> Anomaly {
    let leaving = circle[single];
    let entering = circle[(single + circle.len() - 1) % circle.len()];
    let others_overwrite = (0..circle.len()).all(|at| at == single || circle[at].kind == Kind::Ww);
    if others_overwrite && circle.iter().all(|link| link.key == leaving.key) {
        Anomaly::LostUpdate
    } else if entering.kind == Kind::Wr && entering.to_op <= leaving.from_op {
        Anomaly::Otv
    } else if leaving.phantom {
        Anomaly::Pmp
    } else {
        Anomaly::GSingle
    }
}

/// The levels that promise that this fault does not happen.
pub(crate) fn levels_against_fault(fault: Fault, lock: Lock) -> Vec<Level> {
    let dirty = matches!(fault, Fault::Aborted(_) | Fault::Intermediate(_)) && lock == Lock::None;
    Level::ALL.into_iter().filter(|&level| !dirty || level > Level::ReadUncommitted).collect()
}

impl fmt::Display for Anomaly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name(), self.meaning())
    }
}
