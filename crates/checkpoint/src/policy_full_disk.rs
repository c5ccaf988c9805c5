//! A full disk, where pages are written out of place: room must be held for dirty pages as if they
//! could not be packed, so what the disk has left bounds how many there may be, and so the age.
use weir_pool::Room;

use crate::tick::Limits;

/// Dirty pages take this share of the room that is left for them: the rest is for what is changed
/// until the age follows.
const ROOM_SHARE: f64 = 0.85;
/// Bounds nothing while dirty pages take less than this share: how many there are grows more slowly
/// than the age, so a bound taken from a young list would be too low.
const ROOM_SHARE_FREE: f64 = 0.4;
/// Writers wait, or soon will.
const ROOM_SHARE_SHORT: f64 = 0.95;
/// The age is bounded to this part of its limit at least: less would be no work at all.
const AGE_SHARE_MIN: f64 = 1.0 / 64.0;

/// Whether users' changes wait for page writes, or are about to.
pub(crate) fn is_room_short(room: &Room) -> bool {
    room.dirty_pages as f64 >= ROOM_SHARE_SHORT * room.most_pages as f64
}

/// The limits, with an age at which dirty pages take no more than their share of the room: as many
/// bytes of redo for each of them as now.
pub(crate) fn with_room(limits: &Limits, room: Option<Room>, age_bytes: f64) -> Limits {
    let Some(room) = room else { return *limits };
    let (dirty, most) = (room.dirty_pages as f64, room.most_pages as f64);
    if dirty <= ROOM_SHARE_FREE * most {
        return *limits;
    }
    let least = AGE_SHARE_MIN * limits.age_bytes as f64;
    let bound = (age_bytes * ROOM_SHARE * most / dirty.max(1.0)).max(least) as u64;
    let recovery = limits.recovery_age_bytes.map_or(bound, |bytes| bytes.min(bound));
    Limits { recovery_age_bytes: Some(recovery), ..*limits }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FREE: Limits = Limits { age_bytes: 64_000, recovery_age_bytes: None };

    #[test]
    fn the_age_is_bounded_by_the_room_for_dirty_pages() {
        // (dirty pages, most, age, bound)
        let rows = [
            (400, 1000, 10_000.0, None),
            (0, 0, 10_000.0, None),
            (500, 1000, 10_000.0, Some(17_000)),
            (850, 1000, 10_000.0, Some(10_000)),
            (1700, 1000, 10_000.0, Some(5_000)),
            // However little is left, something may be done.
            (10, 0, 10_000.0, Some(1_000)),
        ];
        for (dirty_pages, most_pages, age, bound) in rows {
            let room = Room { dirty_pages, most_pages };
            let found = with_room(&FREE, Some(room), age);
            assert_eq!(found, Limits { recovery_age_bytes: bound, ..FREE }, "{room:?}");
        }
        let recovery = Limits { recovery_age_bytes: Some(7_000), ..FREE };
        let room = Room { dirty_pages: 850, most_pages: 1000 };
        assert_eq!(with_room(&recovery, Some(room), 10_000.0), recovery, "the lower one counts");
        assert_eq!(with_room(&recovery, None, 10_000.0), recovery);
    }

    #[test]
    fn room_is_short_before_there_is_none() {
        let of = |dirty_pages| is_room_short(&Room { dirty_pages, most_pages: 1000 });
        assert!(!of(900) && of(950) && of(2000));
        assert!(is_room_short(&Room { dirty_pages: 0, most_pages: 0 }));
    }
}
