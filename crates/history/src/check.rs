//! Looks at a history: which promises are broken, what the field calls it, and which levels forbid
//! it.

use crate::anomaly::{Anomaly, levels_against_fault};
use crate::depend::{Dependencies, Dependency, Faulty};
use crate::graph::{Edge, FREE, Graph};
use crate::points::{NO_TRANSACTION, Points};
use crate::record::{History, Level};

/// What a history is held to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// One level for all; `None`: each transaction is held to its own.
    pub level: Option<Level>,
    /// A transaction that had committed before another began must also come before it. (Strict
    /// serialisability, strong snapshots.) The ticks of the history must mean something then.
    pub real_time: bool,
    /// At most so many circles are worked out.
    pub circles_max: usize,
}

impl Demand {
    /// Each transaction to its own level, in real time.
    pub const OWN: Demand = Demand { level: None, real_time: true, circles_max: 8 };

    /// All to one level, whatever they ran at, without regard to time.
    pub fn all_at(level: Level) -> Demand {
        Demand { level: Some(level), real_time: false, ..Demand::OWN }
    }
}

/// One step of a circle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// From one transaction to a later one by what they read and wrote.
    Dependency(Dependency),
    /// From one transaction to a later one by the clock.
    Time {
        /// Index of the one that had committed.
        from: usize,
        /// Index of the one that began then.
        to: usize,
    },
}

impl Link {
    /// Indices of the transactions that it joins.
    pub fn ends(&self) -> (usize, usize) {
        match *self {
            Link::Dependency(Dependency { from, to, .. }) | Link::Time { from, to } => (from, to),
        }
    }
}

/// Why something is believed to be wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// Transactions each of which must have come before the next, and the last before the first.
    Circle(Vec<Link>),
    /// A single operation's fault.
    Fault(Faulty),
}

/// A broken promise. [`Found::explain`] tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its name.
    pub anomaly: Anomaly,
    /// What was seen.
    pub evidence: Evidence,
    /// The levels that forbid it, were all transactions in it at that level.
    pub forbidden_at: Vec<Level>,
}

/// What came of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// What was wrong: faults first, then one circle (the smallest) of each knot of transactions.
    pub found: Vec<Found>,
    /// Knots whose circle was not worked out, there being too many.
    pub circles_more: usize,
    /// Dependencies between transactions.
    pub dependencies: usize,
    /// Reads of no row that could not be told from another such state, and so were not checked.
    pub vague_reads: u64,
}

/// Holds a history to a demand. Transactions that were rolled back are held to it too, as readers.
pub fn check(history: &History, demand: &Demand) -> Report {
    check_against(history, &Dependencies::of(history), demand)
}

/// Everything that is wrong with a history, whatever levels it ran at, weakest level first: what
/// breaks READ UNCOMMITTED, what else breaks READ COMMITTED, and so on. Does not look at the clock.
pub fn survey(history: &History) -> Vec<Found> {
    let dependencies = Dependencies::of(history);
    let mut all: Vec<Found> = Vec::new();
    for level in Level::ALL {
        for found in check_against(history, &dependencies, &Demand::all_at(level)).found {
            // A circle that a weaker level forbids was reported there, unless a smaller one was.
            if !all.iter().any(|known| known.evidence == found.evidence)
                && found.forbidden_at.first() == Some(&level)
            {
                all.push(found);
            }
        }
    }
    all
}

fn check_against(history: &History, dependencies: &Dependencies, demand: &Demand) -> Report {
    let mut report = Report {
        dependencies: dependencies.edges.len(),
        vague_reads: dependencies.vague,
        ..Report::default()
    };
    for &faulty in &dependencies.faults {
        let forbidden_at = levels_against_fault(faulty.fault, faulty.lock);
        let level = demand.level.unwrap_or(history.transactions[faulty.txn].level);
        if forbidden_at.contains(&level) {
            report.found.push(Found {
                anomaly: Anomaly::of_fault(faulty.fault),
                evidence: Evidence::Fault(faulty),
                forbidden_at,
            });
        }
    }
    let mut points = Points::new(history, demand.level, 0..history.transactions.len());
    for (at, dependency) in dependencies.edges.iter().enumerate() {
        points.add(dependency, at as u32);
    }
    // Labels from here on are of time.
    let time = dependencies.edges.len() as u32;
    if demand.real_time {
        points.add_all_time(time);
    }
    let graph = Graph::new(points.owner.len(), &points.edges);
    let mut knots = graph.components();
    knots.sort_by_key(|knot| (knot.len(), knot.iter().min().copied()));
    for knot in &knots {
        if report.found.len() >= demand.circles_max {
            report.circles_more += 1;
            continue;
        }
        let circle = links(&graph.cheapest_circle(knot), dependencies, &points.owner, time);
        report.found.push(Found {
            anomaly: Anomaly::of_circle(&circle),
            forbidden_at: levels_against_circle(history, &circle),
            evidence: Evidence::Circle(circle),
        });
    }
    report
}

/// A circle of moments as one of transactions.
fn links(circle: &[Edge], dependencies: &Dependencies, owner: &[u32], time: u32) -> Vec<Link> {
    // Begun behind an edge with a label, so that the moments between two labels are in one piece.
    let first = circle.iter().position(|edge| edge.label != FREE).unwrap_or(0);
    let turned: Vec<&Edge> = circle[first..].iter().chain(&circle[..first]).collect();
    let mut links = Vec::new();
    for (at, edge) in turned.iter().enumerate() {
        match edge.label {
            FREE => {}
            label if label < time => {
                links.push(Link::Dependency(dependencies.edges[label as usize]));
            }
            label => {
                // Along the chain of begins to the transaction that begins there.
                let after = turned[at..].iter().map(|edge| owner[edge.to as usize]);
                let to = after.into_iter().find(|&txn| txn != NO_TRANSACTION);
                let from = (label - time) as usize;
                links.push(Link::Time { from, to: to.map_or(from, |txn| txn as usize) });
            }
        }
    }
    links
}

/// The levels at which this circle cannot be, were all its transactions at that level.
fn levels_against_circle(history: &History, circle: &[Link]) -> Vec<Level> {
    let mut members: Vec<usize> = circle.iter().map(|link| link.ends().0).collect();
    members.sort_unstable();
    members.dedup();
    let impossible = |&level: &Level| {
        let mut points = Points::new(history, Some(level), members.iter().copied());
        for link in circle {
            match *link {
                Link::Dependency(ref dependency) => points.add(dependency, 0),
                Link::Time { from, to } => points.add_time(from, to, 0),
            }
        }
        !Graph::new(points.owner.len(), &points.edges).components().is_empty()
    };
    Level::ALL.into_iter().filter(impossible).collect()
}
