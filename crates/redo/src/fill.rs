//! Making log files: whole, and ahead of their use a little at a time, because zeros for a whole
//! one would keep the disk from the log's own writes for seconds.
//!
//! A file that was cut off on its way (the log was closed, or it crashed) has its length and no
//! header: a blank one at the next opening, and only slower to sync the first time.
use std::io;
use std::sync::Arc;

use weir_base::{AlignedBuf, Lsn};
use weir_device::{BlockFile, Volume};

use crate::error::{CREATE, RedoError, Result};
use crate::segment::{Slot, slot_name};

/// Zeros written at a time: on a disk of 8 MiB a second the log's write waits 8 ms for them.
const PIECE_BYTES: u64 = 64 << 10;
/// The file is ready when so much of the room is used that there was when it was begun.
const ROOM_SHARE: f64 = 0.5;

/// Creates the slot `number` with `size` bytes, durably.
pub(crate) fn create_file(volume: &dyn Volume, number: u32, size: u64) -> Result<Slot> {
    make(volume, number, |name| {
        let file = volume.create(name, size)?;
        file.sync()?;
        volume.sync_directory()?;
        Ok(file)
    })
}

/// Makes the file of the slot `number`. One of that name that no log knows (its creation was cut
/// off by a crash) is replaced.
fn make(
    volume: &dyn Volume,
    number: u32,
    create: impl FnOnce(&str) -> io::Result<Arc<dyn BlockFile>>,
) -> Result<Slot> {
    let name = slot_name(number);
    let replace = || {
        if volume.exists(&name)? {
            volume.remove(&name)?;
        }
        create(&name)
    };
    let file = replace().map_err(|error| {
        // What a full disk left of the file is of no use; that it cannot be removed either
        // changes nothing about the error to report.
        let _ = volume.remove(&name);
        RedoError::io(CREATE, &name, 0, error)
    })?;
    Ok(Slot { number, file })
}

/// A file that has its length, so that no disk becomes too small for it, and is not all zeros yet.
pub(crate) struct Filling {
    pub(crate) slot: Slot,
    /// Zeros up to here.
    filled: u64,
    /// The log's end when the file was begun.
    begun_at: Lsn,
    /// Bytes of log that there was room for then.
    room_bytes: u64,
}

impl Filling {
    /// Makes the file and reserves its `size`. The log ends at `end` and has files for `room_bytes`
    /// more.
    ///
    /// # Errors
    /// A full disk, or a failed write.
    pub(crate) fn begin(
        volume: &dyn Volume,
        number: u32,
        size: u64,
        end: Lsn,
        room_bytes: u64,
    ) -> Result<Filling> {
        let slot = make(volume, number, |name| {
            let file = volume.create(name, 0)?;
            file.grow(size)?;
            Ok(file)
        })?;
        Ok(Filling { slot, filled: 0, begun_at: end, room_bytes })
    }

    pub(crate) fn size(&self) -> u64 {
        self.slot.file.len()
    }

    /// Whether more is due by now, with the log ending at `end`.
    pub(crate) fn is_due(&self, end: Lsn) -> bool {
        self.filled < due_bytes(self.size(), end.bytes_since(self.begun_at), self.room_bytes)
    }

    /// Writes `pieces` of zeros. Returns whether the file is ready, durably.
    ///
    /// # Errors
    /// A failed write or sync.
    pub(crate) fn fill(&mut self, volume: &dyn Volume, pieces: u64) -> Result<bool> {
        let (size, name) = (self.size(), self.slot.name());
        let failed = |at| move |error| RedoError::io(CREATE, &name, at, error);
        let until = size.min(self.filled.saturating_add(pieces.saturating_mul(PIECE_BYTES)));
        let zeros = AlignedBuf::zeroed(PIECE_BYTES.min(size) as usize);
        let file = &self.slot.file;
        let mut write = || {
            while self.filled < until {
                let bytes = (until - self.filled).min(zeros.len() as u64);
                file.write_at(self.filled, &zeros[..bytes as usize])?;
                self.filled += bytes;
            }
            if self.filled < size {
                return Ok(false);
            }
            file.sync()?;
            volume.sync_directory()?;
            Ok(true)
        };
        let done = write();
        done.map_err(failed(self.filled))
    }
}

/// Zeros to be written by now of a file of `size` bytes: the first piece at once, the rest as the
/// log uses the room that it had.
fn due_bytes(size: u64, used_bytes: u64, room_bytes: u64) -> u64 {
    let share = used_bytes as f64 / (ROOM_SHARE * room_bytes as f64).max(1.0);
    ((share * size as f64) as u64).max(PIECE_BYTES).min(size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_ready_when_half_of_the_room_is_used() {
        let mib = 1 << 20;
        // (size, used since, room at the beginning, zeros due)
        let rows = [
            (128 * mib, 0, 128 * mib, PIECE_BYTES),
            (128 * mib, 32 * mib, 128 * mib, 64 * mib),
            (128 * mib, 64 * mib, 128 * mib, 128 * mib),
            (128 * mib, 500 * mib, 128 * mib, 128 * mib),
            // No room: all of it at once.
            (128 * mib, 1, 0, 128 * mib),
            (20_480, 0, 100, 20_480),
        ];
        for (size, used, room, due) in rows {
            assert_eq!(due_bytes(size, used, room), due, "{size} {used} {room}");
        }
    }
}
