//! How fast a backup reads: a decision, without a clock and without reading.
//!
//! A backup of a database that is at work must leave it nine tenths of what it did. Beside work it
//! takes a tenth of what the disk is known to take, and where nothing is known, little. While
//! no thread asks for anything it takes all.

/// What there is to know.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BackupLoad {
    /// Bytes of pages per second that the disk is believed to take; 0 while unknown.
    pub(crate) capacity_bytes_per_second: f64,
    /// No thread has read or changed anything for a while.
    pub(crate) is_idle: bool,
    /// Something is still to be written for others: a disk that stands still for a moment makes
    /// work look idle that waits for it.
    pub(crate) is_waited_for: bool,
    /// What the operator allows, whatever else is going on.
    pub(crate) asked_bytes_per_second: Option<u64>,
}

/// Its share of the disk beside work.
const SHARE: f64 = 0.1;
/// Beside work on a disk of which nothing is known: pages were not written yet, so that it is not
/// much that the work writes.
const UNKNOWN_BYTES_PER_SECOND: f64 = 16e6;
/// It must come to an end some day.
const LEAST_BYTES_PER_SECOND: f64 = 1e6;

/// Bytes to read per second; infinite: as fast as they come.
pub(crate) fn bytes_per_second(seen: BackupLoad) -> f64 {
    if let Some(asked) = seen.asked_bytes_per_second {
        return (asked as f64).max(1.0);
    }
    if seen.is_idle && !seen.is_waited_for {
        return f64::INFINITY;
    }
    if seen.capacity_bytes_per_second > 0.0 {
        (seen.capacity_bytes_per_second * SHARE).max(LEAST_BYTES_PER_SECOND)
    } else {
        UNKNOWN_BYTES_PER_SECOND
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beside_work_a_tenth_and_alone_all_but_never_more_than_was_asked() {
        // (capacity, idle, waited for, asked, expected)
        let rows = [
            (0.0, false, false, None, 16e6),
            (0.0, true, false, None, f64::INFINITY),
            (0.0, true, true, None, 16e6),
            (400e6, false, false, None, 40e6),
            (400e6, true, false, None, f64::INFINITY),
            (400e6, true, true, None, 40e6),
            (2e6, false, true, None, 1e6),
            (400e6, false, false, Some(5_000_000), 5e6),
            (400e6, true, true, Some(5_000_000), 5e6),
            (400e6, true, false, Some(0), 1.0),
        ];
        for row in rows {
            let (capacity_bytes_per_second, is_idle, is_waited_for, asked, expected) = row;
            let seen = BackupLoad {
                capacity_bytes_per_second,
                is_idle,
                is_waited_for,
                asked_bytes_per_second: asked,
            };
            assert_eq!(bytes_per_second(seen), expected, "{seen:?}");
        }
    }
}
