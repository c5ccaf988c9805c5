//! The state of a simulated disk: what is on the medium, what reads see, and the journal between
//! the two, from which a power loss keeps whatever it likes.
use std::collections::BTreeMap;
use std::io::{self, ErrorKind};

use weir_base::ALIGN;

use crate::device::IoStats;
use crate::sim::{AtomicPromise, CrashMode};
use crate::sim_image::Image;

/// What a disk writes whole or not at all.
const SECTOR_BYTES: u64 = 512;

/// A file, whatever its name; never used again.
pub(crate) type FileId = u64;

/// A change that a sync has not covered, in the order of the calls.
#[derive(Clone)]
enum Change {
    /// A write that may be lost, wholly or by sectors.
    Write { offset: u64, bytes: Box<[u8]> },
    /// A write that may be lost, as a whole.
    Whole { offset: u64, bytes: Box<[u8]> },
    /// A durable write amid changes that are not: it is on the medium already, and stays listed
    /// because an earlier unsynced write of the same sectors must not come out on top of it.
    Durable { offset: u64, bytes: Box<[u8]> },
    /// A growth to this length that may be lost.
    Grow { len: u64 },
    /// A cut to this length that may be lost.
    Shrink { len: u64 },
    /// A hole that may be lost, wholly or by blocks.
    Punch { offset: u64, len: u64 },
    /// Space for a hole that may be lost.
    Reserve { offset: u64, len: u64 },
}

/// One file.
#[derive(Clone, Default)]
pub(crate) struct FileState {
    /// What reads see.
    pub(crate) seen: Image,
    /// What is on the medium for certain.
    durable: Image,
    journal: Vec<Change>,
    handles: u32,
}

impl FileState {
    pub(crate) fn write(&mut self, offset: u64, buf: &[u8]) {
        self.seen.write(offset, buf);
        self.journal.push(Change::Write { offset, bytes: buf.into() });
    }

    pub(crate) fn write_whole(&mut self, offset: u64, buf: &[u8]) {
        self.seen.write(offset, buf);
        self.journal.push(Change::Whole { offset, bytes: buf.into() });
    }

    /// This write only, and the length that it takes to find it again.
    pub(crate) fn write_durable(&mut self, offset: u64, buf: &[u8]) {
        self.seen.write(offset, buf);
        if offset + buf.len() as u64 > self.durable.len() {
            self.durable.set_len(self.seen.len());
        }
        self.durable.write(offset, buf);
        if !self.journal.is_empty() {
            self.journal.push(Change::Durable { offset, bytes: buf.into() });
        }
    }

    pub(crate) fn grow(&mut self, len: u64) {
        self.seen.set_len(len);
        self.journal.push(Change::Grow { len });
    }

    pub(crate) fn shrink(&mut self, len: u64) {
        self.seen.set_len(len);
        self.journal.push(Change::Shrink { len });
    }

    pub(crate) fn punch(&mut self, offset: u64, len: u64) {
        self.seen.punch(offset, len);
        self.journal.push(Change::Punch { offset, len });
    }

    pub(crate) fn reserve(&mut self, offset: u64, len: u64) {
        self.seen.reserve(offset, len);
        self.journal.push(Change::Reserve { offset, len });
    }

    /// A write to a hole meets a full disk, always: there might be no room (DEVICE-5).
    pub(crate) fn check_reserved(&self, offset: u64, len: u64) -> io::Result<()> {
        if self.seen.hole_bytes(offset, len) == 0 {
            return Ok(());
        }
        let text = format!("simulated disk: {len} bytes at {offset} lie in a hole");
        Err(io::Error::new(ErrorKind::StorageFull, text))
    }

    pub(crate) fn sync(&mut self) {
        // Replayed rather than shared with `seen`: that would make each later write copy a chunk.
        for change in self.journal.drain(..) {
            match change {
                Change::Write { offset, bytes }
                | Change::Whole { offset, bytes }
                | Change::Durable { offset, bytes } => {
                    self.durable.write(offset, &bytes);
                }
                // A durable write may have taken the length ahead already.
                Change::Grow { len } => self.durable.set_len(len.max(self.durable.len())),
                Change::Shrink { len } => self.durable.set_len(len.min(self.durable.len())),
                Change::Punch { offset, len } => self.durable.punch(offset, len),
                Change::Reserve { offset, len } => self.durable.reserve(offset, len),
            }
        }
        debug_assert_eq!(self.durable.len(), self.seen.len());
    }

