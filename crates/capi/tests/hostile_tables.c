// As hostile.c, of tables, of handles of another database, and of a database that is only looked at. Built and run by
// tests/example.rs.
#include "hostile.h"

// Every handle, list and place for a result may be missing.
static void no_handles(void) {
    weir_bytes value, none = some(NULL, 0);
    uint64_t number;
    uint32_t kind;
    int32_t duplicate;
    size_t mark;
    float rank;
    bool is;
    uint8_t id[8];
    weir_found found;
    weir_scan *scan;
    weir_table *table;
    weir_copy *copy;
    weir_ranked *ranked;
    weir_windowed *walk;
    weir_endpoint *endpoint;
    weir_prepared_txn *held;
    weir_size size;
    weir_exported done;
    weir_source source = {NULL, NULL};
    weir_sink sink = {NULL, NULL};
    REFUSED(weir_copy_begin(NULL, &copy));
    REFUSED(weir_copy_row(NULL, NULL, NULL, &duplicate));
    REFUSED(weir_copy_finish(NULL, NULL, NULL, &duplicate, &value));
    REFUSED(weir_cursor_next(NULL, NULL));
    REFUSED(weir_cursor_prev(NULL, NULL));
    REFUSED(weir_cursor_skip_locked(NULL));
    REFUSED(weir_drop_unfinished_indexes(NULL, 0));
    REFUSED(weir_export_verify(source, NULL, NULL, NULL, &done));
    REFUSED(weir_key(NULL, &kind, &kind));
    REFUSED(weir_locks(NULL, NULL, NULL));
    REFUSED(weir_metrics(NULL, NULL, NULL));
    REFUSED(weir_on_notice(NULL, NULL, NULL));
    REFUSED(weir_on_wait(NULL, NULL, NULL));
    REFUSED(weir_packs_pages(NULL, &is));
    REFUSED(weir_ranked_at(NULL, 0, &value, &rank));
    REFUSED(weir_ranked_find(NULL, none, &rank));
    REFUSED(weir_recovery_remarks(NULL, count, NULL));
    REFUSED(weir_scan_fronts(NULL, true));
    REFUSED(weir_scan_lock_current(NULL, NULL, &found));
    REFUSED(weir_scan_next(NULL, NULL, &found));
    REFUSED(weir_scan_open(NULL, NULL, NULL, &scan));
    REFUSED(weir_scan_semi_consistent(NULL, true));
    REFUSED(weir_scan_whole(NULL, NULL, &found));
    REFUSED(weir_serve_metrics(NULL, text("127.0.0.1:0"), &endpoint));
    REFUSED(weir_set_pool_bytes(NULL, 1 << 20));
    REFUSED(weir_stats_text(NULL, count, NULL));
    REFUSED(weir_table_abandon_indexes(NULL, text("t"), 0));
    REFUSED(weir_table_add_index(NULL, text("t"), NULL, NULL, NULL, 0));
    REFUSED(weir_table_analyze(NULL, &number));
    REFUSED(weir_table_announce_indexes(NULL, text("t"), NULL, 0, none, 0));
    REFUSED(weir_table_announce_rewrite(NULL, text("t"), NULL, 0, none, 0));
    REFUSED(weir_table_check(NULL, NULL, NULL, count, NULL, NULL));
    REFUSED(weir_table_clone(NULL, &table));
    REFUSED(weir_table_add_entries(NULL, NULL, 0, NULL, 0));
    REFUSED(weir_table_count(NULL, NULL, &number));
    REFUSED(weir_table_definition(NULL, &number, &value));
    REFUSED(weir_table_delete(NULL, NULL, NULL));
    REFUSED(weir_table_drop(NULL, text("t"), 0));
    REFUSED(weir_table_drop_index(NULL, text("t"), text("i"), 0));
    REFUSED(weir_table_estimate(NULL, 0, none, NULL, &number, &kind));
    REFUSED(weir_table_export(NULL, none, sink, NULL, NULL, &done));
    REFUSED(weir_table_filled(NULL, text("t"), 0));
    REFUSED(weir_table_find_for_update(NULL, NULL, 0, none, &value));
    REFUSED(weir_table_get(NULL, NULL, none, WEIR_LOCK_NONE, &value));
    REFUSED(weir_table_get_front(NULL, NULL, none, &value, &is));
    REFUSED(weir_table_import(NULL, text("t"), source, NULL, NULL, 0, &done));
    REFUSED(weir_table_insert(NULL, NULL, NULL, &duplicate));
    REFUSED(weir_table_key_at(NULL, 0, 1, 2, &value));
    REFUSED(weir_table_lock_definition(NULL, NULL));
    REFUSED(weir_table_names(NULL, count, NULL));
    REFUSED(weir_table_next_number(NULL, &number));
    REFUSED(weir_table_pass_number(NULL, NULL, 1, 2));
    REFUSED(weir_table_redefine(NULL, NULL, 0));
    REFUSED(weir_table_release_locks(NULL, NULL, 0, 0));
    REFUSED(weir_table_rename(NULL, text("t"), text("u")));
    REFUSED(weir_table_reset_numbers(NULL, 1));
    REFUSED(weir_table_search(NULL, NULL, NULL, &ranked));
    REFUSED(weir_table_set_aside(NULL, text("t"), text("u"), 0));
    REFUSED(weir_table_set_codec(NULL, text("t"), text("lz4")));
    REFUSED(weir_table_size(NULL, 0, &size));
    REFUSED(weir_table_take_numbers(NULL, NULL, 1, 2, &number));
    REFUSED(weir_table_take_row_id(NULL, NULL, id));
    REFUSED(weir_table_truncate(NULL, text("t"), 1, 0));
    REFUSED(weir_table_update(NULL, NULL, NULL, NULL, &duplicate));
    REFUSED(weir_thread_counts_now(NULL));
    REFUSED(weir_tree_set_codec(NULL, text("t"), text("lz4")));
    REFUSED(weir_txn_begin_prepare_owned(NULL, text("x"), &held, &number));
    REFUSED(weir_txn_begin_statement(NULL));
    REFUSED(weir_txn_end_statement(NULL));
    REFUSED(weir_txn_lock_mark(NULL, &mark));
    REFUSED(weir_txn_set_first_updater_wins(NULL, true));
    REFUSED(weir_when_durable(NULL, 1, NULL, NULL));
    REFUSED(weir_window_estimate(NULL, NULL, &number));
    REFUSED(weir_window_next(NULL, NULL, NULL, &value));
    REFUSED(weir_window_open(NULL, &walk));
    REFUSED(weir_words_add(NULL, none, 0, 0, 0));
    REFUSED(weir_words_entries(NULL, &value));
    REFUSED(weir_words_new(NULL));
    if (weir_txn_number(NULL) != 0) exit(2);
    weir_ranked_close(NULL);
    weir_window_close(NULL);
    weir_words_close(NULL);
}

