//! The rules of the protocol, each broken on purpose: a model that a broken rule does not fail
//! would show nothing.

/// What is done wrong.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Flaw {
    /// Nothing.
    None,
    /// R1: a victim is free as soon as its copies are written, before they are durable.
    VictimFreedEarly,
    /// R1: a segment is freed while blocks that are not published yet lie in it.
    UnpublishedNotHeld,
    /// R2: the cleaner marks a page only when it writes the copy, after it has looked.
    MarkedLate,
    /// R2: flushes and copies of one page go out side by side; each is published if the page still
    /// lies where it was copied from.
    TwoInFlight,
    /// R3: a segment is opened that no durable root says may be.
    OpenedUnplanned,
    /// R4: chunks that the map checkpoint covers are looked at, too.
    OldChunksTaken,
    /// R4: of several blocks of a page the last one that is found is taken, not the newest chunk's.
    LastFoundTaken,
    /// R4: a torn block is taken for whole.
    TornBlockTaken,
    /// R5: a segment with free records is used again before the next map checkpoint.
    FreeRecordsNotHeld,
    /// R6: the root is written before the leaves that it names are durable.
    RootBeforeLeaves,
    /// R6: leaves that the root on disk names are given up when their successors are written.
    LeavesFreedEarly,
    /// R6: the root of a recovery is written before what was recovered is durable.
    RootBeforeAdopted,
    /// R7: after a crash writing goes on where it ended, in the same life.
    AppendedAfterCrash,
    /// R8: a freed page lets the log's checkpoint pass before its free record is durable.
    FreedPageClean,
    /// R9: what a chunk says to be durable was only written.
    WatermarkEarly,
    /// R9: what a chunk says to be durable is believed of chunks of earlier lives, too.
    WatermarkOfAnyLife,
}

/// Every flaw.
pub(crate) const FLAWS: [Flaw; 16] = [
    Flaw::VictimFreedEarly,
    Flaw::UnpublishedNotHeld,
    Flaw::MarkedLate,
    Flaw::TwoInFlight,
    Flaw::OpenedUnplanned,
    Flaw::OldChunksTaken,
    Flaw::LastFoundTaken,
    Flaw::TornBlockTaken,
    Flaw::FreeRecordsNotHeld,
    Flaw::RootBeforeLeaves,
    Flaw::LeavesFreedEarly,
    Flaw::RootBeforeAdopted,
    Flaw::AppendedAfterCrash,
    Flaw::FreedPageClean,
    Flaw::WatermarkEarly,
    Flaw::WatermarkOfAnyLife,
];