    /// What is found after a power loss. Of several versions of a sector, any may survive: the
    /// last of those that the dice keep.
    fn after_power_loss(&self, mode: CrashMode, dice: &mut fastrand::Rng) -> Image {
        let mut image = match mode {
            CrashMode::LoseAll => return self.durable.clone(),
            CrashMode::KeepAll => return self.seen.clone(),
            CrashMode::Random => self.durable.clone(),
        };
        for change in &self.journal {
            if let Change::Grow { len } = change
                && *len > image.len()
                && dice.bool()
            {
                image.set_len(*len);
            }
        }
        for change in &self.journal {
            match change {
                Change::Grow { .. } => {}
                Change::Shrink { len } if *len < image.len() && dice.bool() => image.set_len(*len),
                Change::Shrink { .. } => {}
                Change::Punch { offset, len } => {
                    let keep_of_eight = [0, 8, 8, 4][dice.usize(..4)];
                    for block in (*offset..offset + len).step_by(ALIGN) {
                        if block < image.len() && dice.u8(..8) < keep_of_eight {
                            image.punch(block, ALIGN as u64);
                        }
                    }
                }
                Change::Reserve { offset, len } if offset + len <= image.len() && dice.bool() => {
                    image.reserve(*offset, *len);
                }
                Change::Reserve { .. } => {}
                Change::Durable { offset, bytes } => image.write(*offset, bytes),
                Change::Whole { offset, bytes } if dice.bool() => image.write(*offset, bytes),
                Change::Whole { .. } => {}
                Change::Write { offset, bytes } => {
                    // Whole writes kept and lost are as likely as torn ones; with one coin per
                    // sector alone, a page of 32 sectors would hardly ever survive whole.
                    let keep_of_eight = [0, 8, 1, 4, 4, 7][dice.usize(..6)];
                    for (number, sector) in bytes.chunks(SECTOR_BYTES as usize).enumerate() {
                        if dice.u8(..8) < keep_of_eight {
                            image.write(offset + number as u64 * SECTOR_BYTES, sector);
                        }
                    }
                }
            }
        }
        image
    }

    /// A file all of whose bytes are durable.
    fn at_rest(image: Image) -> Self {
        FileState { seen: image.clone(), durable: image, journal: Vec::new(), handles: 0 }
    }
}

/// The disk.
#[derive(Clone, Default)]
pub(crate) struct Disk {
    files: BTreeMap<FileId, FileState>,
    next_id: FileId,
    /// The directory as calls see it.
    seen: BTreeMap<String, FileId>,
    /// The directory on the medium.
    durable: BTreeMap<String, FileId>,
    /// Entries set or removed since the directory was synced, in order.
    journal: Vec<(String, Option<FileId>)>,
    pub(crate) steps: u64,
    pub(crate) crash_at: Option<u64>,
    pub(crate) crashed: bool,
    pub(crate) capacity_bytes: Option<u64>,
    pub(crate) atomic: Option<AtomicPromise>,
    pub(crate) stats: IoStats,
}

fn simulated_crash() -> io::Error {
    io::Error::other("simulated crash")
}

impl Disk {
    pub(crate) fn check_alive(&self) -> io::Result<()> {
        if self.crashed { Err(simulated_crash()) } else { Ok(()) }
    }

    /// Counts a step; an error when the disk crashes at it.
    pub(crate) fn step(&mut self) -> io::Result<()> {
        if self.crash_at.is_some_and(|at| self.steps >= at) {
            self.crashed = true;
            return Err(simulated_crash());
        }
        self.steps += 1;
        Ok(())
    }

    pub(crate) fn find(&self, name: &str) -> io::Result<FileId> {
        let missing = || io::Error::new(ErrorKind::NotFound, format!("no file {name}"));
        self.seen.get(name).copied().ok_or_else(missing)
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.seen.keys().cloned().collect()
    }

    pub(crate) fn file(&self, id: FileId) -> io::Result<&FileState> {
        self.files.get(&id).ok_or_else(|| io::Error::from(ErrorKind::NotFound))
    }

    pub(crate) fn file_mut(&mut self, id: FileId) -> io::Result<&mut FileState> {
        self.files.get_mut(&id).ok_or_else(|| io::Error::from(ErrorKind::NotFound))
    }

