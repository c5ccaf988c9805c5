// What no program should give to the interface, from C and from C++: each call is refused with a code and words, and
// nothing is lost. Built and run by tests/example.rs.
// For fork and kill, where the compiler is held to C11.
#define _POSIX_C_SOURCE 200809L
#include "hostile.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

// Every handle may be missing.
static void no_handles(void) {
    weir_bytes value, none = some(NULL, 0);
    uint64_t number;
    weir_tree *tree;
    weir_txn *txn;
    weir_cursor *cursor;
    weir_prepared_txn *held;
    REFUSED(weir_open(text("x"), NULL, NULL));
    REFUSED(weir_close(NULL));
    REFUSED(weir_sync(NULL));
    REFUSED(weir_checkpoint(NULL));
    REFUSED(weir_check(NULL, NULL, NULL));
    REFUSED(weir_set_log_bytes(NULL, 1 << 20));
    REFUSED(weir_set_recovery_seconds(NULL, 1));
    REFUSED(weir_space(NULL, &number, &number));
    REFUSED(weir_tree_open(NULL, text("t"), true, &tree));
    REFUSED(weir_tree_drop(NULL, text("t")));
    REFUSED(weir_tree_names(NULL, count, NULL));
    REFUSED(weir_tree_get(NULL, NULL, none, WEIR_LOCK_NONE, &value));
    REFUSED(weir_tree_put(NULL, NULL, none, none));
    REFUSED(weir_tree_insert(NULL, NULL, none, none));
    REFUSED(weir_tree_delete(NULL, NULL, none));
    REFUSED(weir_tree_put_now(NULL, none, none, WEIR_LAZY));
    REFUSED(weir_tree_bulk_load(NULL, NULL, NULL, &number));
    REFUSED(weir_txn_begin(NULL, WEIR_SNAPSHOT, 0, &txn));
    REFUSED(weir_txn_commit(NULL, WEIR_LAZY));
    REFUSED(weir_txn_commit_visible(NULL, &number));
    REFUSED(weir_txn_rollback(NULL));
    REFUSED(weir_txn_take_snapshot(NULL));
    REFUSED(weir_txn_savepoint(NULL, &number));
    REFUSED(weir_txn_rollback_to(NULL, 1));
    REFUSED(weir_txn_release(NULL, 1));
    REFUSED(weir_txn_interrupt(NULL));
    REFUSED(weir_txn_set_lock_wait(NULL, 1));
    REFUSED(weir_txn_prepare(NULL, text("x")));
    REFUSED(weir_txn_prepare_owned(NULL, text("x"), &held));
    REFUSED(weir_txn_copy(NULL, text("x")));
    REFUSED(weir_prepared(NULL, count, NULL));
    REFUSED(weir_prepared_txn_commit(NULL, WEIR_LAZY));
    REFUSED(weir_prepared_txn_rollback(NULL));
    REFUSED(weir_commit_prepared(NULL, text("x"), WEIR_LAZY));
    REFUSED(weir_rollback_prepared(NULL, text("x")));
    REFUSED(weir_wait(NULL, 1, WEIR_SYNCED));
    REFUSED(weir_batch_new(NULL));
    REFUSED(weir_batch_put(NULL, NULL, none, none));
    REFUSED(weir_batch_delete(NULL, NULL, none));
    REFUSED(weir_batch_write(NULL, NULL, WEIR_LAZY));
    REFUSED(weir_cursor_open(NULL, NULL, WEIR_LOCK_NONE, none, NULL, &cursor));
    REFUSED(weir_cursor_first(NULL, NULL));
    REFUSED(weir_cursor_row(NULL, &value, &value));
    REFUSED(weir_table_open(NULL, text("t"), NULL));
    REFUSED(weir_table_create(NULL, text("t"), none, NULL, 0, none));
    weir_tree_close(NULL);
    weir_batch_free(NULL);
    weir_cursor_close(NULL);
    weir_scan_close(NULL);
    weir_table_close(NULL);
    weir_copy_close(NULL);
    weir_stop_serving(NULL);
}