static weir_row row_of(const char *key, const char *row, const weir_entry *entry) {
    weir_row made = {text(key), text(row), entry, 1};
    return made;
}

// Rows that cannot be: bytes at NULL, more than memory has, lists that are none. Each is refused, and no part of it is
// there.
static void rows_that_cannot_be(const weir_db *db, weir_table *table) {
    static uint8_t byte;
    const weir_bytes wrong[] = {some(NULL, 3), some(&byte, (size_t)-1), some(&byte, (size_t)1 << 63)};
    weir_entry entry = {text("e"), text("p"), false};
    weir_row good = row_of("k", "r", &entry), bad;
    weir_range range;
    weir_scan *scan;
    weir_bytes value;
    weir_txn *txn;
    uint64_t rows;
    uint32_t kind;
    int32_t duplicate;
    DO(weir_txn_begin(db, WEIR_SNAPSHOT, 0, &txn));
    DO(weir_table_insert(table, txn, &good, &duplicate));
    for (size_t n = 0; n < sizeof wrong / sizeof *wrong; n++) {
        weir_entry bad_entry = {wrong[n], text("p"), false};
        for (int which = 0; which < 4; which++) {
            bad = row_of("other", "r", &entry);
            if (which == 0) bad.key = wrong[n];
            if (which == 1) bad.row = wrong[n];
            if (which >= 2) bad.entries = &bad_entry;
            if (which == 3) {
                bad_entry.key = text("e");
                bad_entry.payload = wrong[n];
            }
            REFUSED(weir_table_insert(table, txn, &bad, &duplicate));
            REFUSED(weir_table_update(table, txn, &good, &bad, &duplicate));
            REFUSED(weir_table_update(table, txn, &bad, &good, &duplicate));
            // Of a row that goes the bytes are not looked at.
            if (which != 1) REFUSED(weir_table_delete(table, txn, &bad));
            bad_entry.key = wrong[n];
        }
        const weir_row_entries late[2] = {{wrong[n], text("")}, {text("k"), wrong[n]}};
        REFUSED(weir_table_add_entries(table, txn, 0, &late[0], 1));
        REFUSED(weir_table_add_entries(table, txn, 0, &late[1], 1));
        REFUSED(weir_table_get(table, txn, wrong[n], WEIR_LOCK_NONE, &value));
        REFUSED(weir_table_find_for_update(table, txn, 0, wrong[n], &value));
        REFUSED(weir_table_estimate(table, 0, wrong[n], NULL, &rows, &kind));
        REFUSED(weir_table_estimate(table, 0, text("a"), &wrong[n], &rows, &kind));
        memset(&range, 0, sizeof range);
        range.index = WEIR_ROWS;
        range.from = wrong[n];
        REFUSED(weir_scan_open(table, txn, &range, &scan));
        range.from = text("a");
        range.to = wrong[n];
        range.has_to = true;
        REFUSED(weir_scan_open(table, txn, &range, &scan));
    }
    bad = good;
    const size_t counts[] = {0, 2, (size_t)1 << 62, (size_t)-1};
    for (size_t n = 0; n < sizeof counts / sizeof *counts; n++) {
        // Two entries where there is one index: more than the list has is never looked at.
        const weir_entry two[2] = {entry, entry};
        bad.entries = two;
        bad.entry_count = counts[n];
        REFUSED(weir_table_insert(table, txn, &bad, &duplicate));
        REFUSED(weir_table_delete(table, txn, &bad));
    }
    bad.entries = NULL;
    bad.entry_count = 1;
    REFUSED(weir_table_insert(table, txn, &bad, &duplicate));
    // The index keeps one entry of each row; there is no other; and no list.
    const weir_row_entries late = {text("k"), text("")};
    REFUSED(weir_table_add_entries(table, txn, 0, &late, 1));
    REFUSED(weir_table_add_entries(table, txn, 1, &late, 1));
    REFUSED(weir_table_add_entries(table, txn, WEIR_ROWS, &late, 1));
    REFUSED(weir_table_add_entries(table, txn, 0, NULL, 1));
    REFUSED(weir_table_get(table, txn, text("k"), 77, &value));
    EXPECT(weir_table_estimate(table, 9, text("a"), NULL, &rows, &kind), WEIR_NOTHING);
    DO(weir_table_get(table, txn, text("k"), WEIR_LOCK_NONE, &value));
    DO(weir_table_count(table, txn, &rows));
    if (rows != 1) exit(3);
    DO(weir_txn_commit(txn, WEIR_LAZY));
}

