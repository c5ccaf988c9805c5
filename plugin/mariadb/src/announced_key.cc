// The description of a key that ALTER is making.
#include "key_codec.h"

namespace
{
// Of a column of a key: its number, its length, its flags.
const size_t ANNOUNCED_PART= 2 + 2 + 2;
} // namespace

std::string Announced_key::describe(const KEY *key)
{
  std::string out;
  for (uint i= 0; i < key->user_defined_key_parts; i++)
  {
    const KEY_PART_INFO *part= &key->key_part[i];
    uchar bytes[ANNOUNCED_PART];
    int2store(bytes, part->fieldnr);
    int2store(bytes + 2, part->length);
    int2store(bytes + 4, part->key_part_flag);
    out.append(reinterpret_cast<char *>(bytes), sizeof(bytes));
  }
  return out;
}

bool Announced_key::read(TABLE *table, const std::string &description)
{
  const uchar *at= reinterpret_cast<const uchar *>(description.data());
  if (description.empty() || description.size() % ANNOUNCED_PART)
    return false;
  for (const uchar *end= at + description.size(); at < end; at+= ANNOUNCED_PART)
  {
    KEY_PART_INFO part= KEY_PART_INFO();
    part.fieldnr= uint2korr(at);
    part.length= uint2korr(at + 2);
    part.key_part_flag= uint2korr(at + 4);
    if (part.fieldnr < 1 || part.fieldnr > table->s->fields)
      return false;
    Field *field= part.field= table->field[part.fieldnr - 1];
    part.type= static_cast<uint8>(field->key_type());
    part.null_bit= field->null_bit;
    if (field->null_ptr)
      part.null_offset= static_cast<uint>(field->null_ptr - table->record[0]);
    // As the server has it when it opens a table: a field of its own for the beginning of a column.
    if (field->key_length() != part.length && !(field->flags & BLOB_FLAG))
    {
      part.field= field->make_new_field(&table->mem_root, table, false);
      if (!part.field)
        return false;
      part.field->field_length= part.length;
    }
    m_parts.push_back(part);
  }
  m_key.key_part= m_parts.data();
  m_key.user_defined_key_parts= static_cast<uint>(m_parts.size());
  return true;
}