// No database comes of these, and what is there stays.
static void no_database(const char *directory) {
    char file[4096], below[4200], long_name[5000];
    weir_options options;
    weir_db *db;
    FILE *stream;
    REFUSED(weir_open(some("a\xff", 2), NULL, &db));
    REFUSED(weir_open(some(NULL, 5), NULL, &db));
    REFUSED(weir_open(some("x", (size_t)-1), NULL, &db));
    EXPECT(weir_open(text("/proc/weir"), NULL, &db) == WEIR_OK ? WEIR_OK : WEIR_IO, WEIR_IO);
    memset(long_name, 'x', sizeof long_name);
    EXPECT(weir_open(some(long_name, sizeof long_name), NULL, &db), WEIR_IO);
    snprintf(file, sizeof file, "%s.file", directory);
    stream = fopen(file, "w");
    if (!stream || fputs("not a directory", stream) < 0 || fclose(stream)) exit(3);
    REFUSED(weir_open(text(file), NULL, &db));
    snprintf(below, sizeof below, "%s/below", file);
    EXPECT(weir_open(text(below), NULL, &db) == WEIR_OK ? WEIR_OK : WEIR_IO, WEIR_IO);
    memset(&options, 0, sizeof options);
    options.create = WEIR_NEVER;
    REFUSED(weir_open(text(directory), &options, &db));
    options.create = 99;
    REFUSED(weir_open(text(directory), &options, &db));
    memset(&options, 0, sizeof options);
    options.store = 99;
    REFUSED(weir_open(text(directory), &options, &db));
    memset(&options, 0, sizeof options);
    options.page_bytes = 5000;
    REFUSED(weir_open(text(directory), &options, &db));
    options.page_bytes = UINT64_MAX;
    REFUSED(weir_open(text(directory), &options, &db));
    memset(&options, 0, sizeof options);
    options.memory_bytes = 1;
    REFUSED(weir_open(text(directory), &options, &db));
    memset(&options, 0, sizeof options);
    options.log_bytes = UINT64_MAX;
    REFUSED(weir_open(text(directory), &options, &db));
}

struct entries {
    int given;
    int which;
};

// A load that goes wrong at its third entry, in one of several ways.
static bool wrong_entry(void *context, weir_bytes *key, weir_bytes *value) {
    static const char keys[] = "abcdef";
    struct entries *entries = (struct entries *)context;
    int at = entries->given++;
    *key = some(keys + at, 1);
    *value = text("v");
    if (at < 2) return true;
    switch (entries->which) {
        case 0: *key = some(NULL, 7); break;
        case 1: *value = some(NULL, 7); break;
        case 2: *key = text("a"); break;
        case 3: *value = some("v", (size_t)-1); break;
        default: return false;
    }
    return true;
}