static void tables_that_cannot_be(const weir_db *db) {
    static uint8_t byte;
    weir_index index = {text("i"), false, text("d"), false};
    weir_bytes none = some(NULL, 0), not_text = some("\xff", 1), at_null = some(NULL, 2);
    weir_redefinition change;
    weir_table *table;
    int names = 0;
    REFUSED(weir_table_create(db, not_text, none, NULL, 0, none));
    REFUSED(weir_table_create(db, at_null, none, NULL, 0, none));
    REFUSED(weir_table_create(db, text("x"), at_null, NULL, 0, none));
    REFUSED(weir_table_create(db, text("x"), some(&byte, (size_t)-1), NULL, 0, none));
    REFUSED(weir_table_create(db, text("x"), none, NULL, 1, none));
    REFUSED(weir_table_create(db, text("x"), none, &index, (size_t)-1, none));
    REFUSED(weir_table_create(db, text("x"), none, NULL, 0, text("no codec")));
    index.name = not_text;
    REFUSED(weir_table_create(db, text("x"), none, &index, 1, none));
    index.name = text("i");
    index.definition = at_null;
    REFUSED(weir_table_create(db, text("x"), none, &index, 1, none));
    memset(&change, 0, sizeof change);
    change.table = text("t");
    REFUSED(weir_table_redefine(db, NULL, 1));
    REFUSED(weir_table_redefine(db, &change, (size_t)-1));
    change.definition = at_null;
    REFUSED(weir_table_redefine(db, &change, 1));
    change.definition = text("d");
    change.renamed_count = 3;
    REFUSED(weir_table_redefine(db, &change, 1));
    REFUSED(weir_table_rename(db, text("t"), not_text));
    EXPECT(weir_table_drop(db, text("none of the name"), 0), WEIR_NOTHING);
    EXPECT(weir_table_open(db, text("none of the name"), &table), WEIR_NOTHING);
    DO(weir_table_names(db, count, &names));
    if (names != 1) exit(4);
}

