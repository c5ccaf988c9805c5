//! Flushing policies of InnoDB and its relatives, by the formulas of `docs/flushing.md`
//! section 1, with the limits and knobs of their versions and their quirks, above all integer
//! divisions. Each is one function of what is seen, its knobs and its own few numbers; none reads a
//! clock.
//!
//! What they cannot show here: in the originals user threads write pages themselves. Here the
//! sweeper writes what they would have written, and they wait where they would have waited.
mod furious;
mod kind;
mod knobs;
mod limits;
mod mariadb;
mod master;
mod mysql56;
mod mysql8;
mod xtradb;

#[cfg(test)]
mod tests;

pub use furious::furious;
pub use kind::Kind;
pub use knobs::Knobs;
pub use limits::Limits;
pub use mariadb::{MariadbState, mariadb_10_5};
pub use master::MasterState;
pub use mysql8::{Mysql8State, mysql_8};
pub use mysql56::{Mysql56State, mysql_5_6};
pub use xtradb::{XtradbState, estimate, keep_average, reflex};

use std::sync::Arc;
use weir::lab::{LabSetup, Look, MakeSetup, Neighbours, Orders, Policy, TickView};

/// What the engine is to be opened with so that this policy writes pages; `None` for Weir's own.
///
/// `speed`: how many of the policy's seconds pass in a real one. On a log so small that it wraps in
/// seconds, a policy that looks once a second would be another policy; so its seconds shrink with
/// the log. In one of its seconds fewer pages are written by as much; it is shown and given as many
/// times more, so that capacities are what they are and whole numbers are not rounded more than in
/// the original.
#[must_use]
pub fn setup(
    kind: Kind,
    knobs: &Knobs,
    neighbours: Neighbours,
    speed: u64,
) -> Option<Arc<MakeSetup>> {
    if kind == Kind::Deadline {
        return None;
    }
    let (knobs, speed) = (knobs.clone(), speed.max(1));
    Some(Arc::new(move || {
        let policy = boxed(kind, &knobs);
        LabSetup { policy: Box::new(Faster { policy, speed, rest: 0 }), neighbours }
    }))
}

/// A policy whose time passes faster.
struct Faster {
    policy: Box<dyn Policy>,
    speed: u64,
    /// What was ordered and is less than a page.
    rest: u64,
}

impl Policy for Faster {
    fn name(&self) -> &'static str {
        self.policy.name()
    }

    fn look(&mut self, look: &Look<'_>) -> Orders {
        let more = |pages: u64| pages.saturating_mul(self.speed);
        let mut dirty = look.seen.dirty.clone();
        for count in &mut dirty.counts {
            *count = u32::try_from(more(u64::from(*count))).unwrap_or(u32::MAX);
        }
        let seen = TickView {
            now_micros: more(look.seen.now_micros),
            dirty: &dirty,
            dirty_pages: more(look.seen.dirty_pages),
            frames_total: more(look.seen.frames_total),
            frames_free: more(look.seen.frames_free),
            ..look.seen.clone()
        };
        let orders = self.policy.look(&Look { seen: &seen, wrote: more(look.wrote), ..*look });
        let ordered = orders.pages.saturating_add(self.rest);
        self.rest = ordered % self.speed;
        Orders {
            pages: ordered / self.speed,
            again_micros: orders.again_micros / self.speed,
            free_frames: (orders.free_frames / self.speed).max(4),
            // Pages are fewer by as much as seconds are shorter: in a real second as many.
            ..orders
        }
    }
}

fn boxed(kind: Kind, knobs: &Knobs) -> Box<dyn Policy> {
    let knobs = knobs.clone();
    match kind {
        Kind::Deadline | Kind::Furious => {
            Box::new(Running { kind, knobs, state: MasterState::default(), decide: furious })
        }
        Kind::Mysql56 => {
            Box::new(Running { kind, knobs, state: Mysql56State::default(), decide: mysql_5_6 })
        }
        Kind::Mysql8 => {
            Box::new(Running { kind, knobs, state: Mysql8State::default(), decide: mysql_8 })
        }
        Kind::Mariadb105 => {
            Box::new(Running { kind, knobs, state: MariadbState::default(), decide: mariadb_10_5 })
        }
        Kind::Reflex => {
            Box::new(Running { kind, knobs, state: XtradbState::default(), decide: reflex })
        }
        Kind::Estimate => {
            Box::new(Running { kind, knobs, state: XtradbState::default(), decide: estimate })
        }
        Kind::KeepAverage => {
            Box::new(Running { kind, knobs, state: XtradbState::default(), decide: keep_average })
        }
    }
}

/// A policy's function with its knobs and numbers.
struct Running<S> {
    kind: Kind,
    knobs: Knobs,
    state: S,
    decide: fn(&Knobs, &mut S, &Look<'_>) -> Orders,
}

impl<S: Send> Policy for Running<S> {
    fn name(&self) -> &'static str {
        self.kind.name()
    }

    fn look(&mut self, look: &Look<'_>) -> Orders {
        (self.decide)(&self.knobs, &mut self.state, look)
    }
}