static void keys_and_values(const weir_db *db, const weir_tree *tree) {
    static uint8_t large[1 << 20];
    weir_bytes value, empty = some(NULL, 0);
    weir_txn *txn;
    weir_batch *batch;
    weir_cursor *cursor;
    weir_bytes to = some(NULL, 3);
    uint64_t rows;
    struct entries entries;
    weir_tree *loaded;
    DO(weir_tree_put_now(tree, empty, empty, WEIR_LAZY));
    EXPECT(weir_tree_get(tree, NULL, empty, WEIR_LOCK_NONE, &value), WEIR_OK);
    if (value.len != 0) exit(4);
    DO(weir_txn_begin(db, WEIR_SNAPSHOT, 0, &txn));
    DO(weir_batch_new(&batch));
    for (int which = 0; which < 4; ++which) {
        weir_bytes wrong = which == 0   ? some(large, sizeof large)
                           : which == 1 ? some(large, 4000)
                           : which == 2 ? some(NULL, 1)
                                        : some(large, (size_t)-1);
        REFUSED(weir_tree_put_now(tree, wrong, text("v"), WEIR_LAZY));
        REFUSED(weir_tree_put(tree, txn, wrong, text("v")));
        REFUSED(weir_tree_insert(tree, txn, wrong, text("v")));
        REFUSED(weir_tree_delete(tree, txn, wrong));
        if (which < 2) continue;
        REFUSED(weir_tree_get(tree, txn, wrong, WEIR_LOCK_NONE, &value));
        REFUSED(weir_tree_get(tree, NULL, wrong, WEIR_LOCK_NONE, &value));
        REFUSED(weir_tree_put_now(tree, text("k"), wrong, WEIR_LAZY));
        REFUSED(weir_tree_put(tree, txn, text("k"), wrong));
        REFUSED(weir_batch_put(batch, tree, wrong, text("v")));
        REFUSED(weir_batch_put(batch, tree, text("k"), wrong));
        REFUSED(weir_batch_delete(batch, tree, wrong));
        REFUSED(weir_cursor_open(tree, txn, WEIR_LOCK_NONE, wrong, NULL, &cursor));
    }
    // One that is too long is found when the batch is written, and nothing of it is.
    DO(weir_batch_put(batch, tree, text("beside"), text("v")));
    DO(weir_batch_put(batch, tree, some(large, 4000), text("v")));
    REFUSED(weir_batch_write(db, batch, WEIR_LAZY));
    weir_batch_free(batch);
    EXPECT(weir_tree_get(tree, NULL, text("beside"), WEIR_LOCK_NONE, &value), WEIR_NOTHING);
    // Modes that are none, and places that are missing.
    REFUSED(weir_tree_get(tree, txn, text("k"), 77, &value));
    REFUSED(weir_tree_get(tree, txn, empty, WEIR_LOCK_NONE, NULL));
    REFUSED(weir_cursor_open(tree, txn, 77, empty, NULL, &cursor));
    REFUSED(weir_cursor_open(tree, txn, WEIR_LOCK_NONE, empty, &to, &cursor));
    REFUSED(weir_tree_put_now(tree, text("k"), text("v"), 77));
    REFUSED(weir_wait(db, UINT64_MAX, WEIR_SYNCED));
    REFUSED(weir_tree_open(db, some("\xff", 1), true, &loaded));
    REFUSED(weir_tree_open(db, empty, true, &loaded));
    REFUSED(weir_tree_open(db, some(large, 256), true, &loaded));
    // Bounds the wrong way round: no rows.
    to = text("a");
    DO(weir_cursor_open(tree, txn, WEIR_LOCK_NONE, text("b"), &to, &cursor));
    EXPECT(weir_cursor_first(cursor, txn), WEIR_NOTHING);
    EXPECT(weir_cursor_last(cursor, txn), WEIR_NOTHING);
    EXPECT(weir_cursor_seek(cursor, txn, text("c")), WEIR_NOTHING);
    EXPECT(weir_cursor_seek_before(cursor, txn, text("a")), WEIR_NOTHING);
    REFUSED(weir_cursor_seek(cursor, txn, some(NULL, 1)));
    DO(weir_cursor_row(cursor, &value, &value));
    if (value.len != 0) exit(5);
    weir_cursor_close(cursor);
    DO(weir_tree_put(tree, txn, text("it goes on"), text("v")));
    DO(weir_txn_commit(txn, WEIR_LAZY));
    // Loads: all or nothing.
    DO(weir_tree_open(db, text("loaded"), true, &loaded));
    for (entries.which = 0; entries.which < 4; ++entries.which) {
        entries.given = 0;
        REFUSED(weir_tree_bulk_load(loaded, wrong_entry, &entries, &rows));
        EXPECT(weir_tree_get(loaded, NULL, text("a"), WEIR_LOCK_NONE, &value), WEIR_NOTHING);
    }
    entries.given = 0;
    REFUSED(weir_tree_bulk_load(loaded, wrong_entry, &entries, NULL));
    EXPECT(weir_tree_get(loaded, NULL, text("a"), WEIR_LOCK_NONE, &value), WEIR_NOTHING);
    DO(weir_tree_bulk_load(loaded, wrong_entry, &entries, &rows));
    if (rows != 2) exit(6);
    weir_tree_close(loaded);
}

