// Weir's C interface. Generated from crates/capi by `WEIR_BLESS=1 cargo test -p weir-capi`: change it there.
//
// Every function returns a weir_code unless it says otherwise; weir_message() has the words to the last one
// that this thread was given. Nothing unwinds into the caller.

#ifndef WEIR_H
#define WEIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// As many bytes as weir_mbr_entries may need.
#define WEIR_MBR_ENTRIES_BYTES 256

// The rows, not an index.
#define WEIR_ROWS -1

// A lock is waited for without end.
#define WEIR_WAIT_FOREVER UINT64_MAX

// How a call ended.
typedef enum weir_code {
    // It was done.
    WEIR_OK = 0,
    // There is nothing there, or nothing more. Not a failure.
    WEIR_NOTHING = 1,
    // There is a row with this key already. Nothing was changed.
    WEIR_DUPLICATE = 2,
    // The transaction was chosen to end a deadlock: it has been rolled back as a whole.
    WEIR_DEADLOCK = 3,
    // The limit for waiting for a lock has passed.
    WEIR_LOCK_TIMEOUT = 4,
    // It would have had to wait for a lock, and was not allowed to.
    WEIR_WOULD_WAIT = 5,
    // The wait for a lock, or what takes long, was interrupted.
    WEIR_INTERRUPTED = 6,
    // At snapshot isolation: another transaction changed the row after the snapshot.
    WEIR_CONFLICT = 7,
    // The definition of the table is not what the handle, or the snapshot, knows.
    WEIR_CHANGED = 8,
    // There are no auto-increment numbers left.
    WEIR_EXHAUSTED = 9,
    // There is something of this name already.
    WEIR_EXISTS = 10,
    // The transaction would need more undo than the log can hold.
    WEIR_TOO_LARGE = 11,
    // An argument, key, name or setting that is not possible.
    WEIR_INPUT = 12,
    // The disk is full.
    WEIR_DISK_FULL = 13,
    // Something stored is not what was written.
    WEIR_DAMAGED = 14,
    // The engine has halted after a failure of the device.
    WEIR_HALTED = 15,
    // The device or the operating system refused.
    WEIR_IO = 16,
    // The transaction has ended already.
    WEIR_ENDED = 17,
    // A bug of the engine. Every later call in this process is refused with the same.
    WEIR_PANIC = 18,
    // The database has been closed, or was opened before this process was forked; this handle of
    // it can only be given back.
    WEIR_CLOSED = 19,
    // Locks take all the memory that they may, and this transaction has many. What it has done so
    // far is as it was.
    WEIR_TOO_MANY_LOCKS = 20,
    // The database has been opened to be read alone (weir_options.read_only, force_recovery):
    // nothing can be changed.
    WEIR_READ_ONLY = 21,
} weir_code;

// When a commit may be acknowledged.
typedef enum weir_durability {
    // When it is on stable storage.
    WEIR_SYNCED = 0,
    // When the operating system has it: it survives the end of the process.
    WEIR_WRITTEN = 1,
    // At once; it is written a moment later.
    WEIR_LAZY = 2,
} weir_durability;

// What a transaction sees of others.
typedef enum weir_isolation {
    // Also what is not committed.
    WEIR_READ_UNCOMMITTED = 0,
    // What is committed when a read (or statement: weir_txn_begin_statement) begins.
    WEIR_READ_COMMITTED = 1,
    // Reads come from one snapshot; locking reads and writes work on what is committed now.
    WEIR_REPEATABLE_READ = 2,
    // As above, and writing what another transaction changed after the snapshot fails with
    // WEIR_CONFLICT.
    WEIR_SNAPSHOT = 3,
    // All reads lock what they read.
    WEIR_SERIALIZABLE = 4,
} weir_isolation;

// How a read locks.
typedef enum weir_lock {
    // As the isolation level says, at most levels not at all.
    WEIR_LOCK_NONE = 0,
    // What is committed last, with a lock that others may share.
    WEIR_LOCK_SHARE = 1,
    // What is committed last, with a lock for this transaction alone.
    WEIR_LOCK_UPDATE = 2,
} weir_lock;

// Whether opening may make a database.
typedef enum weir_create {
    // When there is none.
    WEIR_IF_MISSING = 0,
    // Never.
    WEIR_NEVER = 1,
    // There must be none.
    WEIR_ALWAYS = 2,
} weir_create;

// Where a new database keeps its pages. One that is there has what it was made with, and asking
// for another is an error.
typedef enum weir_store {
    // As the database has it; in place for a new one.
    WEIR_STORE_ANY = 0,
    // Each at a place of its own, written twice so that none is torn.
    WEIR_STORE_IN_PLACE = 1,
    // Packed, one behind the other in segments that are cleaned up: less is written.
    WEIR_STORE_LOG = 2,
} weir_store;

// How good an estimate is.
typedef enum weir_estimate_kind {
    // Counted.
    WEIR_EXACT = 0,
    // From a sample (weir_table_analyze).
    WEIR_SAMPLED = 1,
    // From two looks down the tree.
    WEIR_DIVED = 2,
} weir_estimate_kind;

// What a wait has come to.
typedef enum weir_wait_event {
    // It is about to begin. What the hook returns says whether it wants to hear for which
    // transactions.
    WEIR_WAIT_BEGINS = 0,
    // It is for `holder`, a transaction that has what `waiter` wants or comes first. May come
    // again.
    WEIR_WAIT_FOR = 1,
    // It is over.
    WEIR_WAIT_ENDS = 2,
    // `waiter` and `holder` are in a deadlock: returns whether `waiter` is rather to pay for it.
    WEIR_WAIT_RATHER = 3,
} weir_wait_event;

// What there is to hear of.
typedef enum weir_notice {
    // The engine has halted: nothing is written any more, until the database is opened anew.
    WEIR_NOTICE_HALTED = 0,
    // A page is damaged or cannot be read. Of each page once.
    WEIR_NOTICE_PAGE_LOST = 1,
    // A page was damaged and has been put right.
    WEIR_NOTICE_PAGE_REPAIRED = 2,
} weir_notice;

// Whether a word is looked for in an index.
typedef enum weir_fit {
    // It is in the index.
    WEIR_FIT_INDEXED = 0,
    // It is too short for it.
    WEIR_FIT_SHORT = 1,
    // It is too long for it.
    WEIR_FIT_LONG = 2,
    // It is one of those that say nothing.
    WEIR_FIT_STOPWORD = 3,
} weir_fit;

// How a query is read.
typedef enum weir_search_mode {
    // Words and phrases.
    WEIR_SEARCH_NATURAL = 0,
    // With operators.
    WEIR_SEARCH_BOOLEAN = 1,
    // Words, and all words of the documents that have them.
    WEIR_SEARCH_EXPANDED = 2,
} weir_search_mode;

// How a row's rectangle has to lie to a window.
typedef enum weir_relation {
    // It has a point in common with the window.
    WEIR_INTERSECTS = 0,
    // It lies in the window, borders included.
    WEIR_WITHIN = 1,
    // The window lies in it, borders included.
    WEIR_CONTAINS = 2,
    // It has no point in common with the window.
    WEIR_DISJOINT = 3,
    // It is the window.
    WEIR_EQUAL = 4,
} weir_relation;

// Changes to be applied together.
typedef struct weir_batch weir_batch;

// A table that is being filled.
typedef struct weir_copy weir_copy;

// A position in a tree among the rows that a transaction sees, which alone moves it. After a move
// that failed it stands on no row, and the next one the same way tries again.
typedef struct weir_cursor weir_cursor;

// An open database. All threads may use it.
typedef struct weir_db weir_db;

// Serves metrics until it is given back.
typedef struct weir_endpoint weir_endpoint;

// A prepared transaction in the hand of a caller that decides it. Its end may come from another
// thread than the one that has prepared it.
typedef struct weir_prepared_txn weir_prepared_txn;

// Rows that fit a query, the one that fits best first.
typedef struct weir_ranked weir_ranked;

// A walk over rows or entries, in one direction.
typedef struct weir_scan weir_scan;

// A table, good until its definition changes. One thread at a time uses it.
typedef struct weir_table weir_table;

// An ordered map of bytes. All threads may use it.
typedef struct weir_tree weir_tree;

// A transaction. One thread at a time uses it.
typedef struct weir_txn weir_txn;

// A walk over what a window finds, in no order that means anything.
typedef struct weir_windowed weir_windowed;

// The words of a text.
typedef struct weir_words weir_words;

