#include "alter_columns.h"

#include <algorithm>

#include "row_codec.h"

namespace
{

// Each new column with what it was.
template <class Visit> bool each_column(const Alter_info *said, Visit visit)
{
  List_iterator_fast<Create_field> each(const_cast<Alter_info *>(said)->create_list);
  for (uint nth= 0; Create_field *column= each++; nth++)
    if (!visit(*column, nth))
      return false;
  return true;
}

// Whether all rows that there are get the same value.
bool has_one_value(const Field *column)
{
  if (column->vcol_info || column->unireg_check == Field::NEXT_NUMBER)
    return false;
  const Virtual_column_info *value= column->default_value;
  return !value || column->has_default_now_unireg_check() || (!value->flags && value->expr->const_item());
}

bool is_in_a_key(const TABLE *table, const Field *field)
{
  for (uint i= 0; i < table->s->keys; i++)
    for (uint part= 0; part < table->key_info[i].user_defined_key_parts; part++)
      if (table->key_info[i].key_part[part].fieldnr == field->field_index + 1U)
        return true;
  return false;
}

bool is_named(CHARSET_INFO *cs, const char *name) { return !strcmp(cs->cs_name.str, name); }

// Whether all texts of one character set are the same bytes in the other.
bool is_part_of(CHARSET_INFO *a, CHARSET_INFO *b)
{
  if (!strcmp(a->cs_name.str, b->cs_name.str))
    return true;
  return (is_named(a, "utf8mb3") && is_named(b, "utf8mb4")) ||
         (is_named(a, "ascii") && (is_named(b, "utf8mb3") || is_named(b, "utf8mb4") || is_named(b, "latin1")));
}

Row_layout layout_of(const std::vector<Field *> &fields)
{
  Row_layout layout;
  for (const Field *field : fields)
    layout.push_back({static_cast<uint>(layout.size()), kind_of(field), field->real_maybe_null()});
  return layout;
}

std::vector<Field *> columns_of_rows(const TABLE *table)
{
  Key_codec primary;
  if (primary_of(table))
    primary= Key_codec(primary_of(table));
  return columns_of_rows(table, &primary);
}

} // namespace

void take_value(Field *column)
{
  if (column->has_default_now_unireg_check())
  {
    column->set_notnull();
    column->set_time();
  }
  else
    column->set_default();
}

bool can_grow(const Field &field, const Column_definition &then)
{
  if (!field.stored_in_db() || field.vcol_info || then.vcol_info || then.type_handler() != field.type_handler())
    return false;
  switch (field.real_type())
  {
  case MYSQL_TYPE_VARCHAR:
    if (then.length < field.field_length || then.char_length < field.char_length())
      return false;
    break;
  case MYSQL_TYPE_STRING:
    if (then.char_length != field.char_length())
      return false;
    break;
  case MYSQL_TYPE_TINY_BLOB:
  case MYSQL_TYPE_BLOB:
  case MYSQL_TYPE_MEDIUM_BLOB:
  case MYSQL_TYPE_LONG_BLOB:
    if (then.pack_length != field.pack_length())
      return false;
    break;
  default:
    return false;
  }
  if (field.compression_method() || then.compression_method())
    return false;
  if (then.charset == field.charset())
    return true;
  // How values compare is in the keys, and may be in what is worked out from them.
  const TABLE *table= field.table;
  return field.has_charset() && is_part_of(field.charset(), then.charset) && !is_in_a_key(table, &field) &&
         !table->vfield && !(field.flags & FIELD_IN_PART_FUNC_FLAG);
}

const char *why_not_as_they_are(const TABLE *table, const TABLE *altered, const Alter_info *said,
                                const Table_definition &now)
{
  uint columns= 0;
  bool same= each_column(said, [&](const Create_field &column, uint nth) {
    columns++;
    if (nth >= altered->s->fields)
      return false;
    const Field *then= altered->field[nth], *before= column.field;
    if (!then->stored_in_db())
      return !before || !before->stored_in_db();
    if (!before)
      return has_one_value(then);
    if (!before->stored_in_db())
      return false;
    Column_kind kind= kind_of(before), new_kind= kind_of(then);
    if (kind != new_kind && (new_kind > 2 || kind > new_kind))
      return false;
    // Its keys have a byte for NULL, or not.
    return before->real_maybe_null() == then->real_maybe_null() || !is_in_a_key(table, before);
  });
  // Beside hidden ones, which are not described.
  if (!same || columns != altered->s->fields)
    return "";
  if (now.layouts && now.layouts->all.size() > Row_layouts::MOST)
    return "columns have changed so often without a copy that the rows are to be written anew";
  return nullptr;
}

bool can_be_written_anew(const TABLE *altered, const Alter_info *said)
{
  uint columns= 0;
  bool can= each_column(said, [&](const Create_field &column, uint nth) {
    columns++;
    if (nth >= altered->s->fields)
      return false;
    const Field *then= altered->field[nth], *before= column.field;
    if (!then->stored_in_db())
      return true;
    if (!before)
      return has_one_value(then);
    if (!before->stored_in_db() || (before->vcol_info && !then->vcol_info) || (!before->vcol_info && then->vcol_info))
      return false;
    return before->is_equal(column) || can_grow(*before, column);
  });
  return can && columns == altered->s->fields;
}