static void transactions(const weir_db *db, const weir_tree *tree) {
    weir_txn *txn, *other;
    weir_prepared_txn *held;
    weir_bytes value;
    uint64_t point, mark;
    int prepared = 0;
    static char name[300];
    REFUSED(weir_txn_begin(db, 99, 0, &txn));
    REFUSED(weir_txn_begin(db, WEIR_SNAPSHOT, 0, NULL));
    DO(weir_txn_begin(db, WEIR_SNAPSHOT, 0, &txn));
    DO(weir_txn_begin(db, WEIR_SNAPSHOT, 0, &other));
    DO(weir_txn_savepoint(other, &point));
    DO(weir_tree_put(tree, txn, text("p"), text("v")));
    REFUSED(weir_txn_rollback_to(txn, point));
    REFUSED(weir_txn_rollback_to(txn, UINT64_MAX));
    DO(weir_txn_savepoint(txn, &mark));
    DO(weir_txn_rollback_to(txn, mark));
    DO(weir_txn_rollback(other));
    // The handle is gone, and with it what it did: nothing is half committed or half prepared.
    REFUSED(weir_txn_commit(txn, 77));
    DO(weir_txn_begin(db, WEIR_SNAPSHOT, 0, &txn));
    DO(weir_tree_put(tree, txn, text("p"), text("v")));
    REFUSED(weir_txn_commit_visible(txn, NULL));
    DO(weir_txn_begin(db, WEIR_SNAPSHOT, 0, &txn));
    DO(weir_tree_put(tree, txn, text("p"), text("v")));
    REFUSED(weir_txn_prepare_owned(txn, text("x"), NULL));
    memset(name, 'x', sizeof name);
    for (size_t len = 0; len <= 300; len += 300) {
        DO(weir_txn_begin(db, WEIR_SNAPSHOT, 0, &txn));
        DO(weir_tree_put(tree, txn, text("p"), text("v")));
        REFUSED(weir_txn_prepare(txn, some(name, len)));
    }
    DO(weir_txn_begin(db, WEIR_SNAPSHOT, 0, &txn));
    DO(weir_tree_put(tree, txn, text("p"), text("v")));
    REFUSED(weir_txn_prepare_owned(txn, some(NULL, 3), &held));
    DO(weir_prepared(db, count, &prepared));
    if (prepared != 0) exit(7);
    EXPECT(weir_tree_get(tree, NULL, text("p"), WEIR_LOCK_NONE, &value), WEIR_NOTHING);
}

static int32_t newest_key(void *context, uint32_t key_id, uint32_t *version) {
    (void)context;
    *version = 3;
    return key_id == 7 ? 0 : 1;
}

static int32_t the_key(void *context, uint32_t key_id, uint32_t version, uint8_t *key, size_t *key_bytes) {
    if (key_id != 7 || version != 3 || *key_bytes < 32) return 1;
    memset(key, *(const char *)context, 32);
    *key_bytes = *(const char *)context == 'l' ? 33 : 32;
    return 0;
}

// A database that is encrypted, and one whose keys are missing, wrong or no keys.
static void keys(const char *directory) {
    char dir[4200], fill = 'a';
    weir_key_provider provider = {&fill, newest_key, the_key};
    weir_options options;
    weir_db *db;
    memset(&options, 0, sizeof options);
    snprintf(dir, sizeof dir, "%s.encrypted", directory);
    options.key_id = 7;
    options.keys = &provider;
    DO(weir_open(text(dir), &options, &db));
    DO(weir_close(db));
    REFUSED(weir_open(text(dir), NULL, &db));
    if (!strstr(weir_message(), "key 7, version 3")) {
        fprintf(stderr, "without a key: %s\n", weir_message());
        exit(1);
    }
    for (const char *other = "bl"; *other; other++) {
        fill = *other;
        REFUSED(weir_open(text(dir), &options, &db));
    }
    fill = 'a';
    provider.key = NULL;
    REFUSED(weir_open(text(dir), &options, &db));
    provider.key = the_key;
    DO(weir_open(text(dir), &options, &db));
    DO(weir_close(db));
    snprintf(dir, sizeof dir, "%s.none", directory);
    options.key_id = 8;
    REFUSED(weir_open(text(dir), &options, &db));
}

// A backup in memory: written up to a bound, read with what goes wrong on the way.
typedef struct {
    uint8_t *bytes;
    size_t len, bound, at;
    int64_t says;
} memory;

static int32_t keep(void *context, weir_bytes bytes) {
    memory *to = (memory *)context;
    if (to->len + bytes.len > to->bound) return 28; // ENOSPC
    memcpy(to->bytes + to->len, bytes.data, bytes.len);
    to->len += bytes.len;
    return 0;
}

static int64_t give_back(void *context, uint8_t *buffer, size_t room) {
    memory *from = (memory *)context;
    size_t len = from->len - from->at < room ? from->len - from->at : room;
    if (from->says) return from->says;
    memcpy(buffer, from->bytes + from->at, len);
    from->at += len;
    return (int64_t)len;
}