// Borrowed bytes. As a result: good until the next call with the handle that they came from,
// unless the function says otherwise.
typedef struct weir_bytes {
    // The first byte; anything if there is none.
    const uint8_t *data;
    // How many.
    size_t len;
} weir_bytes;

// Where the bytes of a backup go.
typedef struct weir_sink {
    // What the function is given.
    void *context;
    // Takes all of the bytes. 0: done; anything else ends the backup, and is taken for an errno.
    int32_t (*write)(void *context, struct weir_bytes bytes);
} weir_sink;

// Where the bytes of a backup come from, from its beginning on.
typedef struct weir_source {
    // What the function is given.
    void *context;
    // Puts at most `room` bytes at `buffer`, and says how many; 0: there are no more. What is
    // negative ends the call, and is taken for an errno with its sign changed.
    int64_t (*read)(void *context, uint8_t *buffer, size_t room);
} weir_source;

// Where the keys of an encrypted database come from. The functions are called from any thread,
// when the database is opened, twice a minute for a newer version, and for each backup, until it
// is closed; they must not call the engine.
typedef struct weir_key_provider {
    // What the functions are given.
    void *context;
    // Writes the newest version of the key to `version`. 0: done; anything else: there is none.
    int32_t (*newest_version)(void *context, uint32_t key_id, uint32_t *version);
    // Writes the key of that version to `key`, where there is room for `*key_bytes` (32), and its
    // length to `key_bytes`: 16, 24 or 32. 0: done; anything else: there is none.
    int32_t (*key)(void *context, uint32_t key_id, uint32_t version, uint8_t *key, size_t *key_bytes);
} weir_key_provider;

// How to back up. All zero: all pages, at a pace that leaves the work nine tenths of the disk.
typedef struct weir_backup_options {
    // Another backup of the same database, of which the beginning is read: only what was changed
    // since is backed up, and that one is needed to restore. May be NULL.
    const struct weir_source *since;
    // The keys that open that one, if it is of an encrypted database. May be NULL.
    const struct weir_key_provider *keys;
    // Which key of those; 0: 1.
    uint32_t key_id;
    // When all is there, it goes on with the log that is written from then on, until it is ended:
    // any moment since can be restored.
    bool follow;
    // Bytes to read per second at most; 0: by itself.
    uint64_t bytes_per_second;
} weir_backup_options;

// How far a backup is.
typedef struct weir_backup_progress {
    // Pages gone through.
    uint64_t pages;
    // Pages that there are to go through.
    uint64_t pages_of;
    // Bytes written.
    uint64_t bytes;
    // All is there, and the log is followed.
    bool follows;
} weir_backup_progress;

// Is shown how far a backup is, again and again; `false` ends it. NULL: it goes on. It must not
// unwind.
typedef bool (*weir_backup_goes_on)(void *context, const struct weir_backup_progress *at);

// What a backup holds.
typedef struct weir_backed_up {
    // Pages.
    uint64_t pages;
    // Bytes of log.
    uint64_t log_bytes;
    // All bytes.
    uint64_t bytes;
    // The state that it holds: all that was committed before this position of the log.
    uint64_t position;
} weir_backed_up;

// Gets the offset at which the rest of a backup belongs: cuts off what is behind it, and has
// the sink write from there on. 0: done; anything else ends the call, and is taken for an errno.
// It must not unwind.
typedef int32_t (*weir_backup_go_on_at)(void *context, uint64_t offset);

// How to restore. All zero: all that the last backup has, in the page store of the database that
// was backed up.
typedef struct weir_restore_options {
    // Only what was committed before this position of the log; 0: no such bound.
    uint64_t to_position;
    // Only what was committed at this time, in microseconds since 1970, to about a second; 0: no
    // such bound. One of the two may be given.
    uint64_t to_micros;
    // The last backup need not have ended, if only all pages are in it.
    bool incomplete;
    // The keys that open the backups, and encrypt the new database. May be NULL.
    const struct weir_key_provider *keys;
    // Which key of those; 0: 1.
    uint32_t key_id;
} weir_restore_options;

// Is shown the bytes read so far; `false` ends the call with WEIR_INTERRUPTED. NULL: it goes on.
// It must not unwind.
typedef bool (*weir_restore_goes_on)(void *context, uint64_t bytes);

// An index to be made.
typedef struct weir_index {
    // Its name, unique in the table.
    struct weir_bytes name;
    // Whether two rows may not have the same key.
    bool unique;
    // Bytes of the caller's that say how its keys are made.
    struct weir_bytes definition;
    // Whether it keeps several entries of a row, or none; then it is not unique. A row still has
    // one weir_entry, with no key, in whose payload they lie (weir_words_entries).
    bool several;
} weir_index;

// Another name for an index.
typedef struct weir_new_name {
    // The one it has.
    struct weir_bytes from;
    // The one it gets.
    struct weir_bytes to;
} weir_new_name;

// What a table is to have as its definition. Its rows and trees stay as they are.
typedef struct weir_redefinition {
    // Its name, before anything is renamed.
    struct weir_bytes table;
    // The caller's bytes.
    struct weir_bytes definition;
    // Indexes that get another name.
    const struct weir_new_name *renamed;
    // How many.
    size_t renamed_count;
    // The caller's bytes that say how rows lie that were written under earlier definitions; with
    // the data NULL they stay as they are. They go when the rows do.
    struct weir_bytes layouts;
    // How its pages are to be packed, as `weir_tree_set_codec` has it; with the data NULL as they
    // are.
    struct weir_bytes codec;
} weir_redefinition;

// Is shown a table by its name and definition, and how its rows lie (weir_redefinition). It must
// not unwind, and what it is shown is gone when it returns.
typedef void (*weir_visit_table)(void *context,
                                 struct weir_bytes name,
                                 struct weir_bytes definition,
                                 struct weir_bytes layouts);

// Is shown one thing after the other. It must not unwind, and what it is shown is gone when it
// returns.
typedef void (*weir_visit)(void *context, struct weir_bytes bytes);

// How to compact. All zero: from the first row on, at a pace that leaves the work nine tenths of
// the disk.
typedef struct weir_compact_options {
    // It begins at the leaf that has this key: `next` of a call that was ended.
    struct weir_bytes from;
    // Bytes of pages to read and change per second at most; 0: by itself; UINT64_MAX: as fast as
    // can be.
    uint64_t bytes_per_second;
} weir_compact_options;

// What a compaction has done so far.
typedef struct weir_compacted {
    // Leaves that are as full as can be.
    uint64_t leaves;
    // Pages that are free.
    uint64_t pages_freed;
    // Pages whose content has moved to one further in front in the file.
    uint64_t pages_moved;
    // Whether all of the tree was gone through.
    bool is_whole;
    // Where another call goes on, if not: good during the callback, and when it is put out by the
    // call, until this thread's next one.
    struct weir_bytes next;
} weir_compacted;

// Is shown what a compaction has done, after each step; `false` ends it. NULL: it goes on. It must
// not unwind.
typedef bool (*weir_compact_goes_on)(void *context, const struct weir_compacted *at);

// What an index keeps of a row. Keys compare as bytes; none may be the beginning of another.
typedef struct weir_entry {
    // The index key.
    struct weir_bytes key;
    // What else a covering read needs.
    struct weir_bytes payload;
    // Whether a column of the key is NULL: then it equals no other key.
    bool has_null;
} weir_entry;

// A row with its index entries.
typedef struct weir_row {
    // The primary key.
    struct weir_bytes key;
    // The row.
    struct weir_bytes row;
    // One entry for each index, in the table's order, those being built included.
    const struct weir_entry *entries;
    // How many.
    size_t entry_count;
} weir_row;

// Is asked again and again whether to go on; `false` ends the call with WEIR_INTERRUPTED. NULL: it
// goes on. It must not unwind.
typedef bool (*weir_go_on)(void *context);

// The settings. All zero: the defaults.
typedef struct weir_options {
    // Memory for pages, in bytes.
    uint64_t memory_bytes;
    // The log's capacity in bytes when the database is made; see weir_set_log_bytes.
    uint64_t log_bytes;
    // Bytes a page when the database is made: 4096, 8192 or 16384.
    uint64_t page_bytes;
    // A weir_create.
    uint32_t create;
    // A weir_store.
    uint32_t store;
    // Which key of `keys` encrypts a new database; 0: key 1.
    uint32_t key_id;
    // Whether the database is encrypted, and with which keys: at creation, and for all later
    // openings. NULL: it is not. Read before weir_open returns.
    const struct weir_key_provider *keys;
    // For a database that is damaged, to read what can be read of it: nothing is changed, and each
    // step, from 1 to 4, leaves out more of what opening does otherwise. 1: what cannot be read is
    // passed over by what walks, transactions without an end are not rolled back, and not seen.
    // 2: one whose undo cannot be read counts as committed. 3: the log is applied up to the first
    // damage in it. 4: it is not applied, and files may be of different moments. Changes are
    // WEIR_READ_ONLY. 0: as ever. See weir_recovery_remarks.
    uint32_t force_recovery;
    // Not 0: the database is only looked at. It must be there; no file of it is changed, and
    // changes are WEIR_READ_ONLY. Several processes may do so at a time.
    uint32_t read_only;
} weir_options;

