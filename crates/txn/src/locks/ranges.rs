//! The ranges that are held in one tree, those of each owner by where they begin: a join that locks
//! a range of its inner table for each row of the outer one holds very many.
use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Included, Unbounded};
use std::sync::Arc;

use weir_base::TxnId;

use super::kind::Kind;
use super::lock_holder::LockHolder;
use super::owner::Owner;
use super::place::{Place, Span, is_below, is_no_later};

/// The ranges of a tree that are held. Asking costs a search for each pair of an owner and a kind.
#[derive(Default)]
pub(super) struct Ranges {
    owners: Vec<Own>,
}

/// What one owner holds with one kind; never nothing.
struct Own {
    held: LockHolder,
    spans: Spans,
}

/// What the number of ranges was changed by.
pub(super) struct Grown {
    pub(super) added: u32,
    /// Those that have become parts of others.
    pub(super) gone: u32,
}

impl Ranges {
    pub(super) fn is_empty(&self) -> bool {
        self.owners.is_empty()
    }

    /// The holders of something in `place`: once for each kind that one holds there.
    pub(super) fn holders<'s>(&'s self, place: Place<'s>) -> impl Iterator<Item = &'s LockHolder> {
        self.owners.iter().filter(move |own| own.spans.meet(place)).map(|own| &own.held)
    }

    /// Whether `id` has what `kind` would give it at `place`, in one range.
    pub(super) fn covers(&self, id: TxnId, place: Place<'_>, kind: Kind) -> bool {
        let suits = |held: &LockHolder| held.id == id && held.kind.covers(kind);
        self.owners.iter().any(|own| suits(&own.held) && own.spans.cover(place))
    }

    /// Whether `id` holds any range.
    pub(super) fn has(&self, id: TxnId) -> bool {
        self.owners.iter().any(|own| own.held.id == id)
    }

    /// Adds a range that is not empty.
    pub(super) fn add(
        &mut self,
        owner: &Arc<Owner>,
        from: &[u8],
        to: Option<&[u8]>,
        kind: Kind,
    ) -> Grown {
        let is = |own: &Own| own.held.id == owner.id() && own.held.kind == kind;
        let at = self.owners.iter().position(is).unwrap_or_else(|| {
            self.owners.push(Own { held: LockHolder::new(owner, kind), spans: Spans::default() });
            self.owners.len() - 1
        });
        self.owners[at].spans.add(from, to)
    }

    /// Takes away all that `id` holds: how many ranges, and one from the first to the last of them.
    pub(super) fn remove(&mut self, id: TxnId) -> (u32, Option<Span>) {
        let (mut count, mut all) = (0, None::<Span>);
        while let Some(at) = self.owners.iter().position(|own| own.held.id == id) {
            let spans = self.owners.swap_remove(at).spans;
            count += spans.ends.len() as u32;
            let Some((from, to)) = spans.hull() else { continue };
            match &mut all {
                Some(all) => all.absorb(from, to),
                None => all = Some(Span::new(from, to)),
            }
        }
        (count, all)
    }

    /// All of them, with their holders.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&LockHolder, Place<'_>)> {
        self.owners.iter().flat_map(|Own { held, spans }| {
            spans
                .ends
                .iter()
                .map(move |(from, to)| (held, Place::Range { from, to: to.as_deref() }))
        })
    }
}

/// Ranges that do not touch each other.
#[derive(Default)]
struct Spans {
    /// Where each begins, and the first key behind it, if it has an end.
    ends: BTreeMap<Box<[u8]>, Option<Box<[u8]>>>,
}

impl Spans {
    /// The end of the last that begins no later than with `key`: if one holds `key`, this one.
    fn end_around(&self, key: &[u8]) -> Option<Option<&[u8]>> {
        let before = self.ends.range::<[u8], _>((Unbounded, Included(key)));
        before.map(|(_, to)| to.as_deref()).next_back()
    }