static bool not_further(void *context, const weir_backup_progress *at) {
    (void)context;
    return at->pages_of == 0;
}

static bool not_restored(void *context, uint64_t bytes) {
    (void)context;
    return bytes == 0;
}

static weir_source from_its_beginning(memory *backup) {
    weir_source source = {backup, give_back};
    backup->at = 0;
    return source;
}

static int32_t cut_off_at(void *context, uint64_t offset) {
    memory *to = (memory *)context;
    if (offset > to->len) return 22; // EINVAL
    to->len = offset;
    return 0;
}

static int32_t cannot_be_cut(void *context, uint64_t offset) {
    (void)context;
    return offset > 0 ? 30 : 0; // EROFS
}

// One that was cut off, gone on with: without what is needed, of something else, again and again.
static void gone_on_with(weir_db *db, const memory *whole) {
    static uint8_t part[64 << 20];
    memory there = {part, whole->len * 2 / 3, sizeof part, 0, 0};
    weir_sink sink = {&there, keep}, no_sink = {NULL, NULL};
    weir_source none = {NULL, NULL}, since = {NULL, NULL};
    weir_backup_options options;
    weir_backed_up done;
    memset(&options, 0, sizeof options);
    memcpy(part, whole->bytes, there.len);
    REFUSED(weir_backup_resume(NULL, from_its_beginning(&there), cut_off_at, sink, NULL, NULL, NULL, &done));
    REFUSED(weir_backup_resume(db, none, cut_off_at, sink, NULL, NULL, NULL, &done));
    REFUSED(weir_backup_resume(db, from_its_beginning(&there), NULL, sink, NULL, NULL, NULL, &done));
    REFUSED(weir_backup_resume(db, from_its_beginning(&there), cut_off_at, no_sink, NULL, NULL, NULL, &done));
    options.since = &since;
    since = from_its_beginning(&there);
    REFUSED(weir_backup_resume(db, from_its_beginning(&there), cut_off_at, sink, &options, NULL, NULL, &done));
    EXPECT(weir_backup_resume(db, from_its_beginning(&there), cannot_be_cut, sink, NULL, NULL, NULL, &done), WEIR_IO);
    EXPECT(weir_backup_resume(db, from_its_beginning(&there), cut_off_at, sink, NULL, not_further, NULL, &done),
           WEIR_INTERRUPTED);
    DO(weir_backup_resume(db, from_its_beginning(&there), cut_off_at, sink, NULL, NULL, NULL, &done));
    if (done.bytes != there.len || done.pages == 0 || done.position == 0) exit(9);
    DO(weir_backup_verify(from_its_beginning(&there), NULL, 0, NULL, NULL));
    // Nothing is missing, or the end alone.
    memset(&done, 0, sizeof done);
    DO(weir_backup_resume(db, from_its_beginning(&there), cannot_be_cut, sink, NULL, NULL, NULL, &done));
    if (done.bytes != there.len) exit(10);
    there.len -= 1;
    DO(weir_backup_resume(db, from_its_beginning(&there), cut_off_at, sink, NULL, NULL, NULL, &done));
    DO(weir_backup_verify(from_its_beginning(&there), NULL, 0, NULL, NULL));
    part[3] ^= 1;
    REFUSED(weir_backup_resume(db, from_its_beginning(&there), cut_off_at, sink, NULL, NULL, NULL, &done));
    there.len = 50;
    part[3] ^= 1;
    EXPECT(weir_backup_resume(db, from_its_beginning(&there), cut_off_at, sink, NULL, NULL, NULL, &done),
           WEIR_DAMAGED);
}

// A tree with holes: ended after each leaf, gone on with, and to the end.
static bool not_past_a_leaf(void *context, const weir_compacted *at) {
    (void)context;
    return at->leaves == 0;
}

