//! The control file: what must be known before anything else can be read. Two copies in one write,
//! each within one 512-byte sector, so that a torn write leaves each copy old or new, and a damaged
//! one leaves the other.
use std::sync::Arc;
use weir_base::lock::Mutex;
use weir_base::rank;

use thiserror::Error;
use weir_base::{ALIGN, AlignedBuf, DbId, Era, Lsn, TreeId, TxnId, align_down, checksum};
use weir_device::{BlockFile, Volume};

/// The control file's name.
pub const CONTROL_FILE: &str = "control";
/// The on-disk format that this version writes, and the only one it reads.
pub const FORMAT: u32 = 5;

const MAGIC: [u8; 8] = *b"WEIRCTL\n";
/// Bytes of each copy.
pub const COPY_BYTES: usize = 512;
const COPIES_AT: [usize; 2] = [0, ALIGN];
const CHECKED_BYTES: usize = 124;

/// What the control file says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Control {
    /// The database's own number.
    pub db: DbId,
    /// Grows by one with each write.
    pub sequence: u64,
    /// Bytes a page.
    pub page_size: u32,
    /// Where recovery must begin to read the log.
    pub checkpoint: Lsn,
    /// The log's capacity in bytes.
    pub log_bytes: u64,
    /// Numbers below this one may have been given to transactions.
    pub next_txn: TxnId,
    /// Numbers below this one have been given to trees.
    pub next_tree: TreeId,
    /// The database was closed in order: nothing lies in the log behind the checkpoint.
    pub clean: bool,
    /// How often the database was opened.
    pub openings: u64,
    /// The data file had so many pages at least.
    pub pages: u32,
    /// So many map pages were made, and what made them is durable.
    pub maps: u32,
    /// The data file's era, or the one before it.
    pub era: Era,
    /// The log was durable up to here at least.
    pub synced: Lsn,
}

/// How a copy was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Copy {
    /// As it was written.
    Good(Control),
    /// Written by another version, whose format is named.
    OtherFormat(u32),
    /// Not a control block at all.
    Foreign,
    /// A control block whose bytes have changed.
    Damaged,
}

/// Why there is no control to be had.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ControlError {
    /// Neither copy is a control block.
    #[error("'{CONTROL_FILE}' is not a Weir control file: this directory is not a Weir database")]
    Foreign,
    /// Both copies are damaged.
    #[error(
        "both copies in '{CONTROL_FILE}' (bytes 0 and 4096) are damaged: without it the database \
         cannot be opened; restore it from a backup"
    )]
    Damaged,
    /// Another version's.
    #[error(
        "the database has format {found}, this version of Weir reads format {FORMAT}: use the \
         version that wrote it"
    )]
    OtherFormat {
        /// What was found.
        found: u32,
    },
    /// The two copies are of different databases.
    #[error("the copies in '{CONTROL_FILE}' are of two databases, {0} and {1}")]
    TwoDatabases(DbId, DbId),
}

impl Control {
    /// One copy, as it stands in the file.
    #[must_use]
    pub fn encode(&self) -> [u8; COPY_BYTES] {
        let mut out = [0; COPY_BYTES];
        let mut at = 0;
        let mut put = |bytes: &[u8]| {
            out[at..at + bytes.len()].copy_from_slice(bytes);
            at += bytes.len();
        };
        put(&MAGIC);
        put(&FORMAT.to_le_bytes());
        put(&self.page_size.to_le_bytes());
        put(&self.db.0.to_le_bytes());
        put(&self.sequence.to_le_bytes());
        put(&self.checkpoint.0.to_le_bytes());
        put(&self.log_bytes.to_le_bytes());
        put(&self.next_txn.0.to_le_bytes());
        put(&self.openings.to_le_bytes());
        put(&self.next_tree.0.to_le_bytes());
        put(&u32::from(self.clean).to_le_bytes());
        put(&self.pages.to_le_bytes());
        put(&self.maps.to_le_bytes());
        put(&self.era.number.to_le_bytes());
        put(&self.era.mark.to_le_bytes());
        put(&self.synced.0.to_le_bytes());
        let crc = checksum(&out[..CHECKED_BYTES]);
        out[CHECKED_BYTES..CHECKED_BYTES + 4].copy_from_slice(&crc.to_le_bytes());
        out
    }

