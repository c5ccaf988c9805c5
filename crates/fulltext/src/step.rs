//! What an operator does with each document that its operand has.
use foldhash::HashMap;
use smallvec::SmallVec;

use crate::query::Op;

/// What is known of a document that was found.
#[derive(Clone, Default)]
pub(crate) struct Standing {
    pub(crate) rank: f32,
    /// Words of the query that it has.
    pub(crate) terms: SmallVec<[u32; 4]>,
}

pub(crate) type Found = HashMap<u32, Standing>;

/// An operator at work: what it does with each document that its operand has.
pub(crate) struct Step {
    pub(crate) op: Op,
    /// With `+`, none comes in that was not found before.
    narrowed: bool,
    /// With `+`, those that stay.
    pub(crate) kept: Found,
}

impl Step {
    pub(crate) fn new(op: Op, narrowed: bool) -> Step {
        Step { op, narrowed, kept: Found::default() }
    }

    pub(crate) fn take(&mut self, found: &mut Found, document: u32, rank: f32) {
        let add = |found: &mut Found| {
            found.entry(document).or_insert(Standing { rank, terms: SmallVec::new() });
        };
        let change = |found: &mut Found, by: f32| {
            if let Some(standing) = found.get_mut(&document) {
                standing.rank = (standing.rank + by).clamp(-1.0, 1.0);
            }
        };
        match self.op {
            Op::Add => add(found),
            Op::Must => self.keep(found, document, rank),
            Op::MustNot => drop(found.remove(&document)),
            Op::Lower => change(found, -1.0),
            Op::AddLower => {
                add(found);
                change(found, -1.0);
            }
            Op::AddHigher => {
                add(found);
                change(found, 1.0);
            }
        }
    }

    fn keep(&mut self, found: &mut Found, document: u32, rank: f32) {
        if self.kept.contains_key(&document) {
            return;
        }
        match found.remove(&document) {
            Some(standing) => {
                let rank = (rank + standing.rank).clamp(-1.0, 1.0);
                self.kept.insert(document, Standing { rank, ..standing });
            }
            None if self.narrowed => {}
            None => drop(self.kept.insert(document, Standing { rank, terms: SmallVec::new() })),
        }
    }

    /// The document has a word of the query.
    pub(crate) fn note(&mut self, found: &mut Found, document: u32, term: u32) {
        let standing = match self.kept.get_mut(&document) {
            Some(standing) => Some(standing),
            None => found.get_mut(&document),
        };
        if let Some(standing) = standing
            && !standing.terms.contains(&term)
        {
            standing.terms.push(term);
        }
    }
}
