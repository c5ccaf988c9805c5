// Rows as bytes.
#ifndef WEIR_PLUGIN_ROW_CODEC_H
#define WEIR_PLUGIN_ROW_CODEC_H

#include <string>
#include <vector>

#include "definition.h"
#include "key_codec.h"
#include "server.h"

// Some columns of a table as bytes: marks of NULL, then the values as replication packs them, which is the
// one form that the server keeps from release to release.
class Row_codec
{
public:
  Row_codec() : m_table(nullptr), m_nullable(0) {}
  // All stored columns but those that `key` gives back; rows written before the last ones came lack them.
  Row_codec(TABLE *table, const Key_codec *key, const std::vector<Added_column> &added);
  // The columns that `key` does not give back, of the index or of the primary key.
  Row_codec(TABLE *table, const Key_codec *index, const Key_codec *primary);

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
  void add(Field *field);
  const uchar *decode_columns(const uchar *bytes, size_t length, size_t most, size_t *count, uchar *record) const;
  bool decode_added(size_t from, uchar *record) const;

  TABLE *m_table;
  std::vector<Field *> m_fields;
  // How many of the fields before each, and of all, may be NULL.
  std::vector<uint> m_nullable_before;
  uint m_nullable;
  std::vector<Added_column> m_added;
};

#endif
