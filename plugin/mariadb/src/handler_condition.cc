// Conditions and filters that the server pushes down: they are judged by an entry of an index, before its row is looked at.
#include "ha_weir.h"

Item *ha_weir::idx_cond_push(uint index, Item *condition)
{
  // It is judged by what the entry holds.
  const Weir_index &by= m_indexes[index];
  if (by.place == WEIR_ROWS)
    return condition;
  // Where the key has the beginning of a column: by those that it gives back, and the primary key's.
  List<Item_field> items;
  if (!by.covers && condition->walk(&Item::collect_item_field_processor, false, &items))
    return condition;
  List_iterator_fast<Item_field> each(items);
  while (const Item_field *item= each++)
    if (item->field->table == table && !by.key.gives_back(item->field) && !m_primary.gives_back(item->field))
      return condition;
  pushed_idx_cond= condition;
  pushed_idx_cond_keyno= index;
  in_range_check_pushed_down= by.covers;
  return nullptr;
}

bool ha_weir::rowid_filter_push(Rowid_filter *filter)
{
  pushed_rowid_filter= filter;
  return false;
}

// The columns of the index and of the primary key, from the entry alone; of an index that does not cover, those of them
// that their keys give back.
int ha_weir::decode_entry(uchar *buf)
{
  const Weir_index &index= m_indexes[active_index];
  if (!has_primary() && m_found.primary_key.len == sizeof(m_row_id))
    memcpy(m_row_id, m_found.primary_key.data, sizeof(m_row_id));
  const weir_bytes own= m_found.index_key, primary= m_found.primary_key;
  bool sound;
  if (index.covers)
    sound= index.key.decode(own.data, own.len, buf) &&
           (!has_primary() || m_primary.decode(primary.data, primary.len, buf)) &&
           index.payload.decode(m_found.payload.data, m_found.payload.len, buf);
  else
    sound= index.key.decode_past(own.data, own.len, buf) &&
           (!has_primary() || m_primary.decode_past(primary.data, primary.len, buf));
  return sound ? 0 : HA_ERR_CRASHED;
}

// Whether there is a condition to judge by entries that do not show whether they are in the range: then the walk ends
// with it.
bool ha_weir::judges_by_part() const
{
  return pushed_idx_cond && pushed_idx_cond_keyno == active_index && !m_indexes[active_index].covers;
}

check_result_t ha_weir::check_condition()
{
  key_range *end= end_range;
  if (judges_by_part())
    end_range= nullptr;
  check_result_t fits= handler_index_cond_check(this);
  end_range= end;
  return fits;
}