static void compacted(weir_db *db) {
    weir_tree *tree;
    weir_batch *batch;
    weir_compact_options options;
    weir_compacted done, whole;
    weir_bytes value;
    char key[300];
    uint8_t from[700];
    unsigned n, pieces = 0;
    weir_code code;
    memset(&options, 0, sizeof options);
    memset(key, 'k', sizeof key);
    options.bytes_per_second = UINT64_MAX;
    REFUSED(weir_tree_compact(NULL, &options, NULL, NULL, &done));
    DO(weir_tree_open(db, text("compacted"), true, &tree));
    DO(weir_batch_new(&batch));
    for (n = 0; n < 2000; n++) {
        snprintf(key, sizeof key, "%05u", n * 7919 % 100003);
        DO(weir_batch_put(batch, tree, some((uint8_t *)key, 200), text("v")));
    }
    DO(weir_batch_write(db, batch, WEIR_LAZY));
    for (n = 0; n < 2000; n++) {
        snprintf(key, sizeof key, "%05u", n * 7919 % 100003);
        if (n % 10) DO(weir_batch_delete(batch, tree, some((uint8_t *)key, 200)));
    }
    DO(weir_batch_write(db, batch, WEIR_LAZY));
    weir_batch_free(batch);
    options.from = some(NULL, 3);
    REFUSED(weir_tree_compact(tree, &options, NULL, NULL, &done));
    options.from = some(from, 0);
    do {
        code = weir_tree_compact(tree, &options, not_past_a_leaf, NULL, &done);
        if (code == WEIR_INTERRUPTED && (done.is_whole || done.next.len > sizeof from)) exit(11);
        if (code == WEIR_INTERRUPTED) memcpy(from, done.next.data, done.next.len);
        options.from = some(from, done.next.len);
        pieces++;
    } while (code == WEIR_INTERRUPTED);
    if (code != WEIR_OK || !done.is_whole || pieces < 3) exit(12);
    DO(weir_tree_compact(tree, NULL, NULL, NULL, NULL));
    options.from = some(from, 0);
    DO(weir_tree_compact(tree, &options, NULL, NULL, &whole));
    if (whole.leaves != pieces || whole.pages_freed != 0) exit(13);
    for (n = 0; n < 2000; n += 10) {
        snprintf(key, sizeof key, "%05u", n * 7919 % 100003);
        DO(weir_tree_get(tree, NULL, some((uint8_t *)key, 200), WEIR_LOCK_NONE, &value));
    }
    weir_tree_close(tree);
}

