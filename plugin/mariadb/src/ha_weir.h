// The handler: what the server asks of one use of a table.
#ifndef WEIR_PLUGIN_HA_WEIR_H
#define WEIR_PLUGIN_HA_WEIR_H

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine.h"
#include "foreign_keys.h"
#include "fulltext.h"
#include "key_codec.h"
#include "late_words.h"
#include "row_codec.h"
#include "share.h"
#include "spatial.h"
#include "transaction.h"

// An index as this handler knows it.
struct Weir_index
{
  Key_codec key;
  Search_codec search;
  // What its entries carry so that a covering read needs no row.
  Row_codec payload;
  bool covers;
  bool unique;
  // Its place in the engine's table; WEIR_ROWS for the primary key.
  int32_t place;
  // Of a FULLTEXT key, which has none of the above but its place.
  std::shared_ptr<const Fulltext_codec> fulltext;
  // Of a SPATIAL key, which has none of the above either.
  std::shared_ptr<const Spatial_codec> spatial;

  bool is_ordered() const { return !fulltext && !spatial; }
};

// Whether the key parts from `first` to `last` hold whole columns, so that an entry can stand for its row.
bool index_covers(const TABLE_SHARE *share, const KEY *key, uint first, uint last);

// One that ALTER is building beside writers, and that the server does not know yet.
struct Announced_index
{
  Announced_key key;
  Weir_index index;
};

// A row encoded, in memory that is used again.
struct Encoded_row
{
  std::string key, row;
  std::vector<std::string> entry_keys, payloads;
  std::vector<weir_entry> entries;
  weir_row view;
};

// A place in a transaction to go back to if a row cannot stay as it was written.
class Row_point
{
public:
  Row_point(Transaction *trx, bool wanted);
  ~Row_point();
  // Goes back, and passes the error on.
  int take_back(int error);

private:
  Transaction *m_trx;
  bool m_set;
  uint64_t m_point;
};

// The other table of a foreign key, as seen from this one: its parent, or its child.
struct Foreign_side
{
  Foreign_side(const Reference &r, const std::string &name, const std::vector<std::string> &names)
      : reference(r), other(name), other_columns(names), table(nullptr), place(WEIR_ROWS) {}
  ~Foreign_side();

  Reference reference;
  std::string other;
  std::vector<std::string> other_columns;
  // This table's columns, and its index that begins with them.
  std::vector<Key_part_codec> columns;
  uint own_index= 0;
  // The other table is this one, and an entry of what refers goes before the entry of what is referred to: as InnoDB has it,
  // a row that refers to itself does not keep itself from being deleted then.
  bool own_entry_goes_first= false;
  // nullptr: not opened yet, or not there.
  weir_table *table;
  int32_t place;
  std::vector<Part_definition> parts;
};

// Why a foreign key has refused a row.
struct Foreign_failure
{
  std::string words, duplicate_table, duplicate_key;
};

struct Foreign_step;
struct Foreign_change;

class ha_weir : public Server_handler<ha_weir>
{
public:
  ha_weir(handlerton *hton, TABLE_SHARE *share);
  ~ha_weir() override;

  // handler_open.cc: what it can do, opening, locking.
  ulonglong table_flags() const override;
  ulong index_flags(uint index, uint part, bool all_parts) const override;
  uint max_supported_keys() const override { return MAX_KEY; }
  uint max_supported_key_length() const override { return 3072; }
  uint max_supported_key_part_length() const override { return 3072; }
  const key_map *keys_to_use_for_scanning() override { return &key_map_full; }
  uint8 table_cache_type() override { return HA_CACHE_TBL_NOCACHE; }
  handler *clone(const char *name, MEM_ROOT *root) override;
  int open(const char *name, int mode, uint test_if_locked) override;
  int close() override;
  int external_lock(THD *thd, int lock_type) override;
  int start_stmt(THD *thd, thr_lock_type lock_type) override;
  uint lock_count() const override { return 0; }
  THR_LOCK_DATA **store_lock(THD *thd, THR_LOCK_DATA **to, thr_lock_type lock_type) override;
  int extra(ha_extra_function operation) override;
  int reset() override;
  bool get_error_message(int error, String *buf) override;

