// Rows as bytes.
#ifndef WEIR_PLUGIN_ROW_CODEC_H
#define WEIR_PLUGIN_ROW_CODEC_H

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "definition.h"
#include "key_codec.h"
#include "server.h"

// The columns that a key gives back: those before the first that it does not.
std::vector<Field *> given_back(const Key_codec *key);
// Those that lie in rows by this primary key, in order.
std::vector<Field *> columns_of_rows(const TABLE *table, const Key_codec *primary);

// Some columns of a table as bytes: marks of NULL, then the values as replication packs them, which is the
// one form that the server keeps from release to release.
class Row_codec
{
public:
  Row_codec() : m_table(nullptr), m_nullable(0) {}
  // All stored columns but those that `key` gives back, in rows as the definition has them.
  Row_codec(TABLE *table, const Key_codec *key, const Table_definition &definition);
  // The columns that `key` does not give back, of the index or of the primary key.
  Row_codec(TABLE *table, const Key_codec *index, const Key_codec *primary, const Row_codec &rows);
  // Whether the present layout is of the table's columns.
  bool is_sound() const;

  void encode(const uchar *record, std::string *out) const;
  // Blobs point into `bytes` afterwards. False: the bytes are no such row.
  bool decode(const uchar *bytes, size_t length, uchar *record) const;
  bool is_empty() const { return m_fields.empty(); }
  // How many of the columns, from the first on, have all among them that is to be read or written, or is of the primary key.
  size_t wanted() const;
  size_t columns() const { return m_fields.size(); }
  // Decodes so many columns, from the first bytes of a row; the others are as if they were NULL. False: more bytes are needed.
  bool decode_front(const uchar *bytes, size_t length, size_t columns, uchar *record) const;

private:
  // How rows of an older layout, of its first columns, become those of the present one.
  struct Step
  {
    // nullptr: the column has gone.
    Field *field;
    Column_kind kind;
    bool nullable;
  };
  struct Plan
  {
    std::vector<Step> steps;
    uint nullable= 0;
    std::vector<std::pair<Field *, const Later_column *>> lacks;
  };

  void add(Field *field);
  bool is_present(const uchar *bytes, size_t length) const;
  const Plan *plan_of(uint number, uint count) const;
  bool decode_older(const uchar *bytes, size_t length, uchar *record) const;
  bool is_narrow(const Field *field) const;
  bool has_wide(const uchar *record) const;
  const uchar *decode_columns(const uchar *bytes, size_t length, size_t most, size_t *count, uchar *record) const;
  bool decode_added(size_t from, uchar *record) const;

  TABLE *m_table;
  std::vector<Field *> m_fields;
  // How many of the fields before each, and of all, may be NULL.
  std::vector<uint> m_nullable_before;
  uint m_nullable;
  std::vector<Added_column> m_added;
  // Of rows that are of several layouts.
  Layouts_pointer m_layouts;
  mutable std::map<std::pair<uint, uint>, std::shared_ptr<const Plan>> m_plans;
  // Of an entry's columns, those whose values had one byte of length before they could be longer. Empty: there are none.
  std::vector<bool> m_narrow;
};

#endif
