// Many ranges of one index at once: the server's own way (DsMrr_impl) of sorting keys before they are looked up, and
// rows before they are read. It does so with a second handler on the index, a clone of this one.
#include "ha_weir.h"

DsMrr_impl *ha_weir::ranges_of_constants(uint *flags)
{
  m_mrr.init(this, table);
  // As InnoDB: a read with locks goes in the order of the index. Temporary tables are read with locks for another reason.
  if (m_lock != WEIR_LOCK_NONE && table_share->tmp_table == NO_TMP_TABLE)
    *flags|= HA_MRR_USE_DEFAULT_IMPL;
  return &m_mrr;
}

ha_rows ha_weir::multi_range_read_info(uint keyno, uint ranges, uint keys, uint key_parts, uint *size, uint *flags,
                                       Cost_estimate *cost)
{
  m_mrr.init(this, table);
  return m_mrr.dsmrr_info(keyno, ranges, keys, key_parts, size, flags, cost);
}

int ha_weir::multi_range_read_init(RANGE_SEQ_IF *seq, void *seq_init_param, uint ranges, uint mode,
                                   HANDLER_BUFFER *buffer)
{
  m_mrr_of_join= mode & HA_MRR_SINGLE_POINT;
  if (active_index != MAX_KEY && m_indexes[active_index].spatial)
    mode|= HA_MRR_USE_DEFAULT_IMPL;
  return report_to_join(m_mrr.dsmrr_init(this, seq, seq_init_param, ranges, mode, buffer));
}

int ha_weir::multi_range_read_next(range_id_t *range)
{
  int error;
  // A row may be gone, or be passed over, between the look at its entry and its own turn.
  do
    error= m_mrr.dsmrr_next(range);
  while (error == HA_ERR_KEY_NOT_FOUND);
  return report_to_join(error);
}

// A join by batches of keys takes every error for the end of the rows: it has to be reported to the statement here.
int ha_weir::report_to_join(int error)
{
  if (error && error != HA_ERR_END_OF_FILE && m_mrr_of_join && !ha_thd()->is_error())
    print_error(error, MYF(0));
  return error;
}

int ha_weir::multi_range_read_explain_info(uint mode, char *text, size_t size)
{
  return m_mrr.dsmrr_explain_info(mode, text, size);
}