// What is one database's, given to another.
static void of_another(weir_db *db, weir_tree *tree, weir_table *table, const char *directory) {
    weir_db *other;
    weir_tree *strange;
    weir_txn *txn, *theirs;
    weir_cursor *cursor, *their_cursor;
    weir_batch *batch;
    weir_entry entry = {text("e"), text("p"), false};
    weir_row row = row_of("strange", "r", &entry);
    weir_bytes value, none = some(NULL, 0);
    uint64_t point, their_point;
    int32_t duplicate;
    char dir[4200];
    snprintf(dir, sizeof dir, "%s.other", directory);
    DO(weir_open(text(dir), NULL, &other));
    DO(weir_tree_open(other, text("t"), true, &strange));
    DO(weir_txn_begin(db, WEIR_SNAPSHOT, 0, &txn));
    DO(weir_txn_begin(other, WEIR_SNAPSHOT, 0, &theirs));
    DO(weir_tree_put(tree, txn, text("own"), text("v")));
    DO(weir_tree_put(strange, theirs, text("theirs"), text("v")));
    REFUSED(weir_tree_get(strange, txn, text("theirs"), WEIR_LOCK_NONE, &value));
    REFUSED(weir_tree_get(strange, txn, text("theirs"), WEIR_LOCK_UPDATE, &value));
    REFUSED(weir_tree_put(strange, txn, text("k"), text("v")));
    REFUSED(weir_tree_insert(strange, txn, text("k"), text("v")));
    REFUSED(weir_tree_delete(strange, txn, text("theirs")));
    REFUSED(weir_table_insert(table, theirs, &row, &duplicate));
    REFUSED(weir_table_delete(table, theirs, &row));
    // A cursor over another's tree shows nothing, and one of another transaction does not move.
    DO(weir_cursor_open(tree, txn, WEIR_LOCK_NONE, none, NULL, &cursor));
    DO(weir_cursor_open(strange, theirs, WEIR_LOCK_NONE, none, NULL, &their_cursor));
    REFUSED(weir_cursor_first(cursor, theirs));
    REFUSED(weir_cursor_first(their_cursor, txn));
    REFUSED(weir_cursor_seek(their_cursor, txn, none));
    weir_cursor_close(their_cursor);
    if (weir_cursor_open(strange, txn, WEIR_LOCK_NONE, none, NULL, &their_cursor) == WEIR_OK) {
        REFUSED(weir_cursor_first(their_cursor, txn));
        REFUSED(weir_cursor_last(their_cursor, txn));
        weir_cursor_close(their_cursor);
    }
    weir_cursor_close(cursor);
    DO(weir_txn_savepoint(txn, &point));
    DO(weir_txn_savepoint(theirs, &their_point));
    REFUSED(weir_txn_rollback_to(txn, their_point));
    DO(weir_batch_new(&batch));
    DO(weir_batch_put(batch, tree, text("batched"), text("v")));
    DO(weir_batch_put(batch, strange, text("batched"), text("v")));
    REFUSED(weir_batch_write(db, batch, WEIR_LAZY));
    REFUSED(weir_batch_write(other, batch, WEIR_LAZY));
    weir_batch_free(batch);
    EXPECT(weir_tree_get(tree, NULL, text("batched"), WEIR_LOCK_NONE, &value), WEIR_NOTHING);
    EXPECT(weir_tree_get(strange, NULL, text("batched"), WEIR_LOCK_NONE, &value), WEIR_NOTHING);
    DO(weir_txn_prepare(theirs, text("theirs")));
    if (weir_commit_prepared(db, text("theirs"), WEIR_LAZY) == WEIR_OK) exit(5);
    // All that was refused has lost nothing of what was done.
    DO(weir_txn_commit(txn, WEIR_LAZY));
    DO(weir_commit_prepared(other, text("theirs"), WEIR_LAZY));
    DO(weir_tree_get(tree, NULL, text("own"), WEIR_LOCK_NONE, &value));
    DO(weir_tree_get(strange, NULL, text("theirs"), WEIR_LOCK_NONE, &value));
    EXPECT(weir_tree_get(strange, NULL, text("k"), WEIR_LOCK_NONE, &value), WEIR_NOTHING);
    weir_tree_close(strange);
    DO(weir_close(other));
}

