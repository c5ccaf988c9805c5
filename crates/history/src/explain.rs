//! Tells what was found to a person: which transaction did what to which key, and why that cannot
//! be.

use crate::check::{Evidence, Found, Link, Report};
use crate::depend::{Dependency, Fault, Kind};
use crate::record::{End, History, Lock, Op, Transaction, Version};
use std::fmt::{self, Write};

/// Operations of a transaction that are shown; the rest is counted.
const OPS_SHOWN: usize = 24;

impl Found {
    /// A readable account: the name, the circle or the fault, the levels that forbid it, and what
    /// the transactions in it did.
    pub fn explain(&self, history: &History) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = self.write(history, &mut text);
        text
    }

    fn write(&self, history: &History, out: &mut String) -> fmt::Result {
        writeln!(out, "{}", self.anomaly)?;
        let mut members = Vec::new();
        match &self.evidence {
            Evidence::Circle(links) => {
                for link in links {
                    writeln!(out, "  {}", Words { link, history })?;
                    members.push(link.ends().0);
                }
            }
            Evidence::Fault(faulty) => {
                let txn = &history.transactions[faulty.txn];
                let (id, op, key) = (txn.id, faulty.op, faulty.key);
                write!(out, "  T{id}, operation {op}, key {key}: ")?;
                write_fault(out, faulty.fault)?;
                members.push(faulty.txn);
            }
        }
        let levels: Vec<String> = self.forbidden_at.iter().map(ToString::to_string).collect();
        let levels = if levels.is_empty() { "no level".to_owned() } else { levels.join(", ") };
        writeln!(out, "  forbidden at {levels}")?;
        members.sort_unstable();
        members.dedup();
        members.iter().try_for_each(|&member| write_txn(out, &history.transactions[member]))
    }
}

fn write_fault(out: &mut String, fault: Fault) -> fmt::Result {
    match fault {
        Fault::Aborted(seen) => writeln!(out, "saw {seen}, which was rolled back"),
        Fault::Intermediate(seen) => writeln!(out, "saw {seen}, which was replaced before the end"),
        Fault::Internal { own, seen } => {
            writeln!(out, "saw {} instead of its own {own}", State(seen))
        }
        Fault::Garbage(seen) => writeln!(out, "saw {}, which was never written", State(seen)),
        Fault::Forked { over, other } => {
            writeln!(out, "overwrote {over}, as T{other} also did")
        }
    }
}

struct State(Option<Version>);

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(version) => version.fmt(f),
            None => f.write_str("no row"),
        }
    }
}

/// A link in words.
struct Words<'a> {
    link: &'a Link,
    history: &'a History,
}

impl fmt::Display for Words<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (from, to) = self.link.ends();
        let (from, to) = (self.history.transactions[from].id, self.history.transactions[to].id);
        let Link::Dependency(dependency) = self.link else {
            return write!(f, "T{from} had committed when T{to} began");
        };
        let &Dependency { kind, key, earlier, later, from_op, to_op, phantom, .. } = dependency;
        match kind {
            Kind::Ww => write!(
                f,
                "T{from} wrote key {key} (operation {from_op}: {earlier}), which T{to} overwrote \
                 (operation {to_op}: {later})"
            ),
            Kind::Wr => write!(
                f,
                "T{from} wrote key {key} (operation {from_op}: {earlier}), which T{to} saw \
                 (operation {to_op})"
            ),
            Kind::Rw => {
                let what = if phantom { "a range without key" } else { "key" };
                write!(
                    f,
                    "T{from} saw {what} {key} as {earlier} (operation {from_op}), before T{to} \
                     overwrote it (operation {to_op}: {later})"
                )
            }
        }
    }
}

fn write_txn(out: &mut String, txn: &Transaction) -> fmt::Result {
    let end = match txn.end {
        End::Committed => "committed",
        End::Aborted => "rolled back",
        End::Unknown => "ended unknown",
    };
    writeln!(out, "  T{} at {} {end}, ticks {} to {}:", txn.id, txn.level, txn.began, txn.ended)?;
    for (at, op) in txn.ops.iter().take(OPS_SHOWN).enumerate() {
        writeln!(out, "    {at}: {op}")?;
    }
    match txn.ops.len().saturating_sub(OPS_SHOWN) {
        0 => Ok(()),
        more => writeln!(out, "    and {more} more"),
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let locking = |lock: &Lock| match lock {
            Lock::None => "",
            Lock::Share => " for share",
            Lock::Update => " for update",
        };
        match self {
            Op::Read { key, seen, lock } => {
                write!(f, "read{} key {key}: {}", locking(lock), State(*seen))
            }
            Op::Scan { keys, seen, lock } => {
                write!(f, "read{} keys {} to {}:", locking(lock), keys.start, keys.end)?;
                seen.iter().try_for_each(|(key, version)| write!(f, " [{key}: {version}]"))
            }
            Op::Write { key, nth, over, dead: false } => {
                write!(f, "put key {key} (write {nth}) over {over}")
            }
            Op::Write { key, nth, over, dead: true } => {
                write!(f, "deleted key {key} (write {nth}), was {over}")
            }
            Op::Undo { from } => write!(f, "rolled back operations {from} and later"),
        }
    }
}

impl Report {
    /// Nothing was wrong.
    pub fn is_clean(&self) -> bool {
        self.found.is_empty()
    }

    /// All that was found, in words; empty if nothing was.
    pub fn explain(&self, history: &History) -> String {
        let mut text: String = self.found.iter().map(|found| found.explain(history)).collect();
        if self.circles_more > 0 {
            let _ = writeln!(text, "and {} more knots of transactions", self.circles_more);
        }
        text
    }
}