// Backups that fail, are ended, cut, changed, of another database, or that nothing is missing from.
static void backups(weir_db *db, const char *directory) {
    static uint8_t all[2][64 << 20];
    memory full = {all[0], 0, 1000, 0, 0}, later = {all[1], 0, sizeof all[1], 0, 0};
    weir_sink sink = {&full, keep}, no_sink = {NULL, NULL}, second = {&later, keep};
    weir_source sources[2], none = {NULL, NULL}, *since = &sources[0];
    weir_backup_options options;
    weir_restore_options to;
    weir_backed_up done;
    weir_tree *tree;
    weir_bytes value;
    weir_db *restored;
    char dir[4200];
    memset(&options, 0, sizeof options);
    memset(&to, 0, sizeof to);
    REFUSED(weir_backup(NULL, sink, NULL, NULL, NULL, &done));
    REFUSED(weir_backup(db, no_sink, NULL, NULL, NULL, &done));
    EXPECT(weir_backup(db, sink, NULL, NULL, NULL, &done), WEIR_DISK_FULL);
    full.len = 0;
    full.bound = sizeof all[0];
    EXPECT(weir_backup(db, sink, NULL, not_further, NULL, &done), WEIR_INTERRUPTED);
    full.len = 0;
    DO(weir_backup(db, sink, NULL, NULL, NULL, &done));
    if (done.bytes != full.len || done.pages == 0 || done.position == 0) exit(8);
    gone_on_with(db, &full);
    // Since one that is none, that cannot be read, that has no function; since the one that there is.
    options.since = since;
    full.bytes[3] ^= 1;
    *since = from_its_beginning(&full);
    REFUSED(weir_backup(db, second, &options, NULL, NULL, NULL));
    full.bytes[3] ^= 1;
    full.says = -5;
    *since = from_its_beginning(&full);
    EXPECT(weir_backup(db, second, &options, NULL, NULL, NULL), WEIR_IO);
    full.says = 0;
    *since = none;
    REFUSED(weir_backup(db, second, &options, NULL, NULL, NULL));
    DO(weir_tree_open(db, text("backed up"), true, &tree));
    DO(weir_tree_put_now(tree, text("later"), text("v"), WEIR_SYNCED));
    weir_tree_close(tree);
    *since = from_its_beginning(&full);
    DO(weir_backup(db, second, &options, NULL, NULL, NULL));
    // Verified: whole, cut, changed, with more than there was room for.
    DO(weir_backup_verify(from_its_beginning(&full), NULL, 0, NULL, NULL));
    EXPECT(weir_backup_verify(from_its_beginning(&full), NULL, 0, not_restored, NULL), WEIR_INTERRUPTED);
    REFUSED(weir_backup_verify(none, NULL, 0, NULL, NULL));
    full.len -= 1;
    EXPECT(weir_backup_verify(from_its_beginning(&full), NULL, 0, NULL, NULL), WEIR_DAMAGED);
    full.len += 1;
    full.bytes[full.len / 2] ^= 1;
    EXPECT(weir_backup_verify(from_its_beginning(&full), NULL, 0, NULL, NULL), WEIR_DAMAGED);
    full.bytes[full.len / 2] ^= 1;
    full.says = INT64_MIN; // no errno
    EXPECT(weir_backup_verify(from_its_beginning(&full), NULL, 0, NULL, NULL), WEIR_IO);
    full.says = 1 << 30;
    EXPECT(weir_backup_verify(from_its_beginning(&full), NULL, 0, NULL, NULL), WEIR_IO);
    full.says = 0;
    // Restored: from none, from one that lacks its base, to two bounds, to where something is; ended.
    snprintf(dir, sizeof dir, "%s.restored", directory);
    REFUSED(weir_restore(text(dir), NULL, 0, NULL, NULL, NULL));
    sources[0] = from_its_beginning(&later);
    REFUSED(weir_restore(text(dir), sources, 1, NULL, NULL, NULL));
    sources[0] = none;
    REFUSED(weir_restore(text(dir), sources, 1, NULL, NULL, NULL));
    sources[0] = from_its_beginning(&full);
    to.to_position = to.to_micros = 1;
    REFUSED(weir_restore(text(dir), sources, 1, &to, NULL, NULL));
    to.to_micros = 0;
    REFUSED(weir_restore(text(dir), sources, 1, &to, NULL, NULL));
    sources[0] = from_its_beginning(&full);
    EXPECT(weir_restore(text(dir), sources, 1, NULL, not_restored, NULL), WEIR_INTERRUPTED);
    sources[0] = from_its_beginning(&full);
    sources[1] = from_its_beginning(&later);
    EXPECT(weir_restore(text(directory), sources, 2, NULL, NULL, NULL), WEIR_IO); // it is open
    DO(weir_restore(text(dir), sources, 2, NULL, NULL, NULL));
    DO(weir_open(text(dir), NULL, &restored));
    DO(weir_tree_open(restored, text("t"), false, &tree));
    DO(weir_tree_get(tree, NULL, text("it goes on"), WEIR_LOCK_NONE, &value));
    weir_tree_close(tree);
    DO(weir_tree_open(restored, text("backed up"), false, &tree));
    DO(weir_tree_get(tree, NULL, text("later"), WEIR_LOCK_NONE, &value));
    weir_tree_close(tree);
    DO(weir_close(restored));
    sources[0] = from_its_beginning(&full);
    REFUSED(weir_restore(text(dir), sources, 1, NULL, NULL, NULL));
}