// What an exported table holds.
typedef struct weir_exported {
    // Rows.
    uint64_t rows;
    // Bytes of the stream.
    uint64_t bytes;
} weir_exported;

// Is shown what an exported table says of itself: the heading that it got, its definition, and how
// its rows lie (weir_redefinition). It must not unwind, and what it is shown is gone when it
// returns.
typedef void (*weir_visit_export)(void *context,
                                  struct weir_bytes heading,
                                  struct weir_bytes definition,
                                  struct weir_bytes layouts);

// The entries of a row in an index that keeps several of each.
typedef struct weir_row_entries {
    // The row's primary key.
    struct weir_bytes key;
    // The entries, as weir_words_entries and weir_mbr_entries make them.
    struct weir_bytes entries;
} weir_row_entries;

// Adds the words of a text of the query to `words`; returns 0, or something else to stop. It must
// not unwind.
typedef int (*weir_split)(void *context, struct weir_bytes text, struct weir_words *words);

// Adds all words of a row to `words`, those that are not in the index included; returns 0, or
// something else to stop. It must not unwind, nor use the transaction.
typedef int (*weir_split_row)(void *context,
                              struct weir_bytes key,
                              struct weir_bytes row,
                              struct weir_words *words);

// What is looked for in an index of words.
typedef struct weir_search {
    // The place of the index.
    size_t index;
    // The query: any bytes whose operators are ASCII.
    struct weir_bytes query;
    // A weir_search_mode.
    uint32_t mode;
    // A weir_lock, for the entries that are read.
    uint32_t lock;
    // Passes over what others have locked.
    bool skip_locked;
    // About how many rows the table has.
    uint64_t rows;
    // How many columns the index has.
    uint64_t columns;
    // For the words of the query.
    weir_split split;
    // For the words of a row.
    weir_split_row split_row;
    // Is asked for each entry.
    weir_go_on go_on;
    // Theirs.
    void *context;
} weir_search;

// Makes the entry of a row in an index: fills `entry` with bytes that stay until its next call and
// returns 0, or something else to stop. It must not unwind.
typedef int (*weir_make_entry)(void *context,
                               size_t index,
                               struct weir_bytes key,
                               struct weir_bytes row,
                               struct weir_entry *entry);

// Called by the thread that meets what is wrong; `notice` is a weir_notice, `text` is valid for
// the call. It must not call the engine, wait for those that do, or unwind.
typedef void (*weir_notice_hook)(void *context, uint32_t notice, struct weir_bytes text);

// Makes a row of the new table, with an entry for each of its indexes: fills `made` with bytes
// that stay until its next call and returns 0, or something else to stop. `table`: the place of
// the table among those that are written anew together. It makes the same of the same row whenever
// it is asked, and must not unwind.
typedef int (*weir_make_row)(void *context,
                             size_t table,
                             struct weir_bytes key,
                             struct weir_bytes row,
                             struct weir_row *made);

// Where a walk is to go, and how.
typedef struct weir_range {
    // The place of an index, or WEIR_ROWS.
    int32_t index;
    // Keys from this on.
    struct weir_bytes from;
    // Keys below this, if `has_to`; else anything, and not looked at.
    struct weir_bytes to;
    // Whether there is an upper bound.
    bool has_to;
    // From the greatest key down.
    bool down;
    // Passes over what others have locked.
    bool skip_locked;
    // A weir_lock. From WEIR_REPEATABLE_READ on, with a lock no other transaction adds to the
    // range walked over.
    uint32_t lock;
} weir_range;

// What a walk stands on. Good until it moves.
typedef struct weir_found {
    // The key in the tree: to go on behind it, begin a walk with it and a zero byte after it.
    struct weir_bytes tree_key;
    // The primary key.
    struct weir_bytes primary_key;
    // The row, or with `front` its first bytes; of an index, nothing.
    struct weir_bytes row;
    // The index key; of the rows, the primary key.
    struct weir_bytes index_key;
    // Of an index, what its entry carries.
    struct weir_bytes payload;
    // It is not locked, only shown as it was committed last: see weir_scan_semi_consistent.
    bool unlocked;
    // The row has more bytes: see weir_scan_fronts.
    bool front;
} weir_found;

// A rectangle with sides along the axes, the smallest around a geometry. One whose least
// coordinate is greater than its greatest, or not a number, has no points.
typedef struct weir_mbr {
    // The least first coordinate.
    double x_min;
    // The greatest first coordinate.
    double x_max;
    // The least second coordinate.
    double y_min;
    // The greatest second coordinate.
    double y_max;
} weir_mbr;

// What is looked for in a spatial index.
typedef struct weir_window {
    // The place of the index.
    size_t index;
    // The window; one without points finds nothing.
    struct weir_mbr mbr;
    // A weir_relation.
    uint32_t relation;
    // A weir_lock, for the entries that are read. From WEIR_REPEATABLE_READ on, with a lock no
    // other transaction adds a row that the window would have found.
    uint32_t lock;
    // Passes over what others have locked.
    bool skip_locked;
    // Is asked for each entry.
    weir_go_on go_on;
    // Its.
    void *context;
} weir_window;

// What the calling thread has asked of engines since it began; only grows.
typedef struct weir_thread_counts {
    // Pages read from disk.
    uint64_t pages_read;
    // Microseconds that the thread waited for them.
    uint64_t read_micros;
    // Older versions of rows that were looked up.
    uint64_t versions_read;
    // Places at which rows that cannot be read were passed over (weir_options.force_recovery).
    uint64_t passed_over;
} weir_thread_counts;

// A number and what it means. All bytes stay until the visit is over.
typedef struct weir_metric {
    // As Prometheus wants names, with the unit at its end: weir_checkpoint_age_bytes.
    struct weir_bytes name;
    // In what it is counted; seconds and bytes are never scaled.
    struct weir_bytes unit;
    // What it tells.
    struct weir_bytes help;
    // Whether it only grows while the database is open.
    bool is_counter;
    // Its value now. May be infinite: no limit.
    double value;
} weir_metric;

// Is shown a number. It must not unwind, and what it is shown is gone when it returns.
typedef void (*weir_visit_metric)(void *context, const struct weir_metric *metric);

// A lock that a transaction holds or waits for. All bytes stay until the visit is over.
typedef struct weir_seen_lock {
    // The transaction's number (weir_txn_number).
    uint64_t owner;
    // The table, or the name of a tree that belongs to none.
    struct weir_bytes table;
    // The index, if it is one's entries that are locked.
    struct weir_bytes index;
    // The key, or the first of a range.
    struct weir_bytes key;
    // The first key behind a range, if it has an end.
    struct weir_bytes to;
    // Whether it is a range.
    bool is_range;
    // Whether the range has an end.
    bool has_to;
    // Whether others may share it.
    bool is_shared;
    // Whether it is only waited for.
    bool is_waiting;
} weir_seen_lock;

// Is shown a lock. It must not unwind, and what it is shown is gone when it returns.
typedef void (*weir_visit_lock)(void *context, const struct weir_seen_lock *lock);

// Is shown an index by its name and definition. It must not unwind, and what it is
// shown is gone when it returns.
typedef void (*weir_visit_definition)(void *context,
                                      struct weir_bytes name,
                                      struct weir_bytes definition);

// About how many pages a tree has.
typedef struct weir_size {
    // Pages with rows or entries.
    uint64_t leaf_pages;
    // Pages above them.
    uint64_t inner_pages;
    // Pages of values that do not fit beside their key.
    uint64_t value_pages;
} weir_size;

// Is given the next entry, in ascending key order: fills both and returns true, or returns false
// at the end. What it names must stay until its next call.
typedef bool (*weir_next_entry)(void *context, struct weir_bytes *key, struct weir_bytes *value);

// Called once for a commit: WEIR_OK when it is durable, or why it is unknown whether it ever will
// be. It must not wait for anything, and must not unwind.
typedef void (*weir_durable)(void *context, enum weir_code code);

