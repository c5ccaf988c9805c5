#include "row_layout.h"

#include <algorithm>

#include "wire.h"

Column_kind kind_of(const Field *field)
{
  if (field->flags & BLOB_FLAG)
    return static_cast<const Field_blob *>(field)->pack_length_no_ptr();
  switch (field->real_type())
  {
  case MYSQL_TYPE_VARCHAR:
  case MYSQL_TYPE_VARCHAR_COMPRESSED:
  case MYSQL_TYPE_STRING:
    return field->field_length > 255 ? 2 : 1;
  case MYSQL_TYPE_NULL:
    return FIXED_KIND;
  default:
    return FIXED_KIND + field->pack_length();
  }
}

// Behind the bytes of length; nullptr: they are not all there.
static const uchar *take_length(Column_kind kind, const uchar *at, const uchar *end, size_t *length)
{
  if (kind > 4 || static_cast<size_t>(end - at) < kind)
    return nullptr;
  *length= 0;
  for (uint i= 0; i < kind; i++)
    *length|= static_cast<size_t>(at[i]) << 8 * i;
  return at + kind;
}

const uchar *skip_value(Column_kind kind, const uchar *at, const uchar *end)
{
  size_t length= kind - FIXED_KIND;
  if (kind < FIXED_KIND)
    at= take_length(kind, at, end, &length);
  return !at || static_cast<size_t>(end - at) < length ? nullptr : at + length;
}

const uchar *unpack_value(Field *field, Column_kind kind, const uchar *at, const uchar *end)
{
  Column_kind now= kind_of(field);
  if (kind == now)
    return field->unpack(field->ptr, at, end, 0);
  // Only values with a length before them become another kind, and only a longer one.
  size_t length= 0;
  const uchar *value= take_length(kind, at, end, &length);
  if (!value || now < kind || now > 2 || static_cast<size_t>(end - value) < length)
    return nullptr;
  std::string again;
  for (uint i= 0; i < now; i++)
    again.push_back(static_cast<char>(length >> 8 * i));
  again.append(reinterpret_cast<const char *>(value), length);
  const uchar *bytes= reinterpret_cast<const uchar *>(again.data());
  return field->unpack(field->ptr, bytes, bytes + again.size(), 0) ? value + length : nullptr;
}

Added_column added_column(Field *field)
{
  Added_column column;
  column.null= field->is_real_null();
  if (column.null)
    return column;
  size_t room= field->pack_length() + 8;
  if (field->flags & BLOB_FLAG)
    room+= static_cast<Field_blob *>(field)->get_length();
  std::vector<uchar> packed(room);
  uchar *end= field->pack(packed.data(), field->ptr, UINT_MAX32);
  column.packed.assign(packed.begin(), packed.begin() + (end - packed.data()));
  return column;
}

uint Row_layouts::next_id() const
{
  uint next= 0;
  for (const Row_layout &layout : all)
    for (const Laid_column &column : layout)
      next= std::max(next, column.id + 1);
  return next;
}

const Later_column *Row_layouts::find_later(uint id) const
{
  for (const Later_column &column : later)
    if (column.id == id)
      return &column;
  return nullptr;
}

const Laid_column *Row_layouts::find_first(uint id) const
{
  for (const Row_layout &layout : all)
    for (const Laid_column &column : layout)
      if (column.id == id)
        return &column;
  return nullptr;
}

namespace
{
// Of these bytes. Of a table with any the engine notes that a build without layouts cannot read it.
const uchar FORMAT= 1;
} // namespace

std::string Row_layouts::encode() const
{
  Writer out;
  out.number(FORMAT);
  out.number(plain);
  out.number(all.size());
  for (const Row_layout &layout : all)
  {
    out.number(layout.size());
    for (const Laid_column &column : layout)
    {
      out.number(column.id);
      out.number(column.kind);
      out.number(column.nullable);
    }
  }
  out.number(later.size());
  for (const Later_column &column : later)
  {
    out.number(column.id);
    out.number(column.kind);
    out.number(column.value.null);
    out.text(column.value.packed);
  }
  return out.m_out;
}

Layouts_pointer Row_layouts::decode(const uchar *bytes, size_t length)
{
  Reader in(bytes, length);
  if (!length)
    return nullptr;
  std::shared_ptr<Row_layouts> layouts= std::make_shared<Row_layouts>();
  layouts->plain= 0;
  // Of a later format nothing is known, so that the table cannot be opened (Row_codec::is_sound).
  if (in.number() != FORMAT)
    return layouts;
  layouts->plain= static_cast<uint>(in.number());
  for (ulonglong n= in.number(); n > 0 && !in.ended(); n--)
  {
    Row_layout layout;
    for (ulonglong columns= in.number(); columns > 0 && !in.ended(); columns--)
    {
      Laid_column column;
      column.id= static_cast<uint>(in.number());
      column.kind= static_cast<Column_kind>(in.number());
      column.nullable= in.number();
      layout.push_back(column);
    }
    layouts->all.push_back(layout);
  }
  for (ulonglong n= in.number(); n > 0 && !in.ended(); n--)
  {
    Later_column column;
    column.id= static_cast<uint>(in.number());
    column.kind= static_cast<Column_kind>(in.number());
    column.value.null= in.number();
    column.value.packed= in.text();
    layouts->later.push_back(column);
  }
  return layouts;
}
