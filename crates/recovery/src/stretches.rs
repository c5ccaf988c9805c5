//! Stretches of the log that are known by their contents alone, and read when a thread needs what
//! is in them.
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use weir_base::lock::Mutex;
use weir_base::rank;
use weir_base::{Lsn, PageNo, checksum_more};
use weir_change::{DecodeError, decode};
use weir_redo::{Chunk, Reader, RedoError};

use crate::chains::{Place, by_page};
use crate::contents::Stretch;
use crate::unreadable::unreadable;

/// Parts of a stretch are read so often at most: each takes a twentieth of the time of all of it.
const PARTS_READ_MAX: u32 = 12;
/// A page with changes in more stretches reads parts all the same: with all of each it would wait
/// for most of the log.
const STRETCHES_FEW: usize = 8;
/// For each stretch; a few pages that change all the time, or hundreds that do not.
const ASKED_MUCH: usize = 4;

/// The stretches, by number, and the files that they lie in.
pub(crate) struct Stretches {
    reader: Reader,
    all: Vec<Lazy>,
    /// The next that is read without being asked for.
    next: AtomicUsize,
    /// How often parts were read.
    asked: AtomicUsize,
}

/// A stretch, read or not.
struct Lazy {
    start: Lsn,
    end: Lsn,
    before: u32,
    digest: u32,
    /// Where its parts begin.
    parts: Vec<Lsn>,
    /// Of each of its pages, the parts with its changes.
    parts_of_pages: Vec<u32>,
    read: OnceLock<Loaded>,
    /// How often parts of it were read.
    asked: AtomicU32,
    /// Held by a thread that reads it.
    reading: Mutex<rank::LogStretch, ()>,
}

impl Stretches {
    pub(crate) fn new(reader: Reader, contents: &[Stretch]) -> Stretches {
        let lazy = |s: &Stretch| Lazy {
            start: s.start,
            end: s.end,
            before: s.before,
            digest: s.digest,
            parts: s.parts.clone(),
            parts_of_pages: s.pages.iter().map(|changed| changed.parts).collect(),
            read: OnceLock::new(),
            asked: AtomicU32::new(0),
            reading: Mutex::new(()),
        };
        Stretches {
            reader,
            all: contents.iter().map(lazy).collect(),
            next: AtomicUsize::new(0),
            asked: AtomicUsize::new(0),
        }
    }

    /// A stretch if it was read; or, for a page that needs few, if so many have asked for parts of
    /// it that reading all of it is less work. `of`: how many the page needs.
    ///
    /// # Errors
    /// As [`Stretches::read`].
    pub(crate) fn get(&self, number: usize, of: usize) -> Result<Option<&Loaded>, RedoError> {
        let lazy = &self.all[number];
        if let Some(loaded) = lazy.read.get() {
            return Ok(Some(loaded));
        }
        self.asked.fetch_add(1, Ordering::Relaxed);
        let asked = lazy.asked.fetch_add(1, Ordering::Relaxed);
        if asked < PARTS_READ_MAX || of > STRETCHES_FEW {
            return Ok(None);
        }
        self.read(number).map(Some)
    }