// Called for the wait of a transaction, by the thread that waits; `event` is a weir_wait_event,
// the others are numbers as weir_txn_number has them, `holder` 0 where it says nothing. It may
// interrupt transactions, must not begin anything else, and must not unwind.
typedef bool (*weir_wait_hook)(void *context, uint32_t event, uint64_t waiter, uint64_t holder);

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Writes pages as they lie on disk, each verified, and the log that belongs to them, to `sink`,
// while all transactions go on: what was committed when this returns. `options` may be NULL.
// WEIR_INTERRUPTED when `goes_on` ended it: what was written is no backup then (unless it
// follows). weir_restore makes a database of it. `out` may be NULL.
enum weir_code weir_backup(const struct weir_db *db,
                           struct weir_sink sink,
                           const struct weir_backup_options *options,
                           weir_backup_goes_on goes_on,
                           void *context,
                           struct weir_backed_up *out);

// Goes on with a backup that was cut off: by a crash of either side, a full disk, or `goes_on`.
// `there` is what there is of it, and is read to its end and verified first, while `goes_on` sees
// no pages. Then `go_on_at` is called, with the context of `sink`, and `sink` gets the rest; where
// nothing is missing neither is. All pages in use are read again, and those that are missing or
// were changed are written; the database need not have been open in between. `options` may be
// NULL; a backup that was begun since another one stays so, and `since` is NULL. One of an
// encrypted database is sealed from there on with the newest version of its key. WEIR_INPUT for a
// backup of another database; WEIR_DAMAGED where not even its beginning is whole. Otherwise as
// weir_backup; WEIR_INTERRUPTED: it can be gone on with again.
enum weir_code weir_backup_resume(const struct weir_db *db,
                                  struct weir_source there,
                                  weir_backup_go_on_at go_on_at,
                                  struct weir_sink sink,
                                  const struct weir_backup_options *options,
                                  weir_backup_goes_on goes_on,
                                  void *context,
                                  struct weir_backed_up *out);

// Makes a database in a directory, which must hold nothing, of a full backup and those that were
// made since it, each of the one before: `count` sources. `options` may be NULL. What fails or is
// ended leaves nothing in the directory. The log is applied when the database is opened first.
enum weir_code weir_restore(struct weir_bytes directory,
                            const struct weir_source *sources,
                            size_t count,
                            const struct weir_restore_options *options,
                            weir_restore_goes_on goes_on,
                            void *context);

// Reads a backup to its end: every page's checksum, number and database, every group of the log
// and each change in it. `keys` may be NULL; they open a backup of an encrypted database.
enum weir_code weir_backup_verify(struct weir_source source,
                                  const struct weir_key_provider *keys,
                                  uint32_t key_id,
                                  weir_restore_goes_on goes_on,
                                  void *context);

// Makes an empty batch.
enum weir_code weir_batch_new(struct weir_batch **out);

// Gives a batch back. NULL is fine.
void weir_batch_free(struct weir_batch *batch);

// Adds: insert the row or replace its value.
enum weir_code weir_batch_put(struct weir_batch *batch,
                              const struct weir_tree *tree,
                              struct weir_bytes key,
                              struct weir_bytes value);

// Adds: remove the row if it is there.
enum weir_code weir_batch_delete(struct weir_batch *batch,
                                 const struct weir_tree *tree,
                                 struct weir_bytes key);

// Applies a batch: all of it or nothing, now and after a crash. It is empty afterwards.
enum weir_code weir_batch_write(const struct weir_db *db,
                                struct weir_batch *batch,
                                uint32_t durability);

// Makes a table of rows and keys that the caller encodes. `definition` is the caller's. Durable
// when it returns, as all here. `codec`: how its pages are packed, as `weir_tree_set_codec` has
// it, in one transaction with the table. WEIR_EXISTS: there is one of this name.
enum weir_code weir_table_create(const struct weir_db *db,
                                 struct weir_bytes name,
                                 struct weir_bytes definition,
                                 const struct weir_index *indexes,
                                 size_t count,
                                 struct weir_bytes codec);

// Has pages of a table and of its indexes, also of later ones, packed by another codec from their
// next write on, as `weir_tree_set_codec` has it. WEIR_NOTHING: there is no such table.
enum weir_code weir_table_set_codec(const struct weir_db *db,
                                    struct weir_bytes name,
                                    struct weir_bytes codec);

// Drops a table, when all that write to it have ended. Each of them is waited for at most
// `lock_wait_millis`, here and in all that have this argument: WEIR_LOCK_TIMEOUT, and 0 is
// WEIR_WOULD_WAIT at once; nothing was changed then. WEIR_NOTHING: there is none.
enum weir_code weir_table_drop(const struct weir_db *db,
                               struct weir_bytes name,
                               uint64_t lock_wait_millis);

// Gives a table another name. WEIR_NOTHING: there is none; WEIR_EXISTS: there is one of the new
// name.
enum weir_code weir_table_rename(const struct weir_db *db,
                                 struct weir_bytes from,
                                 struct weir_bytes to);

// Gives a table another name, to be dropped by it later, when all that write to it or have read it
// with locks have ended. Handles have to be opened again, so that dropping it waits for no
// transaction that does not know the new name. WEIR_NOTHING, WEIR_EXISTS: as weir_table_rename.
enum weir_code weir_table_set_aside(const struct weir_db *db,
                                    struct weir_bytes from,
                                    struct weir_bytes to,
                                    uint64_t lock_wait_millis);

// Gives tables other definitions, all at once, without waiting for transactions that write to
// them. Handles stay good and show what they have known.
enum weir_code weir_table_redefine(const struct weir_db *db,
                                   const struct weir_redefinition *tables,
                                   size_t count);

// As weir_table_redefine, where a snapshot from before may show rows that are none of the new
// definition: all that write to the tables are waited for, and handles and snapshots from before
// get WEIR_CHANGED.
enum weir_code weir_table_redefine_anew(const struct weir_db *db,
                                        const struct weir_redefinition *tables,
                                        size_t count,
                                        uint64_t lock_wait_millis);

// As weir_table_rename, and gives tables (this one perhaps, by its old name) other definitions at
// once with it. `filled`: it was filled under its old name, in many transactions, to take another
// table's place: snapshots from before, and handles, get WEIR_CHANGED.
enum weir_code weir_table_rename_with(const struct weir_db *db,
                                      struct weir_bytes from,
                                      struct weir_bytes to,
                                      const struct weir_redefinition *tables,
                                      size_t count,
                                      bool filled);

// A table that was filled under its own name is complete: snapshots from before, which would show
// it without its rows, and handles get WEIR_CHANGED. WEIR_NOTHING: there is none.
enum weir_code weir_table_filled(const struct weir_db *db,
                                 struct weir_bytes name,
                                 uint64_t lock_wait_millis);

// Shows all tables with their definitions, in the order of their names.
enum weir_code weir_table_definitions(const struct weir_db *db,
                                      weir_visit_table visit,
                                      void *context);

// Removes all rows, when all that write to the table have ended. Handles have to be opened again.
// Auto-increment begins anew, with `next_number`; 0: it goes on where it was.
enum weir_code weir_table_truncate(const struct weir_db *db,
                                   struct weir_bytes name,
                                   uint64_t next_number,
                                   uint64_t lock_wait_millis);

// Shows the names of all tables, in order.
enum weir_code weir_table_names(const struct weir_db *db, weir_visit visit, void *context);

// Makes a tree dense: leaves that deletions have left half empty are joined, and lie at the
// beginning of the file, as far as there is room, while others read and write. What is free goes
// back to the file system some seconds after the next checkpoint. Older versions, and the values
// that are the longest, stay where they are. `options` and `out` may be NULL. WEIR_INTERRUPTED
// when `goes_on` ended it: what is done stays, and `out` says where another call goes on.
enum weir_code weir_tree_compact(const struct weir_tree *tree,
                                 const struct weir_compact_options *options,
                                 weir_compact_goes_on goes_on,
                                 void *context,
                                 struct weir_compacted *out);

// Begins to fill a table, which must be empty and which no other caller reads or writes until
// weir_copy_finish, not by another handle either. Rows are loaded as they come, entries of indexes
// at the end. Given back, unfinished, it leaves a part of the rows, for the caller to drop.
enum weir_code weir_copy_begin(const struct weir_table *table, struct weir_copy **out);

// Adds a row. One that does not come in the order of the primary keys is inserted by the
// transaction, and so is every one behind it. On WEIR_DUPLICATE, of the primary key, `duplicate`
// is WEIR_ROWS.
enum weir_code weir_copy_row(struct weir_copy *copy,
                             const struct weir_txn *txn,
                             const struct weir_row *row,
                             int32_t *duplicate);