    /// Whether files may reserve `more` bytes. A removed file gives its space back at once.
    pub(crate) fn check_space(&self, more: u64) -> io::Result<()> {
        let Some(capacity) = self.capacity_bytes else { return Ok(()) };
        let files = self.seen.values().filter_map(|id| self.files.get(id));
        let used: u64 = files.map(|file| file.seen.allocated()).sum();
        if used.saturating_add(more) <= capacity {
            return Ok(());
        }
        let text = format!("simulated disk full: {used} of {capacity} bytes used, {more} wanted");
        Err(io::Error::new(ErrorKind::StorageFull, text))
    }

    #[cfg(test)]
    pub(crate) fn file_count(&self) -> usize {
        self.files.len()
    }

    pub(crate) fn create(&mut self, name: &str, len: u64) -> FileId {
        let id = self.next_id;
        self.next_id += 1;
        let mut file = FileState::default();
        file.grow(len);
        self.files.insert(id, file);
        self.seen.insert(name.to_owned(), id);
        self.journal.push((name.to_owned(), Some(id)));
        id
    }

    pub(crate) fn remove(&mut self, name: &str) {
        self.seen.remove(name);
        self.journal.push((name.to_owned(), None));
    }

    pub(crate) fn sync_directory(&mut self) {
        self.durable.clone_from(&self.seen);
        self.journal.clear();
        let named: std::collections::BTreeSet<_> = self.seen.values().copied().collect();
        self.files.retain(|id, file| named.contains(id) || file.handles > 0);
    }

    pub(crate) fn opened(&mut self, id: FileId) {
        if let Some(file) = self.files.get_mut(&id) {
            file.handles += 1;
        }
    }

    pub(crate) fn closed(&mut self, id: FileId) {
        if let Some(file) = self.files.get_mut(&id) {
            file.handles = file.handles.saturating_sub(1);
        }
    }

    /// After copying a disk: open files are open on the original.
    pub(crate) fn forget_handles(&mut self) {
        self.files.values_mut().for_each(|file| file.handles = 0);
    }

    pub(crate) fn after_power_loss(&self, mode: CrashMode, seed: u64) -> Disk {
        let mut dice = fastrand::Rng::with_seed(seed);
        let mut names = match mode {
            CrashMode::KeepAll => self.seen.clone(),
            CrashMode::LoseAll | CrashMode::Random => self.durable.clone(),
        };
        if mode == CrashMode::Random {
            for (name, id) in &self.journal {
                match id {
                    _ if dice.bool() => {}
                    Some(id) => drop(names.insert(name.clone(), *id)),
                    None => drop(names.remove(name)),
                }
            }
        }
        let found = |id| self.files.get(id).map(|file| file.after_power_loss(mode, &mut dice));
        let mut found = found;
        let files = names.values().filter_map(|id| Some((*id, FileState::at_rest(found(id)?))));
        let files = files.collect();
        Disk {
            files,
            next_id: self.next_id,
            durable: names.clone(),
            seen: names,
            capacity_bytes: self.capacity_bytes,
            atomic: self.atomic,
            ..Disk::default()
        }
    }

    pub(crate) fn corrupt(&mut self, name: &str, offset: u64, xor: u8) -> io::Result<()> {
        let id = self.find(name)?;
        let file = self.file_mut(id)?;
        if offset >= file.seen.len() {
            let text = format!("{name} ends before byte {offset}");
            return Err(io::Error::new(ErrorKind::UnexpectedEof, text));
        }
        for image in [&mut file.seen, &mut file.durable] {
            let mut byte = [0];
            if offset < image.len() {
                image.read(offset, &mut byte);
                image.write(offset, &[byte[0] ^ xor]);
            }
        }
        for change in &mut file.journal {
            if let Change::Write { offset: at, bytes }
            | Change::Whole { offset: at, bytes }
            | Change::Durable { offset: at, bytes } = change
                && let Some(within) = offset.checked_sub(*at)
                && let Some(byte) = bytes.get_mut(within as usize)
            {
                *byte ^= xor;
            }
        }
        Ok(())
    }

    pub(crate) fn put_durable(&mut self, name: &str, bytes: &[u8]) {
        let mut image = Image::default();
        image.set_len(bytes.len() as u64);
        image.write(0, bytes);
        let id = self.find(name).unwrap_or_else(|_| self.create(name, 0));
        let handles = self.files.get(&id).map_or(0, |file| file.handles);
        self.files.insert(id, FileState { handles, ..FileState::at_rest(image) });
        self.journal.retain(|(changed, _)| changed != name);
        self.durable.insert(name.to_owned(), id);
    }
}
