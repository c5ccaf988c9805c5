// Keys as bytes that compare as the server compares them.
#ifndef WEIR_PLUGIN_KEY_CODEC_H
#define WEIR_PLUGIN_KEY_CODEC_H

#include <memory>
#include <string>
#include <vector>

#include "collation_codec.h"
#include "server.h"

// One column of a key.
class Key_part_codec
{
public:
  explicit Key_part_codec(const KEY_PART_INFO *part);

  // Appends the value that the column has in a record. Returns whether it is NULL.
  bool encode_record(const uchar *record, std::string *out) const;
  // Appends a value as it stands in a search key, and moves on behind it.
  void encode_image(const uchar **image, std::string *out) const;
  // The same without marks of NULL and of order; nothing of a NULL.
  void encode_plain_image(const uchar **image, std::string *out) const;
  // A value that is not NULL, from what encode_plain_image has made of it.
  void put_plain(const std::string &value, std::string *out) const;
  // Decodes a value into a record. Only if it can be: is_reversible.
  bool decode(const uchar **key, const uchar *end, uchar *record) const;

  // The value as it is encoded where it is neither nullable nor descending. Returns whether it is NULL.
  bool encode_value(const uchar *record, std::string *out) const;
  // Two columns with the same words here have the same bytes for the same values.
  std::string kind_of_values() const;

  // Where the encoded value that begins at `from` ends; nullptr if it does not before `end`.
  const uchar *skip(const uchar *from, const uchar *end) const;

  bool is_reversible() const { return m_reversible; }
  Field *field() const { return m_part->field; }

private:
  enum class Kind { INTEGER, FLOAT, DOUBLE, RAW, TEXT };
  void put(const uchar *data, size_t length, std::string *out) const;
  void put_value(const uchar *data, size_t length, std::string *out) const;

  const KEY_PART_INFO *m_part;
  Kind m_kind;
  // Of integers; of all that is as long in each row.
  bool m_signed;
  size_t m_bytes;
  // Two bytes of length stand before the value.
  bool m_variable;
  bool m_descending;
  bool m_reversible;
  std::shared_ptr<Collation_codec> m_collation;
};

// A key.
class Key_codec
{
public:
  Key_codec() {}
  explicit Key_codec(const KEY *key);

  // The whole key of a record. Returns whether a column of it is NULL.
  bool encode_record(const uchar *record, std::string *out) const;
  // The first columns of a key as the server gives them to look for.
  void encode_image(const uchar *image, key_part_map parts, std::string *out) const;
  // Decodes into a record the columns that can be; false if the bytes are no such key.
  bool decode(const uchar *key, size_t length, uchar *record) const;
  // The same, past the columns that cannot be decoded: what `gives_back` says.
  bool decode_past(const uchar *key, size_t length, uchar *record) const;
  bool gives_back(const Field *field) const;
  // Whether all columns can be decoded.
  bool is_reversible() const;
  const std::vector<Key_part_codec> &parts() const { return m_parts; }

private:
  std::vector<Key_part_codec> m_parts;
};

// A key that ALTER is making, as a writer of the table meanwhile knows it: by what the engine keeps of it.
class Announced_key
{
public:
  static std::string describe(const KEY *key);
  // False: there is nothing of the kind in the description.
  bool read(TABLE *table, const std::string &description);
  const KEY *key() const { return &m_key; }

private:
  std::vector<KEY_PART_INFO> m_parts;
  KEY m_key= KEY();
};

// Keys to look for, as the server gives them: of an index that is not unique, columns of the primary key may follow those
// of the index, without those that it has itself; in its entries, the whole primary key does.
class Search_codec
{
public:
  Search_codec() : m_own(0) {}
  // `primary`: nullptr if there is none.
  Search_codec(const KEY *key, const KEY *primary);

  void encode_image(const uchar *image, key_part_map parts, std::string *out) const;
  // Of the index, then of the primary key as it lies behind it.
  const std::vector<Key_part_codec> &stored() const { return m_stored; }
  // Where in `stored` a column lies that the server counts as `part` of the key.
  size_t stored_place(size_t part) const;

private:
  // Of the index, then what the server appends.
  std::vector<Key_part_codec> m_parts;
  size_t m_own;
  std::vector<Key_part_codec> m_stored;
  // For each column of the primary key, which of `m_parts` has its value.
  std::vector<size_t> m_places;
};

// The least bytes above all that begin with `prefix`; false if there are none.
bool after_prefix(std::string *prefix);

#endif