// Looked at alone: all is seen, by several at a time, nothing is changed, and nothing is made where nothing is.
static void only_looked_at(const char *directory) {
    weir_options options;
    weir_db *db, *second;
    weir_tree *tree, *made;
    weir_table *table;
    weir_txn *txn;
    weir_batch *batch;
    weir_entry entry = {text("e"), text("p"), false};
    weir_row row = row_of("never", "r", &entry);
    weir_bytes value, none = some(NULL, 0);
    int32_t duplicate;
    char missing[4200];
    memset(&options, 0, sizeof options);
    options.read_only = 1;
    snprintf(missing, sizeof missing, "%s.missing", directory);
    REFUSED(weir_open(text(missing), &options, &db));
    options.create = WEIR_ALWAYS;
    if (weir_open(text(missing), &options, &db) == WEIR_OK) exit(6);
    options.create = WEIR_IF_MISSING;
    DO(weir_open(text(directory), &options, &db));
    options.read_only = UINT32_MAX;
    DO(weir_open(text(directory), &options, &second));
    DO(weir_close(second));
    EXPECT(weir_open(text(directory), NULL, &second), WEIR_IO);
    DO(weir_tree_open(db, text("t"), false, &tree));
    DO(weir_tree_get(tree, NULL, text("own"), WEIR_LOCK_NONE, &value));
    DO(weir_table_open(db, text("rows"), &table));
    EXPECT(weir_tree_open(db, text("new"), true, &made), WEIR_READ_ONLY);
    EXPECT(weir_tree_put_now(tree, text("never"), text("v"), WEIR_LAZY), WEIR_READ_ONLY);
    EXPECT(weir_tree_drop(db, text("t")), WEIR_READ_ONLY);
    EXPECT(weir_table_create(db, text("new"), none, NULL, 0, none), WEIR_READ_ONLY);
    EXPECT(weir_table_drop(db, text("rows"), 0), WEIR_READ_ONLY);
    DO(weir_batch_new(&batch));
    DO(weir_batch_put(batch, tree, text("never"), text("v")));
    EXPECT(weir_batch_write(db, batch, WEIR_LAZY), WEIR_READ_ONLY);
    weir_batch_free(batch);
    DO(weir_txn_begin(db, WEIR_SNAPSHOT, 0, &txn));
    EXPECT(weir_tree_put(tree, txn, text("never"), text("v")), WEIR_READ_ONLY);
    EXPECT(weir_tree_delete(tree, txn, text("own")), WEIR_READ_ONLY);
    EXPECT(weir_table_insert(table, txn, &row, &duplicate), WEIR_READ_ONLY);
    DO(weir_table_get(table, txn, text("k"), WEIR_LOCK_NONE, &value));
    DO(weir_txn_rollback(txn));
    EXPECT(weir_tree_compact(tree, NULL, NULL, NULL, NULL), WEIR_READ_ONLY);
    weir_table_close(table);
    weir_tree_close(tree);
    DO(weir_close(db));
}

int main(int argc, char **argv) {
    weir_index index = {text("i"), false, text("d"), false};
    weir_db *db;
    weir_tree *tree;
    weir_table *table;
    weir_bytes none = some(NULL, 0), value;
    uint64_t rows;
    int problems = 0;
    if (argc != 2) return 2;
    no_handles();
    DO(weir_open(text(argv[1]), NULL, &db));
    DO(weir_tree_open(db, text("t"), true, &tree));
    DO(weir_table_create(db, text("rows"), text("d"), &index, 1, none));
    DO(weir_table_open(db, text("rows"), &table));
    rows_that_cannot_be(db, table);
    tables_that_cannot_be(db);
    of_another(db, tree, table, argv[1]);
    DO(weir_check(db, count, &problems));
    if (problems != 0) return 1;
    DO(weir_close(db));
    EXPECT(weir_table_analyze(table, &rows), WEIR_CLOSED);
    weir_table_close(table);
    weir_tree_close(tree);
    only_looked_at(argv[1]);
    DO(weir_open(text(argv[1]), NULL, &db));
    DO(weir_tree_open(db, text("t"), false, &tree));
    EXPECT(weir_tree_get(tree, NULL, text("never"), WEIR_LOCK_NONE, &value), WEIR_NOTHING);
    weir_tree_close(tree);
    DO(weir_close(db));
    puts("all refused");
    return 0;
}