// Ends it: the table has all rows and entries, as durably as what is committed durably later. On
// WEIR_DUPLICATE, `duplicate` is the index in which two rows have the same key, and `primary_key`
// is one's, good until weir_copy_close. `go_on` is asked for each entry.
enum weir_code weir_copy_finish(struct weir_copy *copy,
                                weir_go_on go_on,
                                void *context,
                                int32_t *duplicate,
                                struct weir_bytes *primary_key);

// Gives it back. NULL is fine.
void weir_copy_close(struct weir_copy *copy);

// Makes a cursor that stands nowhere yet; `lock` is a weir_lock. It sees keys from `from` on and,
// if `to` is not NULL, below `to`. It is given back before its transaction ends.
enum weir_code weir_cursor_open(const struct weir_tree *tree,
                                const struct weir_txn *txn,
                                uint32_t lock,
                                struct weir_bytes from,
                                const struct weir_bytes *to,
                                struct weir_cursor **out);

// Gives a cursor back. NULL is fine.
void weir_cursor_close(struct weir_cursor *cursor);

// Passes over rows that others have locked, instead of waiting.
enum weir_code weir_cursor_skip_locked(struct weir_cursor *cursor);

// Says that about so many rows will be asked for after each move to a key or an end; 0: that is
// not known, as at first. The cursor shows more nevertheless; but it reads at once what is not in
// memory of the pages that hold so many.
enum weir_code weir_cursor_expect_rows(struct weir_cursor *cursor, uint64_t rows);

// Moves to the first row whose key is not below `key`. WEIR_NOTHING: there is none.
enum weir_code weir_cursor_seek(struct weir_cursor *cursor,
                                const struct weir_txn *txn,
                                struct weir_bytes key);

// Moves to the last row whose key is below `key`. WEIR_NOTHING: there is none.
enum weir_code weir_cursor_seek_before(struct weir_cursor *cursor,
                                       const struct weir_txn *txn,
                                       struct weir_bytes key);

// Moves to the first row.
enum weir_code weir_cursor_first(struct weir_cursor *cursor, const struct weir_txn *txn);

// Moves to the last row.
enum weir_code weir_cursor_last(struct weir_cursor *cursor, const struct weir_txn *txn);

// Moves to the next row.
enum weir_code weir_cursor_next(struct weir_cursor *cursor, const struct weir_txn *txn);

// Moves to the row before.
enum weir_code weir_cursor_prev(struct weir_cursor *cursor, const struct weir_txn *txn);

// The row stood on; empty when on none. Good until the cursor moves.
enum weir_code weir_cursor_row(struct weir_cursor *cursor,
                               struct weir_bytes *key,
                               struct weir_bytes *value);

// Opens the database in a directory, and makes it if need be; recovers after a crash. `options`
// may be NULL.
enum weir_code weir_open(struct weir_bytes directory,
                         const struct weir_options *options,
                         struct weir_db **out);

// Shows, each in words, what an opening with weir_options.force_recovery has found damaged or left
// out. What is met later weir_on_notice reports, and weir_thread_counts counts.
enum weir_code weir_recovery_remarks(const struct weir_db *db, weir_visit visit, void *context);

// Closes the database in order: the next opening has nothing to redo. The handle is gone and the
// directory free for others, whatever is returned. Other handles of the database say WEIR_CLOSED
// from then on and are given back as ever; a transaction among them is rolled back by the next
// opening.
enum weir_code weir_close(struct weir_db *db);

// Makes the log larger or smaller while the database is in use.
enum weir_code weir_set_log_bytes(const struct weir_db *db, uint64_t bytes);

// Gives pages more or less memory while the database is in use, up to what the process may use.
// WEIR_INPUT when that is too little or too much, or pages in use cannot leave what is to be given
// up; the memory is then as it was, or a part of the way there.
enum weir_code weir_set_pool_bytes(const struct weir_db *db, uint64_t bytes);

// Keeps the checkpoint young enough that opening after a crash takes at most about so many
// seconds, at the price of more page writes; 0: the log's capacity alone decides. Until the next
// opening.
enum weir_code weir_set_recovery_seconds(const struct weir_db *db, double seconds);

// Writes all pages that are dirty now.
enum weir_code weir_checkpoint(const struct weir_db *db);

// Bytes a page, and bytes of the pages file that nothing uses.
enum weir_code weir_space(const struct weir_db *db, uint64_t *page_bytes, uint64_t *free_bytes);

// The key that encrypts the database: its number, and the version that opens the files now. Both
// 0: it is not encrypted.
enum weir_code weir_key(const struct weir_db *db, uint32_t *key_id, uint32_t *key_version);

// Waits until all that was committed so far is on stable storage.
enum weir_code weir_sync(const struct weir_db *db);

// Checks all trees of the database and whether each page belongs to exactly one. Each problem is
// shown; WEIR_DAMAGED if there was one.
enum weir_code weir_check(const struct weir_db *db, weir_visit visit, void *context);

// Serves the metrics of a database at http://ADDRESS/metrics to this machine alone. `address`:
// 127.0.0.1:9600, `[::1]:9600`, :9600 or 9600.
enum weir_code weir_serve_metrics(const struct weir_db *db,
                                  struct weir_bytes address,
                                  struct weir_endpoint **out);

// Stops serving, before the database is closed. NULL is fine.
void weir_stop_serving(struct weir_endpoint *endpoint);

// Writes a table as it is committed now to `sink`: its rows, the entries of its indexes, and what
// it is, each part with a checksum. `heading`: bytes of the caller's, which come back when it is
// read. What is not committed, be it prepared, is not in it. `go_on` is asked for each entry.
// WEIR_CHANGED: the handle is older than the definition. Where it fails, what was written is no
// table. `out` may be NULL.
enum weir_code weir_table_export(const struct weir_table *table,
                                 struct weir_bytes heading,
                                 struct weir_sink sink,
                                 weir_go_on go_on,
                                 void *context,
                                 struct weir_exported *out);

// Reads an exported table to its end, and verifies all of it; then shows what it says of itself.
// `go_on` is asked for each entry. WEIR_DAMAGED: it is not what was written, or not all of that;
// WEIR_INPUT: it is none, or of a later version. `out` may be NULL.
enum weir_code weir_export_verify(struct weir_source source,
                                  weir_visit_export visit,
                                  weir_go_on go_on,
                                  void *context,
                                  struct weir_exported *out);

// Puts the rows of an exported table in the place of a table's own, when all that write to it have
// ended; its numbers go on where the other's were, and its rows lie as the other's did. Its
// definition stays: the caller knows that both are made alike; that their indexes have the same
// names is looked at. Handles have to be opened again, and older snapshots get WEIR_CHANGED. Codes
// as weir_export_verify; where it fails, nothing was changed. `out` may be NULL.
enum weir_code weir_table_import(const struct weir_db *db,
                                 struct weir_bytes table,
                                 struct weir_source source,
                                 weir_go_on go_on,
                                 void *context,
                                 uint64_t lock_wait_millis,
                                 struct weir_exported *out);

// Makes an empty list of words.
enum weir_code weir_words_new(struct weir_words **out);

// Gives a list of words back. NULL is fine.
void weir_words_close(struct weir_words *words);

// Adds a word. `key`: bytes that equal words have in common, none of them the beginning of
// another's; the first `beginning` of them begin the keys of all words that begin as this one
// does. `place`: the number of the word in its document, times the number of columns of the index,
// and the number of its column. `fit` is a weir_fit.
enum weir_code weir_words_add(struct weir_words *words,
                              struct weir_bytes key,
                              size_t beginning,
                              uint64_t place,
                              uint32_t fit);

// Turns the words that were added since the last call into the payload of a row's entry in an
// index of several entries (weir_index), good until the next call, and forgets them.
enum weir_code weir_words_entries(struct weir_words *words, struct weir_bytes *payload);

// Adds the entries of rows that this transaction has inserted with none in this index, which keeps
// several of each row, in the order in which they lie: all, or nothing. Until then the index lacks
// the rows for this transaction, too, and they must be neither changed nor removed, nor committed.
enum weir_code weir_table_add_entries(const struct weir_table *table,
                                      const struct weir_txn *txn,
                                      int32_t index,
                                      const struct weir_row_entries *rows,
                                      size_t count);

// Looks for rows by an index whose entries are words (weir_words_entries). WEIR_INPUT: the query
// cannot be read; the message says why. WEIR_TOO_LARGE: a phrase has too many words.
enum weir_code weir_table_search(const struct weir_table *table,
                                 const struct weir_txn *txn,
                                 const struct weir_search *what,
                                 struct weir_ranked **out);

