//! What the log counts.
use weir_base::counters;

counters! {
    /// What the log has done since it was opened.
    pub struct RedoStats {
        groups: "groups", "groups of redo published, large ones counted once for each 64 KiB";
        payload_bytes: "bytes", "redo written, without block headers, each byte once";
        writes: "writes", "write calls to the device for log blocks";
        bytes_written: "bytes", "bytes of blocks written, headers and rewritten tails included";
        syncs: "syncs", "durable writes and syncs of log files";
        group_commits: "rounds", "rounds of group commit that wrote something";
        commit_waits: "waits", "waits for redo to be written or synced";
        gather_micros: "microseconds", "time that leaders waited for more to join their round";
        room_waits: "waits", "times that an appender found the log buffer full";
        segments_recycled: "files", "log files used again";
        segments_created: "files", "log files created";
        segments_removed: "files", "log files removed";
        segments_late: "files", "log files that were prepared only when a writer needed them";
    }
}
