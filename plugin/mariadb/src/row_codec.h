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

private:
  void add(Field *field);

  bool decode_added(size_t from, uchar *record) const;

  TABLE *m_table;
  std::vector<Field *> m_fields;
  // How many of the fields before each, and of all, may be NULL.
  std::vector<uint> m_nullable_before;
  uint m_nullable;
  std::vector<Added_column> m_added;
};

#endif