  // handler_read.cc
  int rnd_init(bool scan) override;
  int rnd_end() override;
  void unlock_row() override;
  void try_semi_consistent_read(bool yes) override;
  bool was_semi_consistent_read() override;
  int rnd_next(uchar *buf) override;
  int rnd_pos(uchar *buf, uchar *pos) override;
  void position(const uchar *record) override;
  int cmp_ref(const uchar *a, const uchar *b) override;
  int index_init(uint index, bool sorted) override;
  int index_end() override;
  int index_read_map(uchar *buf, const uchar *key, key_part_map parts, ha_rkey_function find) override;
  int index_read_last_map(uchar *buf, const uchar *key, key_part_map parts) override;
  int index_next(uchar *buf) override;
  int index_prev(uchar *buf) override;
  int index_first(uchar *buf) override;
  int index_last(uchar *buf) override;
  int index_next_same(uchar *buf, const uchar *key, uint length) override;

  // handler_condition.cc
  Item *idx_cond_push(uint index, Item *condition) override;
  bool rowid_filter_push(Rowid_filter *filter) override;

  // handler_fulltext.cc
  FT_INFO *ft_init_ext(uint flags, uint index, String *query) override;
  int ft_init() override;
  int ft_read(uchar *buf) override;
  // How well the row in a record fits what was looked for; 0: it does not.
  float relevance(const weir_ranked *ranked, const uchar *record);
  int split_row(const Fulltext_codec &codec, weir_bytes key, weir_bytes row, weir_words *words);

  // handler_spatial.cc
  int window_read(uchar *buf, const uchar *key, ha_rkey_function find);
  int window_next(uchar *buf);
  ha_rows window_rows(uint index, const uchar *key, ha_rkey_function find);

  // handler_mrr.cc
  int multi_range_read_init(RANGE_SEQ_IF *seq, void *seq_init_param, uint ranges, uint mode,
                            HANDLER_BUFFER *buffer) override;
  int multi_range_read_next(range_id_t *range) override;
  // What the server's own way works with, for ranges that are known; `flags`: what it may and must not do.
  DsMrr_impl *ranges_of_constants(uint *flags);
  ha_rows multi_range_read_info(uint keyno, uint ranges, uint keys, uint key_parts, uint *size, uint *flags,
                                Cost_estimate *cost) override;
  int multi_range_read_explain_info(uint mode, char *text, size_t size) override;

  // handler_write.cc
  int write_row(const uchar *record) override;
  int update_row(const uchar *old_record, const uchar *new_record) override;
  int delete_row(const uchar *record) override;
  void get_auto_increment(ulonglong offset, ulonglong increment, ulonglong wanted, ulonglong *first,
                          ulonglong *reserved) override;
  int reset_auto_increment(ulonglong value) override;
  // All rows of a table that CREATE TABLE ... SELECT has made are there now.
  void filled();

  // handler_late.cc
  void start_bulk_insert(ha_rows rows, uint flags) override;
  int end_bulk_insert() override;
  // Those that are kept back, for Late_words.
  int write_late_words();
  void forget_late_words();

  // handler_references.cc
  char *get_foreign_key_create_info() override;
  void free_foreign_key_create_info(char *text) override;
  int get_foreign_key_list(THD *thd, List<FOREIGN_KEY_INFO> *list) override;
  int get_parent_foreign_key_list(THD *thd, List<FOREIGN_KEY_INFO> *list) override;
  bool referenced_by_foreign_key() const noexcept override;
  bool can_switch_engines() override;
  bool get_foreign_dup_key(char *table_name, uint table_room, char *key_name, uint key_room) override;

  // handler_info.cc: estimates and checks.
  int info(uint flag) override;
  ha_rows records_in_range(uint index, const key_range *min, const key_range *max, page_range *) override;
  ha_rows estimate_rows_upper_bound() override;
  // `records` stays the estimate that it is by default: the optimizer asks it for the cost of each scan of a key
  // (key_scan_time), also of engines that do not say that they count.
  // Where costs are counted in pages: a scan's, and those of `rows` rows in so many ranges of the primary key.
  double pages_of_scan();
  double pages_of_primary(uint ranges, ha_rows rows);
  int analyze(THD *thd, HA_CHECK_OPT *) override;
  int optimize(THD *thd, HA_CHECK_OPT *) override;
  int check(THD *thd, HA_CHECK_OPT *) override;

