#include "definition.h"

#include "wire.h"

namespace
{

const uchar FORMAT= 1;

bool begins_with(const Index_definition &index, const std::vector<std::string> &columns,
                 const std::vector<std::string> *kinds)
{
  if (index.parts.size() < columns.size())
    return false;
  for (size_t i= 0; i < columns.size(); i++)
    if (!index.parts[i].whole || !same_column(index.parts[i].column, columns[i]) ||
        (kinds && (*kinds)[i] != index.parts[i].kind))
      return false;
  return true;
}

} // namespace

bool same_column(const std::string &a, const std::string &b)
{
  return same_name(a.c_str(), b.c_str());
}

const Index_definition *Table_definition::find_index(const std::vector<std::string> &columns,
                                                     const std::vector<std::string> *kinds) const
{
  const Index_definition *best= nullptr;
  for (const Index_definition &index : indexes)
  {
    if (!begins_with(index, columns, kinds))
      continue;
    bool exact= index.unique && index.parts.size() == columns.size();
    if (exact && index.primary)
      return &index;
    if (!best || (exact && !(best->unique && best->parts.size() == columns.size())))
      best= &index;
  }
  return best;
}

std::string Table_definition::encode() const
{
  Writer out;
  uchar head[8];
  int8store(head, version);
  out.m_out.assign(reinterpret_cast<char *>(head), sizeof(head));
  out.number(FORMAT);
  out.number(versioned);
  out.number(indexes.size());
  for (const Index_definition &index : indexes)
  {
    out.text(index.name);
    out.number(index.unique | index.primary << 1);
    out.number(index.parts.size());
    for (const Part_definition &part : index.parts)
    {
      out.text(part.column);
      out.text(part.kind);
      out.number(part.nullable | part.descending << 1 | part.whole << 2);
    }
  }
  out.number(foreign_keys.size());
  for (const Foreign_key_definition &key : foreign_keys)
  {
    out.text(key.name);
    out.text(key.parent);
    out.texts(key.columns);
    out.texts(key.parent_columns);
    out.number(key.on_delete);
    out.number(key.on_update);
    out.number(key.carried);
  }
  out.number(added.size());
  for (const Added_column &column : added)
  {
    out.number(column.null);
    out.text(column.packed);
  }
  out.text(replaces);
  out.text(altered_as);
  if (discarded)
    out.number(1);
  return out.m_out;
}

Table_definition Table_definition::decode(const uchar *bytes, size_t length)
{
  Table_definition table;
  if (length < 8)
    return table;
  table.version= uint8korr(bytes);
  Reader in(bytes + 8, length - 8);
  if (in.number() != FORMAT)
    return table;
  table.versioned= in.number();
  for (ulonglong n= in.number(); n > 0 && !in.ended(); n--)
  {
    Index_definition index;
    index.name= in.text();
    ulonglong marks= in.number();
    index.unique= marks & 1;
    index.primary= marks & 2;
    for (ulonglong parts= in.number(); parts > 0 && !in.ended(); parts--)
    {
      Part_definition part;
      part.column= in.text();
      part.kind= in.text();
      marks= in.number();
      part.nullable= marks & 1;
      part.descending= marks & 2;
      part.whole= marks & 4;
      index.parts.push_back(part);
    }
    table.indexes.push_back(index);
  }
  for (ulonglong n= in.number(); n > 0 && !in.ended(); n--)
  {
    Foreign_key_definition key;
    key.name= in.text();
    key.parent= in.text();
    key.columns= in.texts();
    key.parent_columns= in.texts();
    key.on_delete= static_cast<enum_fk_option>(in.number());
    key.on_update= static_cast<enum_fk_option>(in.number());
    key.carried= in.number();
    table.foreign_keys.push_back(key);
  }
  for (ulonglong n= in.number(); n > 0 && !in.ended(); n--)
  {
    Added_column column;
    column.null= in.number();
    column.packed= in.text();
    table.added.push_back(column);
  }
  table.replaces= in.text();
  table.altered_as= in.text();
  table.discarded= in.number();
  return table;
}

Table_definition describe(const TABLE *table)
{
  Table_definition out;
  out.versioned= table->s->versioned;
  for (uint i= 0; i < table->s->keys; i++)
  {
    const KEY *key= &table->key_info[i];
    if (key->algorithm == HA_KEY_ALG_LONG_HASH || is_unordered(key))
      continue;
    Index_definition index;
    index.name.assign(key->name.str, key->name.length);
    index.primary= i == table->s->primary_key;
    index.unique= key->flags & HA_NOSAME;
    for (uint nth= 0; nth < key->user_defined_key_parts; nth++)
    {
      const KEY_PART_INFO *info= &key->key_part[nth];
      const Field *column= table->field[info->fieldnr - 1];
      Part_definition part;
      part.column.assign(column->field_name.str, column->field_name.length);
      part.kind= Key_part_codec(info).kind_of_values();
      part.nullable= info->null_bit;
      part.descending= info->key_part_flag & HA_REVERSE_SORT;
      part.whole= !(column->flags & BLOB_FLAG) && info->length == column->key_length();
      index.parts.push_back(part);
    }
    out.indexes.push_back(index);
  }
  return out;
}
