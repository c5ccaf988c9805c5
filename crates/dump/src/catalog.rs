//! `weir dump catalog`: the names of trees and where their roots lie, from the pages alone.
use std::collections::BTreeSet;
use std::io::{self, Write};

use weir::on_disk::{CATALOG_ROOT, CATALOG_TREE, catalog_entry};
use weir_base::PageNo;
use weir_page::{Kind, Node};

use crate::data_file::{DataFile, StoredPage};
use crate::files::{Files, Sound};
use crate::page::fault;
use crate::words::brief;

/// What a walk through the catalog's pages has come to.
struct Walk<'a> {
    files: &'a Files,
    file: &'a DataFile,
    page_size: usize,
    seen: BTreeSet<u32>,
    out: &'a mut dyn Write,
    sound: Sound,
}

/// Prints every entry of the catalog that a sound page holds, and what lies where its root should.
/// When a page of the catalog is damaged, all leaves of it that the data file holds are looked for.
///
/// # Errors
/// Those of `out`, and what the device reports.
pub fn catalog(files: &Files, out: &mut dyn Write) -> io::Result<Sound> {
    files.remark(out)?;
    let (Some(page_size), Some(file)) = (files.page_size, files.data_file()?) else {
        writeln!(out, "the data file is not there, or nothing says how large a page is")?;
        return Ok(Sound::No);
    };
    let mut walk =
        Walk { files, file: &file, page_size, seen: BTreeSet::new(), out, sound: Sound::Yes };
    walk.down(CATALOG_ROOT)?;
    if walk.sound == Sound::No {
        walk.everywhere()?;
    }
    Ok(walk.sound)
}

impl Walk<'_> {
    fn damaged(&mut self, page_no: PageNo, what: &str) -> io::Result<()> {
        self.sound = Sound::No;
        writeln!(self.out, "page {page_no} of the catalog is DAMAGED: {what}")
    }

    /// A page and all below it. A page is visited once, whatever its parents say.
    fn down(&mut self, page_no: PageNo) -> io::Result<()> {
        let mut waiting = vec![page_no];
        while let Some(page_no) = waiting.pop() {
            if !self.seen.insert(page_no.0) {
                self.damaged(page_no, "more than one node leads to it")?;
                continue;
            }
            let page = match self.file.read(page_no, self.page_size)? {
                StoredPage::Page(page) => page,
                StoredPage::Damaged(why) => {
                    self.damaged(page_no, &why)?;
                    continue;
                }
                StoredPage::Beyond => {
                    self.damaged(page_no, "it lies beyond the end of the file")?;
                    continue;
                }
            };
            if let Some(fault) = fault(&page, self.files.db, page_no) {
                self.damaged(page_no, &fault)?;
                continue;
            }
            let node = Node::new(&page[..]);
            match node.kind() {
                _ if node.tree() != CATALOG_TREE => {
                    self.damaged(page_no, "it is no page of the catalog")?;
                }
                Some(Kind::Leaf) => self.entries(node)?,
                Some(Kind::Inner) => {
                    waiting.extend((0..=node.count()).rev().map(|i| node.child(i)))
                }
                _ => self.damaged(page_no, "it is no node of a tree")?,
            }
        }
        Ok(())
    }

    /// Every leaf of the catalog in the file that the walk did not come to.
    fn everywhere(&mut self) -> io::Result<()> {
        let pages = self.file.pages(self.page_size);
        writeln!(self.out, "looking for its leaves in all {pages} pages:")?;
        for page_no in (0..pages.min(u64::from(u32::MAX)) as u32).map(PageNo) {
            if self.seen.contains(&page_no.0) {
                continue;
            }
            let page = match self.file.read(page_no, self.page_size)? {
                StoredPage::Page(page) => page,
                StoredPage::Damaged(_) => continue,
                StoredPage::Beyond => break,
            };
            let node = Node::new(&page[..]);
            let is_one = node.is_leaf() && node.tree() == CATALOG_TREE && node.count() > 0;
            if is_one && fault(&page, self.files.db, page_no).is_none() {
                writeln!(self.out, "page {page_no} (in use, or freed and not used again):")?;
                self.entries(node)?;
            }
        }
        Ok(())
    }

    fn entries(&mut self, leaf: Node<&[u8]>) -> io::Result<()> {
        for slot in 0..leaf.count() {
            let name = brief(&leaf.key(slot));
            let state = if leaf.is_deleted(slot) { ", dropped or renamed" } else { "" };
            let writer = leaf.stamp(slot).writer;
            let Some((tree, root)) = catalog_entry(leaf.value(slot)) else {
                if !leaf.is_deleted(slot) {
                    self.sound = Sound::No;
                    writeln!(self.out, "{name}: an entry that cannot be read")?;
                }
                continue;
            };
            let there = self.root(root, tree)?;
            writeln!(
                self.out,
                "{name}: tree {tree}, root page {root} ({there}), transaction {writer}{state}"
            )?;
        }
        Ok(())
    }

    /// What lies where a tree's root should lie.
    fn root(&mut self, root: PageNo, tree: weir_base::TreeId) -> io::Result<String> {
        let page = match self.file.read(root, self.page_size)? {
            StoredPage::Page(page) => page,
            StoredPage::Damaged(why) => {
                self.sound = Sound::No;
                return Ok(format!("DAMAGED: {why}"));
            }
            StoredPage::Beyond => return Ok("beyond the end of the file".to_owned()),
        };
        if page.iter().all(|&byte| byte == 0) {
            return Ok("not written yet".to_owned());
        }
        if let Some(fault) = fault(&page, self.files.db, root) {
            self.sound = Sound::No;
            return Ok(format!("DAMAGED: {fault}"));
        }
        let node = Node::new(&page[..]);
        Ok(match node.kind() {
            Some(Kind::Leaf | Kind::Inner) if node.tree() == tree => {
                format!("{} levels", u32::from(node.level()) + 1)
            }
            Some(kind) => {
                format!("on disk a page of tree {}, {kind:?}", node.tree()).to_lowercase()
            }
            None => "of no known kind".to_owned(),
        })
    }
}