    /// Whether one of them has a key in `place`.
    fn meet(&self, place: Place<'_>) -> bool {
        let (from, end) = match place {
            Place::Key(key) => (key, self.end_around(key)),
            // Of those that begin in time, the last one goes on the longest.
            Place::Range { from, to } => {
                let bound = to.map_or(Unbounded, Excluded);
                let in_time = self.ends.range::<[u8], _>((Unbounded, bound));
                (from, in_time.map(|(_, to)| to.as_deref()).next_back())
            }
        };
        end.is_some_and(|end| is_below(from, end))
    }

    /// Whether one of them holds all of `place`.
    fn cover(&self, place: Place<'_>) -> bool {
        match place {
            Place::Key(_) => self.meet(place),
            Place::Range { from, to } => {
                self.end_around(from).is_some_and(|end| is_no_later(to, end))
            }
        }
    }

    /// Adds one, which becomes one with all that touch it.
    fn add(&mut self, from: &[u8], to: Option<&[u8]>) -> Grown {
        let (mut end, mut gone) = (to.map(Box::<[u8]>::from), 0);
        // Those that begin behind `from`, and where it ends at the latest.
        loop {
            let bound = end.as_deref().map_or(Unbounded, Included);
            let mut behind = self.ends.range::<[u8], _>((Excluded(from), bound));
            let Some(start) = behind.next().map(|(start, _)| start.clone()) else { break };
            let further = self.ends.remove(&start).expect("just found");
            if !is_no_later(further.as_deref(), end.as_deref()) {
                end = further;
            }
            gone += 1;
        }
        // The usual case: a scan goes on, and what it has becomes longer.
        let mut before = self.ends.range_mut::<[u8], _>((Unbounded, Included(from)));
        if let Some((_, own_end)) = before.next_back()
            && own_end.as_deref().is_none_or(|own_end| from <= own_end)
        {
            if !is_no_later(end.as_deref(), own_end.as_deref()) {
                *own_end = end;
            }
            return Grown { added: 0, gone };
        }
        self.ends.insert(from.into(), end);
        Grown { added: 1, gone }
    }

    /// From the first key of the first to the last of the last.
    fn hull(&self) -> Option<(&[u8], Option<&[u8]>)> {
        let (first, last) = (self.ends.first_key_value()?, self.ends.last_key_value()?);
        Some((first.0, last.1.as_deref()))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    /// Every key there is, in order; ranges begin and end at them.
    const KEYS: [&[u8]; 9] = [b"", b"a", b"b", b"c", b"d", b"e", b"f", b"g", b"h"];

    fn range((from, count): (usize, usize)) -> (&'static [u8], Option<&'static [u8]>) {
        (KEYS[from], KEYS.get(from + count).copied())
    }

    fn keys((from, count): (usize, usize)) -> impl Iterator<Item = usize> {
        from..KEYS.len().min(from + count)
    }

    proptest! {
        /// Against a set of the keys: they are as few as can be, and meet and hold what they must.
        #[test]
        fn spans_are_the_set_of_their_keys(
            added in prop::collection::vec((0..9_usize, 1..4_usize), 0..8),
            asked in (0..9_usize, 1..9_usize),
        ) {
            let (mut spans, mut model) = (Spans::default(), BTreeSet::new());
            for one in added {
                let (from, to) = range(one);
                let before = spans.ends.len() as u32;
                let grown = spans.add(from, to);
                prop_assert_eq!(spans.ends.len() as u32, before + grown.added - grown.gone);
                model.extend(keys(one));
            }
            let runs = model.iter().filter(|&&at| at == 0 || !model.contains(&(at - 1))).count();
            prop_assert_eq!(spans.ends.len(), runs);
            let (from, to) = range(asked);
            let place = Place::Range { from, to };
            prop_assert_eq!(spans.meet(place), keys(asked).any(|at| model.contains(&at)));
            prop_assert_eq!(spans.cover(place), keys(asked).all(|at| model.contains(&at)));
            let key = Place::Key(from);
            prop_assert_eq!(spans.meet(key), model.contains(&asked.0));
            prop_assert_eq!(spans.cover(key), model.contains(&asked.0));
            let hull = model.first().zip(model.last());
            let hull = hull.map(|(first, last)| (KEYS[*first], KEYS.get(last + 1).copied()));
            prop_assert_eq!(spans.hull(), hull);
        }
    }
}