    /// Reads one copy.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Copy {
        let Some(bytes) = bytes.get(..COPY_BYTES) else { return Copy::Foreign };
        let u32_at = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
        let u64_at = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
        let sound = u32_at(CHECKED_BYTES) == checksum(&bytes[..CHECKED_BYTES]);
        if bytes[..8] != MAGIC {
            return if sound { Copy::Foreign } else { foreign_or_damaged(bytes) };
        }
        if !sound {
            return Copy::Damaged;
        }
        if u32_at(8) != FORMAT {
            return Copy::OtherFormat(u32_at(8));
        }
        Copy::Good(Control {
            page_size: u32_at(12),
            db: DbId(u64_at(16)),
            sequence: u64_at(24),
            checkpoint: Lsn(u64_at(32)),
            log_bytes: u64_at(40),
            next_txn: TxnId(u64_at(48)),
            openings: u64_at(56),
            next_tree: TreeId(u64_at(64)),
            clean: u32_at(72) != 0,
            pages: u32_at(76),
            maps: u32_at(80),
            era: Era { number: u64_at(84), mark: u64_at(92) },
            synced: Lsn(u64_at(100)),
        })
    }
}

/// Both copies in the bytes of a control file, each with its place; one that the bytes do not
/// reach is foreign.
#[must_use]
pub fn copies(bytes: &[u8]) -> [(u64, Copy); 2] {
    COPIES_AT.map(|at| (at as u64, Control::decode(bytes.get(at..).unwrap_or_default())))
}

/// Both copies of the control file as it lies there, also of one that is too short.
///
/// # Errors
/// I/O errors, `NotFound` when there is no such file.
pub fn read_copies(volume: &dyn Volume) -> std::io::Result<[(u64, Copy); 2]> {
    let file = volume.open(CONTROL_FILE)?;
    let mut buf = AlignedBuf::zeroed(2 * ALIGN);
    let len = align_down(file.len()).min(buf.len() as u64) as usize;
    if len > 0 {
        file.read_at(0, &mut buf[..len])?;
    }
    Ok(copies(&buf[..len]))
}

/// Without the magic: damaged if most of it is there, else something else.
fn foreign_or_damaged(bytes: &[u8]) -> Copy {
    let alike = bytes[..8].iter().zip(MAGIC).filter(|(a, b)| **a == *b).count();
    if alike >= 6 { Copy::Damaged } else { Copy::Foreign }
}

/// Which copy counts: the newer of the good ones.
///
/// # Errors
/// [`ControlError`] when none does.
pub fn choose(first: &Copy, second: &Copy) -> Result<Control, ControlError> {
    match (first, second) {
        (Copy::Good(a), Copy::Good(b)) if a.db != b.db => {
            Err(ControlError::TwoDatabases(a.db, b.db))
        }
        (Copy::Good(a), Copy::Good(b)) => Ok(if b.sequence > a.sequence { *b } else { *a }),
        (Copy::OtherFormat(found), _) | (_, Copy::OtherFormat(found)) => {
            Err(ControlError::OtherFormat { found: *found })
        }
        (Copy::Good(good), _) | (_, Copy::Good(good)) => Ok(*good),
        (Copy::Damaged, _) | (_, Copy::Damaged) => Err(ControlError::Damaged),
        (Copy::Foreign, Copy::Foreign) => Err(ControlError::Foreign),
    }
}

/// The control file, open.
pub struct ControlFile {
    file: Arc<dyn BlockFile>,
    now: Mutex<rank::ControlBlock, Control>,
}

impl ControlFile {
    /// Makes the file.
    ///
    /// # Errors
    /// I/O errors; `AlreadyExists` when there is one.
    pub fn create(volume: &Arc<dyn Volume>, control: Control) -> std::io::Result<Self> {
        let file = volume.create(CONTROL_FILE, 2 * ALIGN as u64)?;
        let control_file = ControlFile { file, now: Mutex::new(control) };
        control_file.update(|_| {})?;
        volume.sync_directory()?;
        Ok(control_file)
    }