// Gives the rows that were found back. NULL is fine.
void weir_ranked_close(struct weir_ranked *ranked);

// The primary key of the row that fits best but for `nth` others, and how well it does.
// WEIR_NOTHING: no more were found. The key is good as long as what it comes from.
enum weir_code weir_ranked_at(const struct weir_ranked *ranked,
                              size_t nth,
                              struct weir_bytes *primary_key,
                              float *rank);

// How well the row of a primary key fits. WEIR_NOTHING, and 0: it does not.
enum weir_code weir_ranked_find(const struct weir_ranked *ranked,
                                struct weir_bytes primary_key,
                                float *rank);

// Adds an index to a table while others write to it: they get WEIR_CHANGED, open the table
// again and give its entries from then on. WEIR_EXISTS: there is one of this name; WEIR_DUPLICATE:
// two rows have one key.
enum weir_code weir_table_add_index(const struct weir_db *db,
                                    struct weir_bytes table,
                                    const struct weir_index *index,
                                    weir_make_entry make,
                                    void *context,
                                    uint64_t lock_wait_millis);

// Drops an index, when all that write to the table have ended; not while one of the table is being
// built (weir_table_finish_indexes can drop others then). WEIR_NOTHING: there is none.
enum weir_code weir_table_drop_index(const struct weir_db *db,
                                     struct weir_bytes table,
                                     struct weir_bytes index,
                                     uint64_t lock_wait_millis);

// Makes indexes that are empty and out of use, when all that write to the table have ended: a
// caller that writes to it from then on gets WEIR_CHANGED, opens it again and gives their entries.
// weir_table_fill_indexes and weir_table_finish_indexes come next, or weir_table_abandon_indexes;
// the next opening drops what was not finished. `codec`: how their pages are to be packed, as a
// weir_redefinition has it. WEIR_EXISTS: there is one of such a name.
enum weir_code weir_table_announce_indexes(const struct weir_db *db,
                                           struct weir_bytes table,
                                           const struct weir_index *indexes,
                                           size_t count,
                                           struct weir_bytes codec,
                                           uint64_t lock_wait_millis);

// Gives the announced indexes their entries, while others write to the table. `make` gets the
// place in the list of them, and so is `duplicate` on WEIR_DUPLICATE: the row that `make` was
// asked for last has another one's key. `go_on` is asked for each row. Called again it brings in
// what writers have changed since.
enum weir_code weir_table_fill_indexes(const struct weir_db *db,
                                       struct weir_bytes table,
                                       weir_make_entry make,
                                       weir_go_on go_on,
                                       void *context,
                                       int32_t *duplicate,
                                       uint64_t lock_wait_millis);

// Brings all indexes that were filled into use, drops others by name and gives the table another
// definition, all at once; of several tables, the parts of one, all of them or none.
// WEIR_DUPLICATE: a writer has met one meanwhile; `duplicate` is the place in the list of those
// that were announced.
enum weir_code weir_table_finish_indexes(const struct weir_db *db,
                                         const struct weir_redefinition *tables,
                                         size_t tables_count,
                                         const struct weir_bytes *drop,
                                         size_t drop_count,
                                         int32_t *duplicate,
                                         uint64_t lock_wait_millis);

// Drops the indexes that were announced and not finished.
enum weir_code weir_table_abandon_indexes(const struct weir_db *db,
                                          struct weir_bytes table,
                                          uint64_t lock_wait_millis);

// Drops the indexes whose building a crash has cut short and that the opening had to leave, since
// a transaction that is prepared had written to their table: for when those are decided. It waits
// so long for each that is not, and then leaves them, too. Not while an index is being built.
enum weir_code weir_drop_unfinished_indexes(const struct weir_db *db, uint64_t wait_ms);

// Reports what is wrong from now on, until the database is closed; at once where the engine has
// halted already. Any thread may call the hook, with `context`. Only once for a database.
enum weir_code weir_on_notice(const struct weir_db *db, weir_notice_hook hook, void *context);

// Words for the last code but WEIR_OK and WEIR_NOTHING that a function has given to this thread;
// good until its next call. Never NULL.
const char *weir_message(void);

// Prepares it under a name of 1 to 255 bytes: durable when this returns, it survives a restart
// with its changes, until weir_commit_prepared or weir_rollback_prepared. The handle is gone; if
// this failed, so is what it did.
enum weir_code weir_txn_prepare(struct weir_txn *txn, struct weir_bytes xid);

// As weir_txn_prepare, and puts it out, for a caller that decides it within this process: no other
// caller can meanwhile. What it has locked besides the rows that it has changed is free after a
// restart: what weir_prepared shows then is decided before others read or write.
enum weir_code weir_txn_prepare_owned(struct weir_txn *txn,
                                      struct weir_bytes xid,
                                      struct weir_prepared_txn **out);

// As weir_txn_prepare_owned, and does not wait: it is durably prepared once weir_wait has returned
// for the `position` that is put out. Until then nothing may rely on that, another log that says
// that it is committed least of all.
enum weir_code weir_txn_begin_prepare_owned(struct weir_txn *txn,
                                            struct weir_bytes xid,
                                            struct weir_prepared_txn **out,
                                            uint64_t *position);

// Commits it; others see its changes when this returns. The handle stays.
enum weir_code weir_prepared_txn_commit(struct weir_prepared_txn *held, uint32_t durability);

// Rolls it back. The handle stays.
enum weir_code weir_prepared_txn_rollback(struct weir_prepared_txn *held);

// Gives it out of hand. Undecided, it stays prepared, and is decided by its name. NULL is fine.
enum weir_code weir_prepared_txn_free(struct weir_prepared_txn *held);

// Shows the names of all prepared transactions, those that a handle is open to as well.
enum weir_code weir_prepared(const struct weir_db *db, weir_visit visit, void *context);

// Commits a prepared transaction; `durability` is a weir_durability. WEIR_NOTHING: there is none
// of that name, or a handle is open to it.
enum weir_code weir_commit_prepared(const struct weir_db *db,
                                    struct weir_bytes xid,
                                    uint32_t durability);

// Rolls a prepared transaction back. WEIR_NOTHING: there is none of that name, or a handle is open
// to it.
enum weir_code weir_rollback_prepared(const struct weir_db *db, struct weir_bytes xid);

// Begins to write a table's rows anew, when all that write to it have ended: a caller that writes
// to it from then on gets WEIR_CHANGED and opens it again. `indexes`: all that it is to have.
// `codec`: how the new pages are to be packed, as a weir_redefinition has it.
// weir_table_fill_rewrite and weir_table_finish_rewrite come next, or weir_table_abandon_indexes;
// the next opening drops what was not finished.
enum weir_code weir_table_announce_rewrite(const struct weir_db *db,
                                           struct weir_bytes table,
                                           const struct weir_index *indexes,
                                           size_t count,
                                           struct weir_bytes codec,
                                           uint64_t lock_wait_millis);

// Makes the rows of the new table while others write to the one that there is. `in_order`: their
// keys are in the order of the old ones. `make` gets place 0. On WEIR_DUPLICATE `make` was
// asked last for a row that has another one's key, of the new index at `duplicate`, or WEIR_ROWS.
// `go_on` is asked for each row. Called again it brings in what writers have changed since.
enum weir_code weir_table_fill_rewrite(const struct weir_db *db,
                                       struct weir_bytes table,
                                       bool in_order,
                                       weir_make_row make,
                                       weir_go_on go_on,
                                       void *context,
                                       int32_t *duplicate,
                                       uint64_t lock_wait_millis);

// Brings in the rest and puts the rows that were written anew in the place of the old ones, with
// another definition; of several tables, the parts of one, all of them or none. `make` gets the
// place in the list. WEIR_DUPLICATE: as weir_table_fill_rewrite.
enum weir_code weir_table_finish_rewrite(const struct weir_db *db,
                                         const struct weir_redefinition *tables,
                                         size_t tables_count,
                                         weir_make_row make,
                                         void *context,
                                         int32_t *duplicate,
                                         uint64_t lock_wait_millis);

// Begins a walk. It is given back before its transaction ends.
enum weir_code weir_scan_open(const struct weir_table *table,
                              const struct weir_txn *txn,
                              const struct weir_range *range,
                              struct weir_scan **out);

// Gives a walk back. NULL is fine.
void weir_scan_close(struct weir_scan *scan);

// Moves on. WEIR_NOTHING: there is nothing more.
enum weir_code weir_scan_next(struct weir_scan *scan,
                              const struct weir_txn *txn,
                              struct weir_found *found);

