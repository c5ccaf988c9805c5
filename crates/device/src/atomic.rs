//! Writes that land whole or not at all: what the kernel says of a file system and its device.
//! Sources: statx(2) (`STATX_WRITE_ATOMIC`), pwritev2(2) (`RWF_ATOMIC`), and the kernel's
//! `Documentation/ABI/stable/sysfs-block` (`queue/atomic_write_unit_max_bytes`); Linux 6.11 and
//! later.
use std::fmt;
use std::fs::File;
use std::os::unix::fs::MetadataExt;

use crate::device::WriteOp;
use crate::sys::{self, AtomicUnits};

/// The sizes of writes, in bytes, that are never torn: the powers of two from `min` to `max`, each
/// at a multiple of itself. None where `max` is zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct AtomicWrites {
    pub(crate) min: u64,
    pub(crate) max: u64,
    /// There would be more, by copies that the file system makes of what is overwritten.
    is_by_copies: bool,
}

impl AtomicWrites {
    /// What holds for a file that was opened with O_DIRECT. `with_copies`: also what the file
    /// system does by writing elsewhere and changing the file's map, as XFS can.
    pub(crate) fn of(file: &File, with_copies: bool) -> Self {
        let Some(units) = sys::atomic_units(file) else { return Self::default() };
        if with_copies {
            return AtomicWrites { min: units.min, max: units.max, is_by_copies: false };
        }
        let device = file.metadata().map_or(0, |metadata| metadata.dev());
        Self::by_device(units, queue_max(device))
    }

    /// What the device itself does. XFS says so much as it can do by copies, and leaves the
    /// greatest fast size at zero where its device can do nothing: then the device's queue tells.
    fn by_device(units: AtomicUnits, queue_max: Option<u64>) -> Self {
        let max = match units.max_fast {
            0 => units.max.min(queue_max.unwrap_or(0)),
            fast => units.max.min(fast),
        };
        let max = if max < units.min.max(1) { 0 } else { max };
        AtomicWrites { min: units.min, max, is_by_copies: units.max > max }
    }

    /// All up to so many bytes.
    pub(crate) fn up_to(max: u64) -> Self {
        AtomicWrites { min: 1, max, is_by_copies: false }
    }

    /// Whether a write of `len` bytes at a multiple of `len` is never torn.
    pub(crate) fn has(&self, len: u64) -> bool {
        len.is_power_of_two() && (self.min..=self.max).contains(&len)
    }

    /// Whether each of the writes is such a write.
    pub(crate) fn has_all(&self, writes: &[WriteOp<'_>]) -> bool {
        writes.iter().all(|op| {
            let len = op.buf.len() as u64;
            self.has(len) && op.offset.is_multiple_of(len)
        })
    }
}

/// For `describe`.
impl fmt::Display for AtomicWrites {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.max, self.is_by_copies) {
            (0, false) => f.write_str("no atomic writes"),
            (0, true) => f.write_str("no atomic writes but by copies, which are not used"),
            (max, _) => write!(f, "atomic writes up to {} KiB", max >> 10),
        }
    }
}

/// The greatest atomic write of a block device in bytes; `None`: not known.
fn queue_max(device: u64) -> Option<u64> {
    let device = format!("/sys/dev/block/{}:{}", libc::major(device), libc::minor(device));
    // A partition has no queue, the disk above it does.
    let limit = |queue: &str| {
        let path = format!("{device}/{queue}/atomic_write_unit_max_bytes");
        std::fs::read_to_string(path).ok()?.trim().parse().ok()
    };
    limit("queue").or_else(|| limit("../queue"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_base::AlignedBuf;

    /// What holds where the kernel says min, max and fast, and the queue its greatest.
    fn found(units: (u64, u64, u64), queue: Option<u64>) -> (u64, u64, String) {
        let (min, max, max_fast) = units;
        let found = AtomicWrites::by_device(AtomicUnits { min, max, max_fast }, queue);
        (found.min, found.max, found.to_string())
    }

    #[test]
    fn only_what_the_device_does_counts() {
        let text = |text: &str| text.to_owned();
        // ext4 on a disk that can, and on one that cannot.
        let can = text("atomic writes up to 64 KiB");
        assert_eq!(found((4096, 65536, 0), Some(65536)), (4096, 65536, can.clone()));
        assert_eq!(found((0, 0, 0), Some(0)), (0, 0, text("no atomic writes")));
        // XFS by copies alone; with a device behind it; and one that tells the two apart.
        let copies = text("no atomic writes but by copies, which are not used");
        assert_eq!(found((4096, 1 << 20, 0), Some(0)), (4096, 0, copies.clone()));
        assert_eq!(found((4096, 1 << 20, 0), None), (4096, 0, copies));
        assert_eq!(found((4096, 1 << 20, 65536), Some(0)), (4096, 65536, can));
        // Smaller than the file system's block is nothing.
        assert_eq!(found((4096, 65536, 0), Some(512)).1, 0);
    }

    #[test]
    fn sizes_and_places() {
        let some = AtomicWrites { min: 4096, max: 16384, is_by_copies: false };
        assert!([4096, 8192, 16384].iter().all(|&len| some.has(len)));
        assert!([0, 512, 12288, 32768].iter().all(|&len| !some.has(len)));
        let buf = AlignedBuf::zeroed(8192);
        let op = |offset| WriteOp { offset, buf: &buf };
        assert!(some.has_all(&[op(0), op(24576)]));
        assert!(!some.has_all(&[op(0), op(4096)]), "not at a multiple of its length");
        assert!(!AtomicWrites::default().has_all(&[op(0)]));
    }
}
