#include "spatial.h"

#include "wire.h"

namespace
{
// How cells are cut: another number, if that ever changes.
const uchar GRID= 1;
const uint DOUBLE_BYTES= 8, MBR_BYTES= 4 * DOUBLE_BYTES;

double double_at(const uchar *at)
{
  double value;
  float8get(value, at);
  return value;
}
} // namespace

std::string Spatial_definition::encode() const
{
  Writer out;
  out.begin_key(SEVERAL_CELLS);
  out.number(GRID);
  out.number(column);
  return out.m_out;
}

bool Spatial_definition::decode(const std::string &bytes)
{
  Reader in(reinterpret_cast<const uchar *>(bytes.data()), bytes.size());
  if (!in.begins_key(SEVERAL_CELLS) || in.number() != GRID)
    return false;
  column= static_cast<uint>(in.number());
  return in.ended();
}

weir_mbr mbr_of_image(const uchar *image)
{
  weir_mbr mbr;
  mbr.x_min= double_at(image);
  mbr.x_max= double_at(image + DOUBLE_BYTES);
  mbr.y_min= double_at(image + 2 * DOUBLE_BYTES);
  mbr.y_max= double_at(image + 3 * DOUBLE_BYTES);
  return mbr;
}

void Spatial_codec::encode_record(const uchar *record, std::string *payload) const
{
  uchar image[MBR_BYTES], room[WEIR_MBR_ENTRIES_BYTES];
  const uchar *at= m_column->ptr + (record - m_column->table->record[0]);
  m_column->get_key_image(image, sizeof(image), at, Field::itMBR);
  weir_mbr mbr= mbr_of_image(image);
  size_t used;
  if (weir_mbr_entries(&mbr, room, &used) == WEIR_OK)
    payload->append(reinterpret_cast<const char *>(room), used);
}