// From now on a row that others have locked is shown as it was committed last, instead of being
// waited for, or not any more. Does nothing without a lock, and from WEIR_REPEATABLE_READ on.
enum weir_code weir_scan_semi_consistent(struct weir_scan *scan, bool semi_consistent);

// From now on of a row that does not lie whole beside its key only the first bytes are shown, or
// not any more. Does nothing with a lock, or to a walk over an index.
enum weir_code weir_scan_fronts(struct weir_scan *scan, bool fronts);

// Shows all of the row that it stands on. WEIR_NOTHING: at WEIR_READ_UNCOMMITTED, it has gone, and
// the next step goes on behind it.
enum weir_code weir_scan_whole(struct weir_scan *scan,
                               const struct weir_txn *txn,
                               struct weir_found *found);

// Looks at what it stands on once more, and waits for its lock; if that is gone, moves on.
// WEIR_NOTHING: there is nothing more.
enum weir_code weir_scan_lock_current(struct weir_scan *scan,
                                      const struct weir_txn *txn,
                                      struct weir_found *found);

// Writes the payload of a row's entry in a spatial index, an index of several entries
// (weir_index): to `room`, which has WEIR_MBR_ENTRIES_BYTES bytes; `used` gets how many it takes.
// A rectangle without points has no entries: no bytes.
enum weir_code weir_mbr_entries(const struct weir_mbr *mbr, uint8_t *room, size_t *used);

// Begins a walk over the rows that a window finds by a spatial index (weir_mbr_entries). It is
// given back before its transaction ends. WEIR_INPUT: the relation or the lock is none.
enum weir_code weir_window_open(const struct weir_window *what, struct weir_windowed **out);

// Gives a walk back. NULL is fine.
void weir_window_close(struct weir_windowed *walk);

// Finds the next row: its primary key, good until the next call. Each row is found once.
// WEIR_NOTHING: there is nothing more. The table and the transaction are the same at each call.
enum weir_code weir_window_next(struct weir_windowed *walk,
                                const struct weir_table *table,
                                const struct weir_txn *txn,
                                struct weir_bytes *primary_key);

// About how many entries of a spatial index a window would read: rows, some of them more than
// once, and some that do not fit.
enum weir_code weir_window_estimate(const struct weir_table *table,
                                    const struct weir_window *what,
                                    uint64_t *rows);

// Sets `out` to the calling thread's counts.
enum weir_code weir_thread_counts_now(struct weir_thread_counts *out);

// Shows all numbers there are: the same ones in the same order, each time.
enum weir_code weir_metrics(const struct weir_db *db, weir_visit_metric visit, void *context);

// Shows a text for a person, once.
enum weir_code weir_stats_text(const struct weir_db *db, weir_visit visit, void *context);

// Shows the explicit locks and those that wait. A row that a transaction has written is its own
// without one, until another waits for it.
enum weir_code weir_locks(const struct weir_db *db, weir_visit_lock visit, void *context);

// The version of the engine, as bytes that stay.
struct weir_bytes weir_version(void);

// Opens a table. WEIR_NOTHING: there is none.
enum weir_code weir_table_open(const struct weir_db *db,
                               struct weir_bytes name,
                               struct weir_table **out);

// Another handle of the same table, for another thread. No caller may be using this one meanwhile.
enum weir_code weir_table_clone(const struct weir_table *table, struct weir_table **out);

// Gives a table's handle back. NULL is fine.
void weir_table_close(struct weir_table *table);

// The version of its definition and the caller's bytes in it.
enum weir_code weir_table_definition(const struct weir_table *table,
                                     uint64_t *version,
                                     struct weir_bytes *definition);

// Shows its indexes with their definitions, in order, those being built included: the first is
// index 0.
enum weir_code weir_table_indexes(const struct weir_table *table,
                                  weir_visit_definition visit,
                                  void *context);

// Inserts a row and its entries: all, or nothing. On WEIR_DUPLICATE, `duplicate` says which index
// has the key already, or WEIR_ROWS for the primary key.
enum weir_code weir_table_insert(const struct weir_table *table,
                                 const struct weir_txn *txn,
                                 const struct weir_row *row,
                                 int32_t *duplicate);

// Turns one row, as this transaction has read it with a lock, into another: all, or nothing.
enum weir_code weir_table_update(const struct weir_table *table,
                                 const struct weir_txn *txn,
                                 const struct weir_row *old,
                                 const struct weir_row *new_,
                                 int32_t *duplicate);

// Removes a row, whose bytes are not looked at, and its entries: all, or nothing.
enum weir_code weir_table_delete(const struct weir_table *table,
                                 const struct weir_txn *txn,
                                 const struct weir_row *old);

// Reads a row by its primary key; `lock` is a weir_lock. With a lock the key is locked whether or
// not there is a row, and the row is the one committed last.
enum weir_code weir_table_get(struct weir_table *table,
                              const struct weir_txn *txn,
                              struct weir_bytes key,
                              uint32_t lock,
                              struct weir_bytes *row);

// As weir_table_get without a lock, of a row that does not lie whole beside its key only the first
// bytes: then it puts true into `front`.
enum weir_code weir_table_get_front(struct weir_table *table,
                                    const struct weir_txn *txn,
                                    struct weir_bytes key,
                                    struct weir_bytes *row,
                                    bool *front);

// Locks a key without NULLs of a unique index, whether or not there is a row, and reads the
// primary key of its row as committed last. WEIR_NOTHING: there is none.
enum weir_code weir_table_find_for_update(struct weir_table *table,
                                          const struct weir_txn *txn,
                                          size_t index,
                                          struct weir_bytes key,
                                          struct weir_bytes *primary_key);

// Releases the locks of the table's rows and entries, not of ranges, that a transaction has come
// to hold between two marks (weir_txn_lock_mark): of what it has read for a change and does not
// want after all. For the levels below WEIR_REPEATABLE_READ.
enum weir_code weir_table_release_locks(const struct weir_table *table,
                                        const struct weir_txn *txn,
                                        size_t from,
                                        size_t to);

// Sees to it that the table's definition stays what this handle knows until the transaction ends,
// and waits for a transaction that is changing it, as whatever changes rows or numbers does: for a
// caller that must not wait then. WEIR_CHANGED: open the table anew.
enum weir_code weir_table_lock_definition(const struct weir_table *table,
                                          const struct weir_txn *txn);

// Takes `count` auto-increment numbers in a row, none above `max`. No caller ever gets them again.
enum weir_code weir_table_take_numbers(const struct weir_table *table,
                                       const struct weir_txn *txn,
                                       uint64_t count,
                                       uint64_t max,
                                       uint64_t *first);

// Sees to it that all auto-increment numbers from now on are above `used`. `max` is the greatest
// that the column can hold: the fewer are left, the smaller are the gaps that a crash leaves.
enum weir_code weir_table_pass_number(const struct weir_table *table,
                                      const struct weir_txn *txn,
                                      uint64_t used,
                                      uint64_t max);

// The auto-increment number that would be given out next.
enum weir_code weir_table_next_number(const struct weir_table *table, uint64_t *next);

// Goes on with `next`, also if it is lower: for a table that holds no number from there on.
enum weir_code weir_table_reset_numbers(const struct weir_table *table, uint64_t next);

// A primary key for a row that has none of its own: 8 bytes, put to `out`.
enum weir_code weir_table_take_row_id(const struct weir_table *table,
                                      const struct weir_txn *txn,
                                      uint8_t *out);

// About how many rows (WEIR_ROWS) or entries of an index lie from `from` on and, if `to` is not
// NULL, below `to`.
enum weir_code weir_table_estimate(const struct weir_table *table,
                                   int32_t index,
                                   struct weir_bytes from,
                                   const struct weir_bytes *to,
                                   uint64_t *rows,
                                   uint32_t *kind);

// About how many pages the tree of the rows (WEIR_ROWS) or of an index has: exact for a small one,
// but for long values.
enum weir_code weir_table_size(const struct weir_table *table,
                               int32_t index,
                               struct weir_size *size);

// The key in the tree of the rows (WEIR_ROWS) or of an index that lies about `nth` of `of` equal
// distances into it; of an index, the primary key may follow the index key. WEIR_NOTHING: there is
// none there.
enum weir_code weir_table_key_at(struct weir_table *table,
                                 int32_t index,
                                 uint32_t nth,
                                 uint32_t of,
                                 struct weir_bytes *key);

// Samples all trees of the table by walking them once. Puts out the number of rows met.
enum weir_code weir_table_analyze(const struct weir_table *table, uint64_t *rows);