  // handler_define.cc
  int create(const char *name, TABLE *form, HA_CREATE_INFO *info) override;
  int delete_table(const char *name) override;
  int rename_table(const char *from, const char *to) override;
  int truncate() override;
  void update_create_info(HA_CREATE_INFO *info) override;
  bool check_if_incompatible_data(HA_CREATE_INFO *info, uint table_changes) override;

  // handler_tablespace.cc: a table as a file.
  int discard_or_import_tablespace(my_bool discard) override;

  // handler_alter*.cc: definitions that change without a copy of the rows by the server.
  ulonglong table_version() const override;
  enum_alter_inplace_result check_if_supported_inplace_alter(TABLE *altered,
                                                             Alter_inplace_info *info) override;
  bool can_convert_nocopy(const Field &field, const Column_definition &then) const override;
  Compare_keys compare_key_parts(const Field &field, const Column_definition &then, const KEY_PART_INFO &part,
                                 const KEY_PART_INFO &part_then) const override;
  bool prepare_inplace_alter_table(TABLE *altered, Alter_inplace_info *info) override;
  bool inplace_alter_table(TABLE *altered, Alter_inplace_info *info) override;
  bool commit_inplace_alter_table(TABLE *altered, Alter_inplace_info *info, bool commit) override;

  // Of a row that is written anew: handler_alter_rewrite.cc.
  int decode_for_rewrite(uchar *record, weir_bytes key, weir_bytes row);

private:
  bool is_partition() const;
  bool is_exported(THD *thd) const;
  int export_table();
  void end_export();
  weir_code redefine(const std::function<void(Table_definition *)> &change);
  int discard_rows();
  int import_rows();
  int fit(const std::string &heading, const std::string &definition, const std::string &layouts, Table_definition *now);
  int reopen_imported();
  bool has_primary() const { return table_share->primary_key != MAX_KEY; }
  int make_codecs();
  Weir_index make_index(const KEY *key, int32_t place);
  bool make_fulltext(const std::vector<uint> &columns, const Fulltext_definition &made, Weir_index *index);
  bool make_spatial(uint column, Weir_index *index);
  int make_unordered(const KEY *key, const std::string &definition, Weir_index *index);
  bool make_announced_unordered(const std::string &definition, Weir_index *index);
  weir_window window_of(uint index, const uchar *key, ha_rkey_function find);
  weir_code open_window(const uchar *key, ha_rkey_function find, weir_bytes *first);
  int read_windowed(uchar *buf, weir_bytes key);
  std::string index_definition(const KEY *key);
  weir_code search(uint flags, uint index, const String &query, weir_ranked **ranked);
  bool refreshed(weir_code code);
  void fail_alter(weir_code code);
  void abandon_indexes();
  bool fails_to_change(const std::function<weir_code()> &change);
  bool drop_leftovers();
  enum_alter_inplace_result check_without_rewrite(TABLE *altered, Alter_inplace_info *info);
  enum_alter_inplace_result check_change_of_names(TABLE *altered, Alter_inplace_info *info);
  bool can_rewrite(const TABLE *altered, const Alter_inplace_info *info);
  bool commit_change_of_names(TABLE *altered, Alter_inplace_info *info);
  bool watch_nulls(const Alter_inplace_info *info);
  bool finds_null(const Alter_inplace_info *info);
  bool finds_null_in(weir_table *now, weir_txn *txn, const std::vector<Field *> &columns);
  int begin_numbers_at(ulonglong value);
  void begin_copy();
  int end_copy();
  void give_up_copy();
  bool announce_indexes(TABLE *altered, const Alter_inplace_info *info);
  bool fill_indexes(TABLE *altered, Alter_inplace_info *info);
  bool announce_rewrite(TABLE *altered, const Alter_inplace_info *info);
  bool fill_rewrite(TABLE *altered, const Alter_inplace_info *info);
  bool commit_rewrite(const std::vector<ha_weir *> &parts, TABLE *altered, const Alter_inplace_info *info);
  bool fail_rewrite(weir_code code, TABLE *altered, int32_t duplicate);
  bool commit_indexes(const std::vector<ha_weir *> &parts, TABLE *altered, Alter_inplace_info *info);
  void read_temporary_with_locks();
  int take_part();
  void set_rows_per_key();
  void set_row_bytes();
  void set_sizes();
  int fail(weir_code code);