    /// Reads the file.
    ///
    /// # Errors
    /// I/O errors, one of kind `WouldBlock` when another process has the file open, and a
    /// [`ControlError`] inside one of kind `InvalidData`.
    pub fn open(volume: &Arc<dyn Volume>) -> std::io::Result<Self> {
        let invalid = |e: ControlError| std::io::Error::new(std::io::ErrorKind::InvalidData, e);
        let file = volume.open(CONTROL_FILE)?;
        // The directory's lock file can be removed beside a running process, and holds nothing
        // back then. This file holds what the database cannot do without.
        if !file.lock_alone()? {
            let text =
                "the database is open in another process, although its file LOCK was removed";
            return Err(std::io::Error::new(std::io::ErrorKind::WouldBlock, text));
        }
        if file.len() < 2 * ALIGN as u64 {
            return Err(invalid(ControlError::Damaged));
        }
        let mut buf = AlignedBuf::zeroed(2 * ALIGN);
        file.read_at(0, &mut buf)?;
        let [(_, first), (_, second)] = copies(&buf);
        let control = choose(&first, &second).map_err(invalid)?;
        Ok(ControlFile { file, now: Mutex::new(control) })
    }

    /// What it says now.
    #[must_use]
    pub fn get(&self) -> Control {
        *self.now.lock()
    }

    /// Changes it, durably.
    ///
    /// # Errors
    /// I/O errors: what lies on disk is then the old or the new.
    pub fn update(&self, change: impl FnOnce(&mut Control)) -> std::io::Result<()> {
        self.change(change, |_| Ok(()))
    }

    /// Changes it, durably, and begins an era. `tell` says so to the data file, durably: a crash in
    /// between leaves a data file that names both that era and the one before.
    ///
    /// # Errors
    /// As [`ControlFile::update`], and those of `tell`.
    pub fn begin_era(
        &self,
        change: impl FnOnce(&mut Control),
        tell: impl FnOnce(Era) -> std::io::Result<()>,
    ) -> std::io::Result<()> {
        self.change(change, |next| {
            next.era = Era { number: next.era.number + 1, mark: fastrand::u64(1..) };
            tell(next.era)
        })
    }

    fn change(
        &self,
        change: impl FnOnce(&mut Control),
        finish: impl FnOnce(&mut Control) -> std::io::Result<()>,
    ) -> std::io::Result<()> {
        let mut now = self.now.lock();
        let mut next = *now;
        change(&mut next);
        finish(&mut next)?;
        next.sequence += 1;
        let mut buf = AlignedBuf::zeroed(2 * ALIGN);
        let copy = next.encode();
        for at in COPIES_AT {
            buf[at..at + COPY_BYTES].copy_from_slice(&copy);
        }
        self.file.write_durable_at(0, &buf)?;
        *now = next;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn control(sequence: u64) -> Control {
        Control {
            db: DbId(7),
            sequence,
            page_size: 8192,
            checkpoint: Lsn(123),
            log_bytes: 1 << 26,
            next_txn: TxnId(9),
            next_tree: TreeId(2),
            clean: false,
            openings: 1,
            pages: 64,
            maps: 1,
            era: Era { number: 3, mark: 4 },
            synced: Lsn(124),
        }
    }

    #[test]
    fn every_pair_of_copies_has_one_verdict() {
        let (old, new) = (Copy::Good(control(1)), Copy::Good(control(2)));
        let other = Copy::Good(Control { db: DbId(8), ..control(3) });
        let newer_format = Copy::OtherFormat(5);
        let table = [
            (&old, &new, Ok(2)),
            (&new, &old, Ok(2)),
            (&old, &Copy::Damaged, Ok(1)),
            (&Copy::Damaged, &new, Ok(2)),
            (&Copy::Foreign, &new, Ok(2)),
            (&newer_format, &old, Err(ControlError::OtherFormat { found: 5 })),
            (&Copy::Damaged, &newer_format, Err(ControlError::OtherFormat { found: 5 })),
            (&Copy::Damaged, &Copy::Damaged, Err(ControlError::Damaged)),
            (&Copy::Damaged, &Copy::Foreign, Err(ControlError::Damaged)),
            (&Copy::Foreign, &Copy::Foreign, Err(ControlError::Foreign)),
            (&old, &other, Err(ControlError::TwoDatabases(DbId(7), DbId(8)))),
        ];
        for (first, second, expected) in table {
            assert_eq!(choose(first, second).map(|c| c.sequence), expected, "{first:?} {second:?}");
        }
    }

    #[test]
    fn every_flipped_bit_of_a_copy_is_noticed() {
        let good = control(5).encode();
        assert_eq!(Control::decode(&good), Copy::Good(control(5)));
        for bit in 0..(CHECKED_BYTES + 4) * 8 {
            let mut bytes = good;
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(!matches!(Control::decode(&bytes), Copy::Good(_)), "bit {bit}");
        }
    }
}
