//! What the store has done.
weir_base::counters! {
    /// What a store has done since it was opened.
    pub struct LogStoreStats {
        pages_written: "pages", "pages written for the pool";
        pages_raw: "pages", "pages of these that were not packed";
        pages_lz4: "pages", "pages of these that were packed by LZ4";
        pages_zstd: "pages", "pages of these that were packed by zstd";
        pages_copied: "pages", "pages that the cleaner copied";
        bytes_packed: "bytes", "bytes of blocks of pages that were written for the pool";
        bytes_copied: "bytes", "bytes of blocks that the cleaner copied";
        map_bytes: "bytes", "bytes of leaves and index blocks of the map";
        segments_opened: "segments", "segments that were opened";
        segments_cleaned: "segments", "segments that were chosen to be cleaned";
        roots_written: "roots", "roots that were written";
        map_checkpoints: "checkpoints", "map checkpoints";
        growths: "growths", "times that the file of segments grew";
        cuts: "cuts", "times that the file of segments was made smaller";
        rereads: "reads", "reads that came upon a page that had just moved";
    }
}