// Counts the rows that the transaction sees.
enum weir_code weir_table_count(const struct weir_table *table,
                                const struct weir_txn *txn,
                                uint64_t *rows);

// Compares all indexes with the rows, as the transaction sees them. Each problem is shown, up to a
// hundred; WEIR_DAMAGED if there was one. `go_on` is asked at each row and entry.
enum weir_code weir_table_check(const struct weir_table *table,
                                const struct weir_txn *txn,
                                weir_make_entry make,
                                weir_visit visit,
                                weir_go_on go_on,
                                void *context);

// Opens a tree by its name, and makes it if need be and `make` says so. WEIR_NOTHING: there is
// none.
enum weir_code weir_tree_open(const struct weir_db *db,
                              struct weir_bytes name,
                              bool make,
                              struct weir_tree **out);

// Has pages of a tree packed by another codec from their next write on: "none", "lz4", "zstd", or
// "" as the store chooses. Where pages are kept in place (`weir_packs_pages`) it is kept, for a
// copy that packs, and has no effect. Durable when it returns. WEIR_NOTHING: there is no such
// tree.
enum weir_code weir_tree_set_codec(const struct weir_db *db,
                                   struct weir_bytes name,
                                   struct weir_bytes codec);

// Whether pages are packed, so that a codec has an effect: in segments they are, in place not.
enum weir_code weir_packs_pages(const struct weir_db *db, bool *out);

// Gives a tree's handle back. NULL is fine.
void weir_tree_close(struct weir_tree *tree);

// Drops a tree; no caller may use it any more. WEIR_NOTHING: there was none.
enum weir_code weir_tree_drop(const struct weir_db *db, struct weir_bytes name);

// Shows the names of all trees, in order, those of tables included.
enum weir_code weir_tree_names(const struct weir_db *db, weir_visit visit, void *context);

// Reads the value at a key; `lock` is a weir_lock. Without a transaction (NULL) it reads what is
// committed and locks nothing; the bytes are good until this thread's next such read. With one:
// until its next read through a tree.
enum weir_code weir_tree_get(const struct weir_tree *tree,
                             const struct weir_txn *txn,
                             struct weir_bytes key,
                             uint32_t lock,
                             struct weir_bytes *value);

// Inserts a row or replaces its value, by a transaction.
enum weir_code weir_tree_put(const struct weir_tree *tree,
                             const struct weir_txn *txn,
                             struct weir_bytes key,
                             struct weir_bytes value);

// Inserts a row, by a transaction. WEIR_DUPLICATE: there is one.
enum weir_code weir_tree_insert(const struct weir_tree *tree,
                                const struct weir_txn *txn,
                                struct weir_bytes key,
                                struct weir_bytes value);

// Removes a row, by a transaction. WEIR_NOTHING: there was none.
enum weir_code weir_tree_delete(const struct weir_tree *tree,
                                const struct weir_txn *txn,
                                struct weir_bytes key);

// Fills an empty tree from sorted entries: all or nothing, durable when it returns.
enum weir_code weir_tree_bulk_load(const struct weir_tree *tree,
                                   weir_next_entry next,
                                   void *context,
                                   uint64_t *count);

// Puts one row and makes it durable, without a transaction.
enum weir_code weir_tree_put_now(const struct weir_tree *tree,
                                 struct weir_bytes key,
                                 struct weir_bytes value,
                                 uint32_t durability);

// Begins a transaction; it costs nothing until it does something. `isolation` is a weir_isolation;
// a lock is waited for at most `lock_wait_millis`, 0 for not at all.
enum weir_code weir_txn_begin(const struct weir_db *db,
                              uint32_t isolation,
                              uint64_t lock_wait_millis,
                              struct weir_txn **out);

// Commits; others see the changes when it returns, which it does when they are as durable as
// `durability`, a weir_durability, says. The handle is gone, whatever is returned.
enum weir_code weir_txn_commit(struct weir_txn *txn, uint32_t durability);

// Commits, and does not wait: others see the changes when it returns, and they are durable when
// weir_wait has returned for the `position` that is put out. The handle is gone.
enum weir_code weir_txn_commit_visible(struct weir_txn *txn, uint64_t *position);

// Waits until a commit is as durable as asked. Commits become durable in their order.
enum weir_code weir_wait(const struct weir_db *db, uint64_t position, uint32_t durability);

// Waits until the device has a commit, which a flush of the device's makes durable then, for
// whichever file (weir_is_synced_with). WEIR_WRITTEN promises less: the system's cache may keep
// it.
enum weir_code weir_wait_for_device(const struct weir_db *db, uint64_t position);

// Whether the sync of a file elsewhere, which only grows, also makes durable whatever of the log
// the device had (weir_wait_for_device) before it grew; and after a power failure the
// file is not found longer without it. `device` is the st_dev of that file. false where no caller
// can tell.
bool weir_is_synced_with(const struct weir_db *db, uint64_t device);

// Says that such a sync, begun after weir_wait_for_device had returned for `position`, has gone
// well.
enum weir_code weir_synced_by_another(const struct weir_db *db, uint64_t position);

// Has `then` called, once, when a commit (its `position`, as weir_txn_commit_visible puts it out)
// is on stable storage. The calling thread calls it before this returns if that is so already, or
// if no other thread waits for a commit, so that nothing is won by leaving it to another thread;
// otherwise a thread of the engine's does, for many at a time. Not called if anything but WEIR_OK
// is returned.
enum weir_code weir_when_durable(const struct weir_db *db,
                                 uint64_t position,
                                 weir_durable then,
                                 void *context);

// Rolls everything back. The handle is gone, whatever is returned.
enum weir_code weir_txn_rollback(struct weir_txn *txn);

// Takes the snapshot now that the first read would take.
enum weir_code weir_txn_take_snapshot(const struct weir_txn *txn);

// Begins a statement: at WEIR_READ_COMMITTED, all its reads without locks come from one snapshot
// taken now. An interruption that came too late for the statement before is forgotten.
enum weir_code weir_txn_begin_statement(const struct weir_txn *txn);

// Gives the snapshot of the statement up, so that it holds back no cleaning.
enum weir_code weir_txn_end_statement(const struct weir_txn *txn);

// How long it waits for a lock from now on.
enum weir_code weir_txn_set_lock_wait(const struct weir_txn *txn, uint64_t millis);

// At WEIR_REPEATABLE_READ: whether a write, or a read that locks, of a row that another
// transaction has changed since the snapshot fails with WEIR_CONFLICT from now on, as at
// WEIR_SNAPSHOT; but the snapshot is that of the first read without a lock, and before that
// nothing is too new.
enum weir_code weir_txn_set_first_updater_wins(const struct weir_txn *txn, bool wins);

// Whether it has ended: a deadlock may have ended it. It is to be given back by weir_txn_rollback
// then.
bool weir_txn_has_ended(const struct weir_txn *txn);

// Puts out a point for weir_table_release_locks.
enum weir_code weir_txn_lock_mark(const struct weir_txn *txn, size_t *out);

// Makes a point to go back to. Later ones of a transaction have greater numbers; no other
// transaction has the same.
enum weir_code weir_txn_savepoint(const struct weir_txn *txn, uint64_t *out);

// Rolls back what was changed since the point, which is kept; later ones are gone. Explicit locks
// are kept, too. WEIR_INPUT for a point that is gone, or of another transaction: nothing is rolled
// back.
enum weir_code weir_txn_rollback_to(const struct weir_txn *txn, uint64_t savepoint);

// Forgets a savepoint; others stay. WEIR_INPUT: the transaction does not have it.
enum weir_code weir_txn_release(const struct weir_txn *txn, uint64_t savepoint);

// Ends the wait for a lock of a transaction, or its next one in this statement: the call that
// waits fails with WEIR_INTERRUPTED. Any thread may call it while another one uses the
// transaction.
enum weir_code weir_txn_interrupt(const struct weir_txn *txn);

// The transaction's number in the engine, as weir_locks shows it; 0 before it has locked or
// changed anything. Any thread may ask while another one uses the transaction.
uint64_t weir_txn_number(const struct weir_txn *txn);

// Copies what the transaction sees, without its own changes, into a new database in a directory
// where there is none: whole and closed when this returns, while all transactions go on. Prepared
// transactions are not in it.
enum weir_code weir_txn_copy(const struct weir_txn *txn, struct weir_bytes directory);

// Reports all waits for locks from now on, until the database is closed. Any thread may call
// the hook, with `context`. Only once for a database.
enum weir_code weir_on_wait(const struct weir_db *db, weir_wait_hook hook, void *context);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* WEIR_H */
