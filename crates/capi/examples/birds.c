// Weir from C, and from C++: two accounts and a table with an index. After `make install`:
//   cc birds.c $(pkg-config --cflags --libs weir) -o birds && ./birds <directory>
// Built so, as C11 and as C++17, and run by tests/example.rs.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "weir.h"

// Every call answers with a code; what fails here ends the program with the engine's own words.
#define DO(call)                                                                    \
    do {                                                                            \
        weir_code code_ = (call);                                                   \
        if (code_ != WEIR_OK) {                                                     \
            fprintf(stderr, "%s:%d: %d: %s\n", __FILE__, __LINE__, code_, weir_message()); \
            exit(1);                                                                \
        }                                                                           \
    } while (0)

#define EXPECT(call, expected)                                                      \
    do {                                                                            \
        weir_code code_ = (call);                                                   \
        if (code_ != (expected)) {                                                  \
            fprintf(stderr, "%s:%d: %d instead of %d: %s\n", __FILE__, __LINE__, code_, expected, \
                    weir_message());                                                \
            exit(1);                                                                \
        }                                                                           \
    } while (0)

static weir_bytes text(const char *s) {
    weir_bytes bytes = {(const uint8_t *)s, strlen(s)};
    return bytes;
}

static void print(void *context, weir_bytes bytes) {
    printf("%s: %.*s\n", (const char *)context, (int)bytes.len, (const char *)bytes.data);
}

// Moves ten from one account to others, and takes a part of it back.
static void transactions(const weir_db *db) {
    weir_tree *accounts;
    weir_txn *txn;
    weir_bytes value;
    uint64_t before;
    DO(weir_tree_open(db, text("accounts"), true, &accounts));
    DO(weir_tree_put_now(accounts, text("ada"), text("50"), WEIR_SYNCED));

    DO(weir_txn_begin(db, WEIR_REPEATABLE_READ, 1000, &txn));
    DO(weir_tree_get(accounts, txn, text("ada"), WEIR_LOCK_UPDATE, &value));
    DO(weir_tree_put(accounts, txn, text("ada"), text("40")));
    DO(weir_txn_savepoint(txn, &before));
    DO(weir_tree_put(accounts, txn, text("ben"), text("10")));
    DO(weir_txn_rollback_to(txn, before));
    EXPECT(weir_tree_get(accounts, txn, text("ben"), WEIR_LOCK_NONE, &value), WEIR_NOTHING);
    DO(weir_tree_insert(accounts, txn, text("cleo"), text("10")));
    EXPECT(weir_tree_insert(accounts, txn, text("cleo"), text("0")), WEIR_DUPLICATE);
    DO(weir_txn_commit(txn, WEIR_SYNCED));

    // A transaction that waits for no lock meets another one that has the row.
    weir_txn *other;
    DO(weir_txn_begin(db, WEIR_READ_COMMITTED, 0, &txn));
    DO(weir_txn_begin(db, WEIR_READ_COMMITTED, 0, &other));
    DO(weir_tree_put(accounts, txn, text("ada"), text("0")));
    EXPECT(weir_tree_put(accounts, other, text("ada"), text("1")), WEIR_WOULD_WAIT);
    DO(weir_txn_rollback(other));
    DO(weir_txn_prepare(txn, text("a name of the outside's")));
    DO(weir_prepared(db, print, (void *)"prepared"));
    DO(weir_rollback_prepared(db, text("a name of the outside's")));
    EXPECT(weir_commit_prepared(db, text("no such name"), WEIR_LAZY), WEIR_NOTHING);

    // A program that decides soon keeps it in hand.
    weir_prepared_txn *held;
    DO(weir_txn_begin(db, WEIR_READ_COMMITTED, 0, &txn));
    DO(weir_tree_put(accounts, txn, text("ada"), text("40")));
    DO(weir_txn_prepare_owned(txn, text("in hand"), &held));
    DO(weir_prepared(db, print, (void *)"prepared"));
    EXPECT(weir_commit_prepared(db, text("in hand"), WEIR_LAZY), WEIR_NOTHING);
    DO(weir_prepared_txn_commit(held, WEIR_LAZY));
    DO(weir_prepared_txn_free(held));

    weir_batch *batch;
    DO(weir_batch_new(&batch));
    DO(weir_batch_put(batch, accounts, text("dan"), text("1")));
    DO(weir_batch_delete(batch, accounts, text("cleo")));
    DO(weir_batch_write(db, batch, WEIR_WRITTEN));
    weir_batch_free(batch);

    weir_cursor *cursor;
    DO(weir_txn_begin(db, WEIR_REPEATABLE_READ, 0, &txn));
    DO(weir_cursor_open(accounts, txn, WEIR_LOCK_NONE, text("a"), NULL, &cursor));
    for (weir_code code = weir_cursor_first(cursor, txn); code == WEIR_OK; code = weir_cursor_next(cursor, txn)) {
        weir_bytes key;
        DO(weir_cursor_row(cursor, &key, &value));
        printf("account %.*s has %.*s\n", (int)key.len, (const char *)key.data, (int)value.len,
               (const char *)value.data);
    }
    weir_cursor_close(cursor);
    DO(weir_txn_rollback(txn));
    weir_tree_close(accounts);
}

