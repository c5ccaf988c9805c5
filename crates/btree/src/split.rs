//! Making room: a full node is cut in two, and the separator goes to its parent, which may have to
//! be cut first. Each cut is a group of its own and leaves a sound tree.
use weir_base::PageNo;
use weir_change::{Group, Op};
use weir_page::{Incoming, Kind, Split, separator};
use weir_pool::Exclusive;

use crate::descend::DescentTarget;
use crate::error::TreeError;
use crate::tree::Tree;

/// What room is needed for, at a key.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Room {
    /// A row whose value takes so many bytes in the leaf, there already or not.
    Row { value_len: usize },
    /// A separator and its child.
    Child,
}

impl Room {
    fn incoming<'k>(self, key: &'k [u8], at: Result<usize, usize>) -> Incoming<'k> {
        match (self, at) {
            (Room::Row { value_len }, Ok(slot)) => Incoming::Value { slot, value_len },
            (Room::Row { value_len }, Err(slot)) => Incoming::Row { slot, key, value_len },
            (Room::Child, Ok(slot) | Err(slot)) => Incoming::Child { slot, key },
        }
    }
}

impl Tree {
    /// Makes room in the node at `level` on the way to `key`. Returns when it fits, or something
    /// changed that the caller must look at anew; the caller tries its change again either way.
    pub(crate) fn make_room(&self, key: &[u8], level: u8, room: Room) -> Result<(), TreeError> {
        // Claimed without latches: the file may have to grow.
        let claimed = self.env.space.claim(1)?;
        let page = claimed[0];
        let outcome = self.try_make_room(key, level, room, page);
        if !matches!(outcome, Ok(Outcome::Used)) {
            self.env.space.unclaim(&claimed);
        }
        match outcome? {
            Outcome::ParentFull { separator } => self.make_room(&separator, level + 1, Room::Child),
            Outcome::Used | Outcome::Unused => Ok(()),
        }
    }

    fn try_make_room(
        &self,
        key: &[u8],
        level: u8,
        room: Room,
        claimed: PageNo,
    ) -> Result<Outcome, TreeError> {
        let Some(arrived) = self.try_descend(DescentTarget::Key(key), level)? else {
            return Ok(Outcome::Unused);
        };
        let parent = match arrived.parent {
            None => None,
            Some(parent) => match parent.upgrade() {
                Some(held) => Some(held),
                None => return Ok(Outcome::Unused),
            },
        };
        let Some(node) = arrived.node.upgrade() else { return Ok(Outcome::Unused) };
        let view = node.node();
        if view.level() != level {
            return Ok(Outcome::Unused);
        }
        let incoming = room.incoming(key, view.search(key));
        if fits(&node, incoming) {
            return Ok(Outcome::Unused);
        }
        let Some(parent) = parent else { return self.grow_root(node, claimed) };
        let Some(cut) = view.split_point(incoming) else {
            return Err(self.damaged(node.page(), "a full node cannot be cut"));
        };
        let up = cut_key(&node, cut, incoming);
        let slot = match parent.node().search(&up) {
            Err(slot) => slot,
            Ok(_) => return Err(self.damaged(parent.page(), "a separator stands there twice")),
        };
        if !parent.node().fits_child(slot, &up) {
            return Ok(Outcome::ParentFull { separator: up });
        }
        self.cut(parent, node, cut, &up, claimed)
    }