    /// A stretch, read now if it was not.
    ///
    /// # Errors
    /// [`RedoError`]: it cannot be read, or is not what was written down.
    pub(crate) fn read(&self, number: usize) -> Result<&Loaded, RedoError> {
        let lazy = &self.all[number];
        if let Some(loaded) = lazy.read.get() {
            return Ok(loaded);
        }
        let _reading = lazy.reading.lock();
        if let Some(loaded) = lazy.read.get() {
            return Ok(loaded);
        }
        let loaded = self.load(lazy)?;
        Ok(lazy.read.get_or_init(|| loaded))
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether the last one has been read, or is being read.
    pub(crate) fn are_read(&self) -> bool {
        self.next.load(Ordering::Relaxed) >= self.all.len()
    }

    /// Whether parts were read so often that it is time to read all.
    pub(crate) fn are_asked_much(&self) -> bool {
        self.asked.load(Ordering::Relaxed) > ASKED_MUCH * self.all.len()
    }

    /// Reads the next stretch that no thread has asked for; `false`: there is none. What is wrong
    /// with it is an error of the thread that needs it.
    pub(crate) fn read_next(&self) -> bool {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        if number >= self.all.len() {
            self.next.store(self.all.len(), Ordering::Relaxed);
            return false;
        }
        let _ = self.read(number);
        true
    }

    /// Reads of a stretch the parts with changes of one page, named also by its place among those
    /// of the stretch.
    ///
    /// # Errors
    /// [`RedoError`]: they cannot be read.
    pub(crate) fn read_page(
        &self,
        number: usize,
        page_index: usize,
        page: PageNo,
    ) -> Result<Loaded, RedoError> {
        let lazy = &self.all[number];
        let wanted = lazy.parts_of_pages[page_index];
        let is_wanted = |part: usize| wanted >> part & 1 == 1;
        let begins = |part: usize| lazy.parts.get(part).copied().unwrap_or(lazy.end);
        let (mut loaded, mut changes, mut part) = (Loaded::default(), Vec::new(), 0);
        while part < lazy.parts.len() {
            let first = part;
            while part < lazy.parts.len() && is_wanted(part) {
                part += 1;
            }
            if part > first {
                let (from, to) = (begins(first), begins(part));
                let take = |chunk: &mut Chunk| {
                    loaded.take(std::mem::take(chunk), &mut changes, Some(page))
                };
                let end = self.reader.chunks(from, to, take)?;
                check(from, (end, 0), (to, 0))?;
            }
            part += 1;
        }
        if changes.is_empty() {
            return Err(unreadable(lazy.start, "what was written down of it is wrong"));
        }
        loaded.arrange(&changes);
        Ok(loaded)
    }

    fn load(&self, lazy: &Lazy) -> Result<Loaded, RedoError> {
        let (mut loaded, mut changes) = (Loaded::default(), Vec::new());
        let mut digest = lazy.before;
        let end = self.reader.chunks(lazy.start, lazy.end, |chunk| {
            digest = checksum_more(digest, chunk.payload());
            loaded.take(std::mem::take(chunk), &mut changes, None)
        })?;
        check(lazy.start, (end, digest), (lazy.end, lazy.digest))?;
        loaded.arrange(&changes);
        if loaded.starts.len() != lazy.parts_of_pages.len() + 1 {
            return Err(unreadable(lazy.start, "what was written down of it is wrong"));
        }
        Ok(loaded)
    }
}

/// Whether what was read ends where it must, with the digest that it must have.
fn check(start: Lsn, found: (Lsn, u32), expected: (Lsn, u32)) -> Result<(), RedoError> {
    if found != expected {
        return Err(unreadable(start, "it is not what it was when it was written"));
    }
    Ok(())
}

/// A group that changes a page.
#[derive(Clone, Copy)]
struct Change {
    page: PageNo,
    /// Whether it makes it anew.
    makes: bool,
    place: Place,
}

/// A stretch in memory.
#[derive(Default)]
pub(crate) struct Loaded {
    pub(crate) chunks: Vec<Chunk>,
    /// Groups that change a page, or several one directly after the other: of all pages, ascending,
    /// each one's in the order of the log, from where it is made.
    places: Vec<Place>,
    /// Where each page's begin.
    starts: Vec<u32>,
}

impl Loaded {
    /// Takes in the changes of all pages, or of one.
    fn take(
        &mut self,
        chunk: Chunk,
        all: &mut Vec<Change>,
        only: Option<PageNo>,
    ) -> Result<(), RedoError> {
        let number = self.chunks.len() as u32;
        for group in chunk.groups() {
            let (at, len) = (group.frame.start as u32, group.frame.len() as u32);
            let place = Place { chunk: number, at, len };
            let bad = |e: DecodeError| unreadable(group.span.start, &e.to_string());
            let (_, ops) = decode(&chunk.payload()[group.body.clone()]).map_err(bad)?;
            for op in ops {
                let op = op.map_err(bad)?;
                if let Some(page) = op.page().filter(|&page| only.is_none_or(|only| only == page)) {
                    add(all, Change { page, makes: op.makes_page(), place });
                }
            }
        }
        self.chunks.push(chunk);
        Ok(())
    }

    /// Puts the changes in order.
    fn arrange(&mut self, all: &[Change]) {
        let order = by_page(all.iter().map(|change| change.page));
        for of_page in order.chunk_by(|a, b| a >> 32 == b >> 32) {
            let from = self.places.len();
            self.starts.push(from as u32);
            for change in of_page.iter().map(|&key| &all[key as u32 as usize]) {
                if change.makes {
                    self.places.truncate(from);
                }
                let joins =
                    |last: &mut Place| last.ends_with(change.place) || last.extend(change.place);
                if !self.places[from..].last_mut().is_some_and(joins) {
                    self.places.push(change.place);
                }
            }
        }
        self.starts.push(self.places.len() as u32);
        self.places.shrink_to_fit();
    }

    /// The groups that change a page and matter, in the order of the log; the page is named by its
    /// place among those of the stretch.
    pub(crate) fn changes_of(&self, page_index: usize) -> &[Place] {
        let bounds = self.starts.get(page_index).zip(self.starts.get(page_index + 1));
        bounds.map_or(&[], |(&from, &to)| &self.places[from as usize..to as usize])
    }
}

/// Of one group, mostly one change of a page is enough.
fn add(all: &mut Vec<Change>, change: Change) {
    match all.last_mut() {
        Some(last) if last.page == change.page && last.place == change.place => {
            last.makes |= change.makes;
        }
        _ => all.push(change),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_each_group_once_from_where_it_is_made() {
        let mut all = Vec::new();
        let place = |at: u32| Place { chunk: 0, at, len: 10 };
        let groups = [
            (7, 0, false),
            // In one group: another page between, and made by its second change.
            (7, 10, false),
            (9, 10, false),
            (7, 10, false),
            (7, 20, false),
            (9, 20, true),
            (7, 20, false),
            (9, 30, false),
            (5, 40, false),
            (5, 40, true),
            (7, 50, false),
            (9, 60, false),
        ];
        for (page, at, makes) in groups {
            add(&mut all, Change { page: PageNo(page), makes, place: place(at) });
        }
        let mut loaded = Loaded::default();
        loaded.arrange(&all);
        let changes = |index| {
            let changes = loaded.changes_of(index).iter();
            changes.map(|p| (p.at, p.len)).collect::<Vec<_>>()
        };
        assert_eq!(changes(0), [(40, 10)], "page 5");
        assert_eq!(changes(1), [(0, 30), (50, 10)], "page 7");
        assert_eq!(changes(2), [(20, 20), (60, 10)], "page 9, made in the second one");
        assert!(changes(3).is_empty() && changes(4).is_empty());
    }
}
