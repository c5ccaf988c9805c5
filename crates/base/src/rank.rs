//! The one order in which locks are taken: a thread that holds one of these waits only for those
//! below it. `docs/locks.md` is generated from this table; debug builds and the simulator assert
//! the order ([`crate::held`]).
use crate::held::Ranked;

/// A row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rank {
    /// Its name: the marker type's.
    pub name: &'static str,
    /// The crate that has the lock.
    pub owner: &'static str,
    /// What it guards, and what is done while it is held.
    pub guards: &'static str,
    /// A thread may wait for another of this rank while it holds one.
    pub is_many: bool,
}

macro_rules! ranks {
    ($($name:ident $owner:literal $guards:literal $($many:ident)?;)*) => {
        #[allow(clippy::enum_variant_names)]
        enum Number { $($name),* }

        $(
            #[doc = $guards]
            #[derive(Clone, Copy, Debug)]
            pub enum $name {}

            impl Ranked for $name {
                const NUMBER: u16 = Number::$name as u16;
            }
        )*

        /// All ranks, in the order in which they are taken.
        pub const RANKS: &[Rank] = &[$(Rank {
            name: stringify!($name),
            owner: $owner,
            guards: $guards,
            is_many: ranks!(@many $($many)?),
        }),*];
    };
    (@many) => { false };
    (@many many) => { true };
}

