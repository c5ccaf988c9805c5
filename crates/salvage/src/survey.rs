//! Every page of the file, once: which leaves there are and what keys they begin and end with,
//! which inner nodes, which pages the space maps say are in use, and what is damaged.
use weir::on_disk::CATALOG_TREE;
use weir_base::{Lsn, PageNo, TreeId};
use weir_change::map_bit;
use weir_page::{Damage, HEADER_BYTES, Kind, Node, check};
use weir_pool::{ERA_PAGES, PageStore, PoolError};

use crate::bits::Bits;
use crate::error::SalvageError;
use crate::harvest::{Harvest, Leaf};
use crate::pages::each_page;
use crate::report::DamagedPage;

/// So many damaged pages are named; more are counted.
const NAMED_MAX: usize = 1_000;

/// An inner node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Inner {
    pub(crate) tree: TreeId,
    /// Reversed, so that the highest ones of a tree come first.
    pub(crate) depth: u8,
    pub(crate) page: PageNo,
}

/// What the pages are.
#[derive(Default)]
pub(crate) struct Survey {
    /// Leaves that are sound.
    pub(crate) leaves: Bits,
    pub(crate) inner: Vec<Inner>,
    pub(crate) maps: Maps,
    pub(crate) pages: u64,
    pub(crate) damaged: Vec<DamagedPage>,
    pub(crate) damaged_count: u64,
    /// The newest change of any page.
    pub(crate) newest: Lsn,
    /// Rows in leaves and leaves, for what a leaf holds on average.
    pub(crate) rows: u64,
    pub(crate) leaf_count: u64,
}

/// Which pages are in use, as far as the space maps can be read.
#[derive(Default)]
pub(crate) struct Maps {
    bits_per_map: u32,
    used: Bits,
    /// The LSN of each map page that was read.
    lsns: Vec<Option<Lsn>>,
}

/// What a space map says of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MapSays {
    /// It is in use.
    Used,
    /// It was free when the map had this LSN.
    Free(Lsn),
    /// The map cannot be read.
    Nothing,
}

impl Maps {
    fn new(store: &dyn PageStore) -> Maps {
        let bits_per_map = ((store.page_size() - HEADER_BYTES) * 8) as u32;
        let maps = store.pages().div_ceil(bits_per_map);
        Maps { bits_per_map, used: Bits::default(), lsns: vec![None; maps as usize] }
    }

    fn is_map(&self, page: PageNo) -> bool {
        page.0.is_multiple_of(self.bits_per_map)
    }

    fn take(&mut self, page_no: PageNo, page: &[u8]) {
        let Some(lsn) = self.lsns.get_mut((page_no.0 / self.bits_per_map) as usize) else { return };
        *lsn = Some(weir_page::lsn(page));
        for bit in (0..self.bits_per_map).filter(|&bit| map_bit(page, bit) == Some(true)) {
            self.used.set(PageNo(page_no.0 + bit));
        }
    }

    pub(crate) fn says(&self, page: PageNo) -> MapSays {
        match self.lsns.get((page.0 / self.bits_per_map.max(1)) as usize) {
            Some(Some(_)) if self.used.has(page) => MapSays::Used,
            Some(&Some(lsn)) => MapSays::Free(lsn),
            _ => MapSays::Nothing,
        }
    }
}

/// Looks at all pages; leaves go to `catalog` and `others`.
pub(crate) fn survey(
    store: &dyn PageStore,
    catalog: &mut Harvest,
    others: &mut Harvest,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Survey, SalvageError> {
    let mut found =
        Survey { maps: Maps::new(store), pages: u64::from(store.pages()), ..Survey::default() };
    each_page::<SalvageError>(store, progress, &mut |page_no, page| {
        let page = match page.map(|page| (page, check(page))) {
            Ok((page, Ok(()))) => page,
            Ok((_, Err(damage))) => {
                found.note(store, page_no, damage.to_string());
                return Ok(());
            }
            // Never written; whether it should have been is asked once the maps are known.
            Err(PoolError::Damaged { found: Damage::Zeroed, .. }) => return Ok(()),
            Err(PoolError::Damaged { found: damage, .. }) => {
                found.note(store, page_no, damage.to_string());
                return Ok(());
            }
            Err(e) => {
                found.note(store, page_no, e.to_string());
                return Ok(());
            }
        };
        let node = Node::new(page);
        found.newest = found.newest.max(node.lsn());
        match node.kind() {
            Some(Kind::SpaceMap) if found.maps.is_map(page_no) => found.maps.take(page_no, page),
            Some(Kind::Leaf) => {
                let to = if node.tree() == CATALOG_TREE { &mut *catalog } else { &mut *others };
                found.take_leaf(page_no, node, to)?;
            }
            Some(Kind::Inner) => found.inner.push(Inner {
                tree: node.tree(),
                depth: u8::MAX - node.level(),
                page: page_no,
            }),
            _ => {}
        }
        Ok(())
    })?;
    for page in (0..store.pages()).step_by(found.maps.bits_per_map.max(1) as usize).map(PageNo) {
        if found.maps.says(page) == MapSays::Nothing && found.is_needed_map(store, page) {
            found.note(store, page, "it is not the space map that lies there".into());
        }
    }
    found.inner.sort_unstable();
    Ok(found)
}

impl Survey {
    fn note(&mut self, store: &dyn PageStore, page: PageNo, what: String) {
        if self.damaged.iter().any(|known| known.page == page.0) {
            return;
        }
        self.damaged_count += 1;
        if self.damaged.len() < NAMED_MAX {
            let (file, offset) = store.place(page);
            self.damaged.push(DamagedPage { page: page.0, file, offset, what });
        }
    }

    /// A map beyond the first is made with the first page behind it.
    fn is_needed_map(&self, store: &dyn PageStore, map: PageNo) -> bool {
        map.0 == 0 || map.0 + 1 < store.pages() && self.newest_behind(map)
    }

    fn newest_behind(&self, map: PageNo) -> bool {
        (map.0 + 1..map.0.saturating_add(64)).any(|page| self.leaves.has(PageNo(page)))
    }

    fn take_leaf(
        &mut self,
        page: PageNo,
        node: Node<&[u8]>,
        to: &mut Harvest,
    ) -> Result<(), SalvageError> {
        debug_assert!(!ERA_PAGES.contains(&page), "an era page is no leaf");
        self.leaves.set(page);
        let count = node.count();
        if count == 0 {
            return Ok(());
        }
        self.rows += (count - node.marks().min(count)) as u64;
        self.leaf_count += 1;
        let (first, last) = (node.key(0), node.key(count - 1));
        Leaf { tree: node.tree(), first, last, page, lsn: node.lsn() }.push(&mut to.leaves)
    }
}
