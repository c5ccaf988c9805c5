// SPATIAL keys: what is kept of one, and the rectangles of rows.
#ifndef WEIR_PLUGIN_SPATIAL_H
#define WEIR_PLUGIN_SPATIAL_H

#include <string>

#include "server.h"
#include "weir.h"

// Kept by the engine with the index.
struct Spatial_definition
{
  // Of a key that ALTER is making: the number of its column, from 1 on, for writers of the table meanwhile.
  uint column= 0;

  std::string encode() const;
  // False: the bytes are of a later version, or none.
  bool decode(const std::string &bytes);
};

// The smallest rectangle around a geometry, as the server has it in a key.
weir_mbr mbr_of_image(const uchar *image);

class Spatial_codec
{
public:
  explicit Spatial_codec(Field *column) : m_column(column) {}

  // What an index keeps of a record: nothing of an empty geometry, which no predicate holds for.
  void encode_record(const uchar *record, std::string *payload) const;

private:
  Field *m_column;
};

#endif