// Rows and keys are the caller's bytes: here texts, with a zero byte behind each part of a key.
static void insert(const weir_table *table, const weir_txn *txn, const char *name, const char *place,
                   weir_code expected) {
    char entry_key[64];
    uint64_t first;
    int32_t duplicate = 99;
    weir_entry entry = {{(const uint8_t *)entry_key, strlen(place) + 1}, text(""), false};
    weir_row row = {{(const uint8_t *)name, strlen(name) + 1}, text(place), &entry, 1};
    memcpy(entry_key, place, strlen(place) + 1);
    DO(weir_table_take_numbers(table, txn, 1, 1000000, &first));
    EXPECT(weir_table_insert(table, txn, &row, &duplicate), expected);
    if (expected == WEIR_DUPLICATE && duplicate != WEIR_ROWS) {
        fprintf(stderr, "the duplicate was in %d\n", duplicate);
        exit(1);
    }
}

static weir_table *tables(const weir_db *db) {
    weir_index by_place = {text("by place"), false, text(""), false};
    weir_table *birds;
    weir_txn *txn;
    uint64_t rows;
    uint32_t kind;
    DO(weir_table_create(db, text("birds"), text("name, place"), &by_place, 1, text("lz4")));
    EXPECT(weir_table_create(db, text("birds"), text(""), NULL, 0, text("")), WEIR_EXISTS);
    DO(weir_table_open(db, text("birds"), &birds));
    DO(weir_txn_begin(db, WEIR_REPEATABLE_READ, 1000, &txn));
    insert(birds, txn, "heron", "river", WEIR_OK);
    insert(birds, txn, "coot", "lake", WEIR_OK);
    insert(birds, txn, "heron", "lake", WEIR_DUPLICATE);
    insert(birds, txn, "dipper", "river", WEIR_OK);
    DO(weir_txn_commit(txn, WEIR_LAZY));
    DO(weir_sync(db));

    weir_range at_river = {0, {(const uint8_t *)"river", 6}, {(const uint8_t *)"river\1", 6}, true, false, false,
                           WEIR_LOCK_NONE};
    weir_scan *scan;
    weir_found found;
    DO(weir_txn_begin(db, WEIR_REPEATABLE_READ, 1000, &txn));
    DO(weir_scan_open(birds, txn, &at_river, &scan));
    while (weir_scan_next(scan, txn, &found) == WEIR_OK)
        printf("at the river: %s\n", (const char *)found.primary_key.data);
    weir_scan_close(scan);
    DO(weir_table_count(birds, txn, &rows));
    printf("birds: %d\n", (int)rows);
    DO(weir_txn_rollback(txn));
    DO(weir_table_estimate(birds, 0, at_river.from, &at_river.to, &rows, &kind));
    printf("estimated at the river: %d, %s\n", (int)rows, kind == WEIR_EXACT ? "counted" : "guessed");
    return birds;
}

int main(int argc, char **argv) {
    weir_db *db;
    weir_table *birds;
    uint64_t rows;
    uint32_t kind;
    weir_options options;
    if (argc != 2) {
        fprintf(stderr, "usage: %s DIRECTORY\n", argv[0]);
        return 2;
    }
    memset(&options, 0, sizeof options);
    options.memory_bytes = 16 << 20;
    options.log_bytes = 4 << 20;
    options.page_bytes = 8192;
    options.create = WEIR_ALWAYS;
    EXPECT(weir_open(text(argv[1]), NULL, NULL), WEIR_INPUT);
    DO(weir_open(text(argv[1]), &options, &db));
    transactions(db);
    birds = tables(db);
    EXPECT(weir_set_log_bytes(db, 1), WEIR_INPUT);
    printf("refused: %s\n", weir_message());
    EXPECT(weir_set_pool_bytes(db, 1), WEIR_INPUT);
    printf("refused: %s\n", weir_message());
    DO(weir_set_pool_bytes(db, 8 << 20));
    DO(weir_check(db, print, (void *)"problem"));
    DO(weir_close(db));
    EXPECT(weir_table_estimate(birds, 0, text(""), NULL, &rows, &kind), WEIR_CLOSED);
    printf("afterwards: %s\n", weir_message());
    weir_table_close(birds);
    return 0;
}