// A process that was forked from the one that opened a database has copies of its handles: each refuses, nothing waits for
// a thread that is not there, and nothing is changed by them, nor by their end.
static void in_a_child(weir_db *db, weir_tree *tree, weir_txn *txn, weir_txn *late, weir_cursor *cursor) {
    int problems = 0, status = 0;
    weir_bytes value;
    pid_t child = fork();
    if (child == 0) {
        alarm(60);
        EXPECT(weir_tree_get(tree, NULL, text("k"), WEIR_LOCK_NONE, &value), WEIR_CLOSED);
        if (!strstr(weir_message(), "forked")) exit(3);
        EXPECT(weir_tree_put_now(tree, text("of a child"), text("v"), WEIR_SYNCED), WEIR_CLOSED);
        EXPECT(weir_tree_put(tree, txn, text("of a child"), text("v")), WEIR_CLOSED);
        EXPECT(weir_cursor_first(cursor, txn), WEIR_CLOSED);
        weir_cursor_close(cursor);
        EXPECT(weir_txn_commit(txn, WEIR_SYNCED), WEIR_CLOSED);
        weir_txn_rollback(late);
        EXPECT(weir_sync(db), WEIR_CLOSED);
        EXPECT(weir_wait(db, 1, WEIR_SYNCED), WEIR_CLOSED);
        EXPECT(weir_checkpoint(db), WEIR_CLOSED);
        EXPECT(weir_check(db, count, &problems), WEIR_CLOSED);
        weir_tree_close(tree);
        EXPECT(weir_close(db), WEIR_CLOSED);
        exit(0);
    }
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
        fprintf(stderr, "a child: status %d\n", status);
        exit(1);
    }
}

int main(int argc, char **argv) {
    weir_options options;
    weir_db *db, *second;
    weir_tree *tree;
    weir_txn *txn, *late;
    weir_cursor *cursor;
    weir_bytes value;
    int problems = 0;
    pid_t bystander;
    if (argc != 2) return 2;
    no_handles();
    no_database(argv[1]);
    keys(argv[1]);
    memset(&options, 0, sizeof options);
    options.memory_bytes = 16 << 20;
    options.log_bytes = 4 << 20;
    options.page_bytes = 8192;
    DO(weir_open(text(argv[1]), &options, &db));
    EXPECT(weir_open(text(argv[1]), &options, &second), WEIR_IO);
    if (!strstr(weir_message(), "open already") && !strstr(weir_message(), "in use")) {
        fprintf(stderr, "a second opening: %s\n", weir_message());
        return 1;
    }
    DO(weir_tree_open(db, text("t"), true, &tree));
    keys_and_values(db, tree);
    transactions(db, tree);
    compacted(db);
    backups(db, argv[1]);
    REFUSED(weir_set_log_bytes(db, 0));
    REFUSED(weir_set_recovery_seconds(db, -1));
    DO(weir_check(db, count, &problems));
    if (problems != 0) return 1;
    // Every handle of a database that has been closed can only be given back.
    DO(weir_txn_begin(db, WEIR_SNAPSHOT, 0, &txn));
    DO(weir_txn_begin(db, WEIR_SNAPSHOT, 0, &late));
    DO(weir_tree_put(tree, txn, text("never"), text("v")));
    DO(weir_cursor_open(tree, txn, WEIR_LOCK_NONE, some(NULL, 0), NULL, &cursor));
    in_a_child(db, tree, txn, late, cursor);
    // Another one has the same open files for as long as it likes: closing gives the directory up all the same.
    bystander = fork();
    if (bystander == 0) {
        alarm(600);
        for (;;) pause();
    }
    DO(weir_close(db));
    EXPECT(weir_tree_get(tree, NULL, text("k"), WEIR_LOCK_NONE, &value), WEIR_CLOSED);
    EXPECT(weir_tree_put_now(tree, text("k"), text("v"), WEIR_LAZY), WEIR_CLOSED);
    EXPECT(weir_tree_put(tree, late, text("k"), text("v")), WEIR_CLOSED);
    EXPECT(weir_cursor_first(cursor, txn), WEIR_CLOSED);
    weir_cursor_close(cursor);
    EXPECT(weir_txn_commit(txn, WEIR_SYNCED), WEIR_CLOSED);
    weir_txn_rollback(late);
    weir_tree_close(tree);
    // And what was committed is there, nothing else.
    options.create = WEIR_NEVER;
    DO(weir_open(text(argv[1]), &options, &db));
    DO(weir_tree_open(db, text("t"), false, &tree));
    DO(weir_tree_get(tree, NULL, text("it goes on"), WEIR_LOCK_NONE, &value));
    EXPECT(weir_tree_get(tree, NULL, text("never"), WEIR_LOCK_NONE, &value), WEIR_NOTHING);
    EXPECT(weir_tree_get(tree, NULL, text("of a child"), WEIR_LOCK_NONE, &value), WEIR_NOTHING);
    kill(bystander, SIGKILL);
    weir_tree_close(tree);
    DO(weir_close(db));
    puts("all refused");
    return 0;
}