ranks! {
    TableStates "table"
        "what the process knows of each table; a look at a map";
    OpenedTable "table"
        "a handle's definition of its table; reading it anew";
    IndexBuild "table"
        "how far the building of a table's indexes has come; a step of it";
    NumberStretch "table"
        "numbers reserved for rows; a transaction that reserves more";
    CheckedDefinition "table"
        "which snapshots know a handle's definition; memory only";
    Samples "table"
        "what is known of the keys of indexes; memory only";
    PoolSize "pool"
        "how much memory the pool has; making it smaller or larger, which writes pages";
    Settled "weir"
        "whether what a crash left was done at closing; closing";
    BackgroundThreads "weir"
        "the background threads; starting them";
    PreparedTransactions "weir"
        "prepared transactions by name; memory only";
    WarmList "weir"
        "which pages were in memory before; a step of reading them in, or of writing the list";
    LogContents "weir"
        "what older stretches of the log hold; a step of reading and noting one";
    ScrubPass "weir"
        "how far the pass over pages on disk has come; a step of it";
    UnusedPages "weir"
        "how far the pass over pages that are not in use has come; a step of it";
    Observed "weir"
        "what was observed of the work; memory only";
    WaitingCommits "weir"
        "commits that a thread is to acknowledge; memory only, its condition is waited for";
    Archiving "txn"
        "which versions are moved out of memory, into which trees; a step of that";
    LoserQueue "txn"
        "transactions to roll back in the background; a step of rolling one back";
    VersionMoves "txn"
        "versions move between transactions (shared), or stay where they are; looking through \
         some";
    PurgeFailure "txn"
        "why a purge task failed last; memory only";
    TransactionWork "txn"
        "what one transaction needs to be rolled back or completed; one change of it, which waits \
         for admission only to complete large ones";
    DroppedTrees "txn"
        "trees whose pages are about to be freed; rolling one row back, a step of a compaction \
         (shared)";
    ControllerState "checkpoint"
        "what the policy remembers; deciding";
    LabPolicy "checkpoint"
        "the laboratory's policy; asking it";
    ProcessorLooks "weir"
        "what was seen of the processors last; a look at them";
    VerdictOfTick "checkpoint"
        "what was decided last; memory only";
    AdmissionQueue "checkpoint"
        "writers that are held back; two numbers, its condition is waited for. Never with a \
         latch";
    AdmissionEnd "checkpoint"
        "why no redo is admitted any more; memory only";
    ChainBeingFreed "btree"
        "chains of long values, by their marks; freeing some pages of one";
    SpaceBits "space"
        "which pages are in use; claiming, which may make the file larger";
    DataFileGrowth "pool"
        "the data file's length; growing it and noting that";
    ControlBlock "checkpoint"
        "the control file; writing it";
    AheadThreads "pool"
        "threads that wait for pages to read for a scan; memory only, its condition is waited for";
    AheadBatch "pool"
        "what has become of pages that are read for a scan; its condition is waited for. Never \
         with a latch";
    PageLatch "pool"
        "a page in memory; one group of redo. Parent before child, left before right, space \
         maps last; of an absent page: reading it" many;
    Transactions "txn"
        "which transaction is under way, has ended, holds a snapshot or the log; memory only";
    TransactionShard "txn"
        "transactions by number; memory only";
    OldSnapshots "txn"
        "which snapshots find versions in which tree; memory only";
    TransactionVersions "txn"
        "what rows were before one transaction's changes; memory only";
    UndoCache "txn"
        "stored undo that was read last; memory only";
    LockShard "txn"
        "what is locked and waited for in some trees; memory only. Several only to end a \
         deadlock, ascending" many;
    LockOwner "txn"
        "what one transaction has locked and waits for; memory only, its condition is waited for";
    LockOwners "txn"
        "transactions that may lock, by number; memory only";
    MapList "space"
        "where the log makes each space map durable; appending one group";
    PendingRedo "pool"
        "the list of pages that lack redo after a crash; memory only";
    LogStretch "recovery"
        "a stretch of the log that a page needs after a crash; reading it, under the page's \
         latch";
    DoublewriteFile "pool"
        "a doublewrite file; one batch of page writes";
    SweepPace "checkpoint"
        "the lanes' pace; memory only";
    DoublewriteBatches "pool"
        "which batches are not settled; memory only";
    BatchesInFlight "pool"
        "pages that are being written; memory only";
    DirtyPassed "pool"
        "how far buckets of the dirty list were passed; passing some";
    DirtyBucket "pool"
        "the dirty pages of a stretch of log; memory only";
    Eviction "pool"
        "the queues of the replacement; memory only";
    FreeFrames "pool"
        "the free frames; memory only, its condition is waited for";
    FramesWanted "pool"
        "whether frames are wanted; memory only, its condition is waited for";
    LostPages "pool"
        "which damaged pages were reported, and what became of them; memory only";
    PageTableChunks "pool"
        "the page table's chunks; mapping one";
    LogWriter "redo"
        "the staging buffer, unsynced files; one device write. Held by the leader of a group \
         commit";
    LogFilesChanging "redo"
        "which log files there are; making, recycling and removing them";
    LogFiles "redo"
        "the list of log files; memory only";
    LogSlope "redo"
        "how the age limit falls while the log shrinks; memory only";
    LogRecent "redo"
        "the last bytes of the log; copying at most 128 KiB";
    LogReadBuffers "redo"
        "memory to read the log into; memory only";
    TreesBeingFreed "btree"
        "which trees are being freed; memory only";
    TreeCodecs "pool"
        "how pages of which tree are packed; memory only";
    SegmentUpkeep "pool"
        "what the upkeep of segments remembers; a step of it";
    SegmentGrowth "logstore"
        "the length of the file of segments; growing it";
    PageCleaner "logstore"
        "one cleaner at a time; a step of cleaning";
    MapCheckpoint "logstore"
        "where the map's leaves lie; a map checkpoint";
    SegmentStream "logstore"
        "a stream's open segment; writing chunks to it";
    SegmentRoots "logstore"
        "the file of roots; writing one";
    SegmentTable "logstore"
        "what is known of segments, and which pages have a write under way; memory only, its \
         condition is waited for";
    PageMap "logstore"
        "the leaves of the page map; memory only";
    CodecChoice "logstore"
        "what packing and the device were measured to take; memory only";
    IdlePackers "logstore"
        "memory to pack pages with; memory only";
    WrappedKey "crypt"
        "the copies of the wrapped key; asking for a master key, writing them";
    OverlayNames "device"
        "names of files over a database that is read alone; opening one";
    OverlayBlocks "device"
        "where changed blocks of such a file lie; one write or read";
    FaultRules "device"
        "the script of a faulty disk; memory only";
    DirectoryOpen "device"
        "whether the directory is open (shared); every operation on it, also from within \
         another" many;
    FileGrowth "device"
        "a file's length; growing it";
    FileSync "device"
        "whether a sync is under way; one sync";
    LockedFiles "device"
        "files that are locked besides the directory; memory only";
    IdleRings "device"
        "io_uring instances at rest; memory only";
    ThrottleBudget "device"
        "the budget of a throttled disk; memory only";
    SimulatedDisk "device"
        "a simulated disk; memory only";
    SpareBuffers "base"
        "memory of large buffers that are at rest; memory only";
    Listener "base"
        "the listener for a halt or a lost page; calling it. It must not call the engine";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_the_numbers() {
        let name = |number: u16| RANKS[usize::from(number)].name;
        assert_eq!(name(TableStates::NUMBER), RANKS[0].name);
        assert_eq!(name(PageLatch::NUMBER), "PageLatch");
        assert_eq!(name(Listener::NUMBER), "Listener");
        assert_eq!(RANKS.len(), usize::from(Listener::NUMBER) + 1, "the listener is last");
        let names: std::collections::BTreeSet<&str> = RANKS.iter().map(|rank| rank.name).collect();
        assert_eq!(names.len(), RANKS.len());
    }
}