    /// Moves the upper part of `node` to the page `right` and names it in `parent`.
    fn cut<'p>(
        &'p self,
        parent: Exclusive<'p>,
        mut node: Exclusive<'p>,
        cut: Split,
        up: &[u8],
        right: PageNo,
    ) -> Result<Outcome, TreeError> {
        // No row may move when only the incoming one goes right. The range is a smaller one all the
        // same: a thread that found this page for a key beyond the separator must look again
        // (BTREE-2).
        node.invalidate();
        let (left, above) = (node.page(), parent.page());
        let view = node.node();
        let (level, inner) = (view.level(), view.is_inner());
        let mut moved = Vec::new();
        view.dump(cut.at + usize::from(inner)..view.count(), &mut moved);
        let leftmost = view.child(cut.at + 1);
        let first_moved = (cut.at < view.count()).then(|| view.key(cut.at));
        let fresh = self.env.pool.fresh(right)?;
        let mut group = Group::begin(Self::structural());
        let (parent, node, fresh) = (group.hold(parent), group.hold(node), group.hold(fresh));
        self.env.space.log_used(&mut group, &[right])?;
        let kind = if inner { Kind::Inner } else { Kind::Leaf };
        group.apply(fresh, &Op::Init { page: right, kind, level, tree: self.id });
        if inner {
            group.apply(fresh, &Op::SetLink { page: right, link: leftmost });
        }
        group.apply(fresh, &Op::Load { page: right, rows: &moved });
        if let Some(key) = &first_moved {
            group.apply(node, &Op::TruncateFrom { page: left, key });
        }
        group.apply(parent, &Op::InsertChild { page: above, key: up, child: right });
        group.commit(self.env.pool.log())?;
        Ok(Outcome::Used)
    }

    /// Gives the root's content to the page `child` and makes the root its only parent. The root's
    /// page number stays.
    fn grow_root<'p>(&'p self, root: Exclusive<'p>, child: PageNo) -> Result<Outcome, TreeError> {
        let number = root.page();
        let view = root.node();
        let (level, inner, link) = (view.level(), view.is_inner(), view.link());
        let mut rows = Vec::new();
        view.dump(0..view.count(), &mut rows);
        let fresh = self.env.pool.fresh(child)?;
        let mut group = Group::begin(Self::structural());
        let (root, fresh) = (group.hold(root), group.hold(fresh));
        self.env.space.log_used(&mut group, &[child])?;
        let kind = if inner { Kind::Inner } else { Kind::Leaf };
        group.apply(fresh, &Op::Init { page: child, kind, level, tree: self.id });
        if inner {
            group.apply(fresh, &Op::SetLink { page: child, link });
        }
        group.apply(fresh, &Op::Load { page: child, rows: &rows });
        let above = Op::Init { page: number, kind: Kind::Inner, level: level + 1, tree: self.id };
        group.apply(root, &above);
        group.apply(root, &Op::SetLink { page: number, link: child });
        group.commit(self.env.pool.log())?;
        Ok(Outcome::Used)
    }
}

enum Outcome {
    /// The claimed page is part of the tree now.
    Used,
    /// Nothing was done: it fits already, or something changed.
    Unused,
    /// The parent has no room for this separator.
    ParentFull { separator: Vec<u8> },
}

fn fits(node: &Exclusive<'_>, incoming: Incoming<'_>) -> bool {
    let node = node.node();
    match incoming {
        Incoming::Row { slot, key, value_len } => node.fits_row(slot, key, value_len),
        Incoming::Value { slot, value_len } => node.fits_value(slot, value_len),
        Incoming::Child { slot, key } => node.fits_child(slot, key),
    }
}

/// The separator between the two halves. In an inner node it is the one that moves up; in a leaf
/// the shortest key that tells the halves apart, the incoming row counted in.
fn cut_key(node: &Exclusive<'_>, cut: Split, incoming: Incoming<'_>) -> Vec<u8> {
    let view = node.node();
    if view.is_inner() {
        return view.key(cut.at);
    }
    let new = match incoming {
        Incoming::Row { slot, key, .. } if slot == cut.at => Some(key),
        _ => None,
    };
    let last_left = match new {
        Some(key) if !cut.incoming_right => Some(key.to_vec()),
        _ => cut.at.checked_sub(1).map(|slot| view.key(slot)),
    };
    let first_right = match new {
        Some(key) if cut.incoming_right => key.to_vec(),
        _ => view.key(cut.at),
    };
    match last_left {
        Some(last) => separator(&last, &first_right).to_vec(),
        None => first_right,
    }
}