std::vector<std::pair<Field *, Field *>> columns_kept(const TABLE *altered, const Alter_info *said)
{
  std::vector<std::pair<Field *, Field *>> kept;
  each_column(said, [&](const Create_field &column, uint nth) {
    if (column.field && altered->field[nth]->stored_in_db())
      kept.emplace_back(column.field, altered->field[nth]);
    return true;
  });
  return kept;
}

std::vector<Field *> columns_that_come(const TABLE *altered, const Alter_info *said)
{
  std::vector<Field *> come;
  each_column(said, [&](const Create_field &column, uint nth) {
    if (!column.field && altered->field[nth]->stored_in_db())
      come.push_back(altered->field[nth]);
    return true;
  });
  return come;
}

bool keeps_order(const TABLE *table, const TABLE *altered, const Alter_info *said)
{
  const KEY *now= primary_of(table), *then= primary_of(altered);
  if (!now || !then)
    return !now && !then;
  if (now->user_defined_key_parts != then->user_defined_key_parts)
    return false;
  for (uint i= 0; i < now->user_defined_key_parts; i++)
  {
    const KEY_PART_INFO &was= now->key_part[i], &is= then->key_part[i];
    bool same= !each_column(said, [&](const Create_field &column, uint nth) {
      return nth + 1U != is.fieldnr || !column.field || column.field->field_index + 1U != was.fieldnr ||
             !column.field->is_equal(column);
    });
    if (!same || was.length != is.length || (was.key_part_flag & HA_REVERSE_SORT) != (is.key_part_flag & HA_REVERSE_SORT))
      return false;
  }
  return true;
}

bool changes_one_of(const Alter_info *said, const TABLE *table, const std::vector<std::string> &columns)
{
  for (Field **field= table->field; *field; field++)
  {
    bool stays= !each_column(said, [&](const Create_field &column, uint) {
      return column.field != *field || !column.field->is_equal(column);
    });
    std::string name((*field)->field_name.str, (*field)->field_name.length);
    if (!stays && std::any_of(columns.begin(), columns.end(), [&](const std::string &c) { return same_column(c, name); }))
      return true;
  }
  return false;
}

std::vector<Field *> not_null_columns(const TABLE *table, const Alter_info *said)
{
  std::vector<Field *> columns;
  each_column(said, [&](const Create_field &column, uint) {
    if (column.field && column.field->real_maybe_null() && (column.flags & NOT_NULL_FLAG) && column.field->stored_in_db())
      columns.push_back(column.field);
    return true;
  });
  return columns;
}

void lay_out(const TABLE *table, TABLE *altered, const Alter_info *said, const Table_definition &now,
             Table_definition *then)
{
  const std::vector<Field *> before= columns_of_rows(table), after= columns_of_rows(altered);
  const Row_layout old= now.layouts ? now.layouts->now() : layout_of(before);
  uint next= now.layouts ? now.layouts->next_id() : static_cast<uint>(old.size());
  Row_layout present= layout_of(after);
  std::vector<Later_column> later;
  for (size_t i= 0; i < after.size(); i++)
  {
    const Field *origin= nullptr;
    each_column(said, [&](const Create_field &column, uint nth) {
      if (nth == after[i]->field_index)
        origin= column.field;
      return nth != after[i]->field_index;
    });
    size_t place= std::find(before.begin(), before.end(), origin) - before.begin();
    if (place < before.size())
    {
      present[i].id= old[place].id;
      continue;
    }
    take_value(after[i]);
    present[i].id= next++;
    later.push_back({present[i].id, present[i].kind, added_column(after[i])});
  }
  then->added= now.added;
  then->layouts= now.layouts;
  if (present == old)
    return;
  // What comes behind all others is known by how many there are.
  if (!now.layouts && present.size() == old.size() + later.size() && std::equal(old.begin(), old.end(), present.begin()))
  {
    for (const Later_column &column : later)
      then->added.push_back(column.value);
    return;
  }
  std::shared_ptr<Row_layouts> layouts= std::make_shared<Row_layouts>();
  if (now.layouts)
    *layouts= *now.layouts;
  else
  {
    layouts->plain= static_cast<uint>(old.size() - std::min(old.size(), now.added.size()));
    layouts->all.push_back(old);
    for (size_t i= 0; i < now.added.size() && i < old.size(); i++)
    {
      const Laid_column &column= old[old.size() - 1 - i];
      layouts->later.push_back({column.id, column.kind, now.added[now.added.size() - 1 - i]});
    }
  }
  layouts->all.push_back(present);
  layouts->later.insert(layouts->later.end(), later.begin(), later.end());
  then->added.clear();
  then->layouts= layouts;
}