  // Reading.
  void mark_locks();
  void mark_locks_end();
  int open_scan(int32_t place, const std::string &from, const std::string *to, bool down);
  void close_scan();
  void suspend_scan();
  bool goes_on() const { return m_scan && m_scan_part == m_trx->part(); }
  int step(uchar *buf);
  int step_on(uchar *buf);
  int step_to(uchar *buf, bool down);
  int read_row(uchar *buf, const uchar *key, size_t length);
  int decode(uchar *buf, const uchar *key, size_t key_length, const uchar *row, size_t row_length);
  int decode_entry(uchar *buf);
  bool reads_fronts() const;
  bool decode_front(uchar *buf, weir_bytes key, weir_bytes row);
  int decode_found(uchar *buf);
  bool decode_key(uchar *buf, const uchar *key, size_t length);
  void compute_virtual_parts(const Weir_index &index);
  bool is_of_entry(uchar *buf);
  bool judges_by_part() const;
  check_result_t check_condition();
  void bound_by_range_end(std::string *to, bool *has_to);
  static int make_entry(void *context, size_t index, weir_bytes key, weir_bytes row, weir_entry *entry);
  static bool is_check_wanted(void *context);

  int report_to_join(int error);

  // Sequences, and what fills a temporary table.
  int begin_own();
  int begin_own_always();
  int begin_filling();
  int end_own();
  int commit_own();
  void drop_own();
  int lock_own_row();
  // What this use of the table reads and writes by, and how it locks what it reads.
  weir_txn *txn() const { return m_own ? m_own : m_trx->txn(); }
  uint32_t lock() const { return m_own ? static_cast<uint32_t>(WEIR_LOCK_NONE) : m_lock; }

  // Writing.
  // `other`: the row that it is to become, or was; where the texts of a FULLTEXT key are the same in both, their words are left
  // out of both.
  void encode(const uchar *record, Encoded_row *out, const uchar *other= nullptr);
  void encode_entry(const Weir_index &index, const uchar *record, Encoded_row *out, const uchar *other= nullptr);
  bool keeps_key(const uchar *a, const uchar *b) const;
  bool is_same_row() const;
  int note_number(const uchar *record);
  int map_duplicate(weir_code code, int32_t duplicate);

  weir_code lock_key(int32_t place, const Encoded_row &row, uint32_t lock);
  weir_code lock_duplicate(weir_code code, int32_t place, const Encoded_row &row);
  weir_code lock_replaced(int32_t *duplicate);
  weir_code insert_encoded(int32_t *duplicate);
  weir_code update_encoded(int32_t *duplicate);
  int insert_row(const uchar *record);
  void keep_words_back();
  int note_late_words();
  // The row that is changed next may be one of this statement's, or what follows from it.
  int write_words_of_all() { return m_trx ? m_trx->late_words().write() : 0; }
  void count_row(longlong by)
  {
    if (m_own)
      m_share->row_count()->change(by);
    else
      m_trx->rows_changed(m_share->row_count(), by, &m_row_changes_place);
  }

  // Foreign keys: handler_foreign.cc, then handler_follow.cc.
  Table_definition definition() const;
  bool has_foreign_keys();
  void add_side(std::vector<std::unique_ptr<Foreign_side>> *to, const Reference &reference,
                const std::string &other, const std::vector<std::string> &columns,
                const std::vector<std::string> &other_columns);
  weir_code open_side(Foreign_side *side);
  bool make_foreign_key(const Foreign_side &side, const uchar *record, std::string *key);
  bool same_foreign_values(const Foreign_side &side, const uchar *a, const uchar *b);
  bool same_entry(uint index, const uchar *a, const uchar *b);
  weir_code walk_side(Foreign_side *side, const std::string &key, std::vector<std::string> *found);
  weir_code look_aside(Foreign_side *side, const uchar *record, std::vector<std::string> *found, bool *is_null);
  int violation(const Reference &reference, int error, Foreign_failure *why);
  int check_parents(const uchar *record, const uchar *before, const std::string *except, Foreign_failure *why);

  int check_refusals(const uchar *before, const uchar *record, const Foreign_step *above, Foreign_failure *why);
  int check_children(const uchar *before, const uchar *record, const Foreign_step *above, Foreign_failure *why);
  int check_child(Foreign_side *side, const uchar *before, const uchar *record, const Foreign_step *above,
                  Foreign_failure *why);
  ha_weir *find_open_child(const std::string &name);
  void compute_virtual_columns();
  int follow(const std::string &primary, const Foreign_change &change, const Foreign_step *above,
             Foreign_failure *why);
  bool take_values(const Foreign_change &change);

  THR_LOCK_DATA m_lock_data;
  void warn_of_codec(const char *codec) const;
  std::string m_name;
  Weir_share *m_share;
  // Where it is exported to, until it is unlocked; empty: it is not.
  std::string m_exported_file;
  weir_table *m_table;
  Transaction *m_trx;
  // Of a sequence, while it is read or written.
  weir_txn *m_own;
  // The server has not said that the table comes into use, and will not say when it goes out of it.
  bool m_trx_found;

  // By the server's numbers.
  std::vector<Weir_index> m_indexes;
  std::vector<std::unique_ptr<Announced_index>> m_announced;
  // The columns of the primary key; of a table without one, nothing.
  Key_codec m_primary;
  Row_codec m_row;

  // Before and behind the locks of the row that was read last; whether they are kept in mind.
  size_t m_lock_mark, m_lock_end;
  bool m_unlocks;
  // Whether rows that others have are shown as committed last, instead of being waited for; whether the last one was.
  bool m_semi_consistent, m_read_unlocked;
  // A weir_lock, and whether what others have locked is passed over.
  uint32_t m_lock;
  // The lock that was settled when the table came into use: LOCK TABLES and triggers go by it later.
  uint32_t m_table_lock;
  bool m_skip_locked;
  bool m_keyread;
  bool m_copying;
  // The copy, while all that is written to it is its rows; nullptr.
  weir_copy *m_copy;
  // Rows that are met are changed or replaced.
  bool m_replaces;
  uint m_copied;

  // The walk that is under way.
  weir_scan *m_scan;
  // The part of the transaction that it was begun in.
  ulonglong m_scan_part;
  // The rows of a window that are read by a SPATIAL key; of the same part.
  weir_windowed *m_window;
  weir_found m_found;
  int32_t m_place;
  bool m_down;
  // It has come to something.
  bool m_on;
  // It ends before the index does: to go on behind its end, another has to be begun.
  bool m_bounded;
  // Where it stood when it was closed, or the key that was looked for.
  std::string m_at;
  // It has gone beyond the last row (1), or before the first (-1): HANDLER goes back from there.
  int m_beyond;
  // The statement is HANDLER ... READ.
  bool m_by_handler;
  // The hidden key of the row read last.
  uchar m_row_id[8];
  // Blobs of the row read last point in here.
  std::string m_kept;
  DsMrr_impl m_mrr;
  // Its ranges are the keys of a join.
  bool m_mrr_of_join;

  // About how many bytes a row takes, and at least: for the optimizer.
  ulonglong m_row_bytes, m_row_bytes_min;

  // Where the transaction has what this has added to the table's rows.
  size_t m_row_changes_place;

  // Why there was no auto-increment number.
  int m_number_error;
  // The key that the last duplicate was of.
  uint m_duplicate;

  // The foreign keys of this table, and those that refer to it, as of an epoch of the definitions.
  std::vector<std::unique_ptr<Foreign_side>> m_parents, m_children;
  ulonglong m_foreign_epoch;
  // Changes that go through m_children now.
  uint m_foreign_busy;
  Foreign_failure m_failure;
  Encoded_row m_old, m_new;
  // Where words of rows that are inserted are kept back; empty: they are written with the row.
  std::vector<Words_kept_back> m_late;
  bool m_has_late;
  std::string m_buffer;
};

// Warns of options of the statement's that InnoDB goes by and Weir does not.
void warn_of_options(THD *thd, const HA_CREATE_INFO *info);
// Whether a table or a partition asks for another encryption than all have; the error says so.
bool refuse_encryption(THD *thd, const engine_option_value *option);

#endif
