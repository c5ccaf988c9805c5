#include "alter_stage.h"

#include <algorithm>

namespace
{

PSI_stage_info reading= {0, "altering table (reading rows, sorting index entries)", PSI_FLAG_STAGE_PROGRESS};
PSI_stage_info loading= {0, "altering table (loading index entries)", PSI_FLAG_STAGE_PROGRESS};

} // namespace

void register_alter_stages()
{
  PSI_stage_info *all[]= {&reading, &loading};
  mysql_stage_register("weir", all, array_elements(all));
}

Alter_stage::Alter_stage(THD *thd, ulonglong rows, ulonglong entries, bool reads)
    : m_thd(thd), m_entries(entries), m_steps(0), m_steps_expected(0), m_in_place(reads), m_reading(reads),
      m_has_read(false)
{
  m_thd->backup_stage(&m_before);
  if (m_in_place)
    thd_progress_init(m_thd, 2);
  enter(reads ? &reading : &loading, reads ? rows : entries);
}

Alter_stage::~Alter_stage()
{
  if (m_in_place)
    thd_progress_end(m_thd);
  THD_STAGE_INFO(m_thd, m_before);
}

void Alter_stage::enter(PSI_stage_info *stage, ulonglong steps)
{
  m_steps= 0;
  m_steps_expected= steps;
  m_thd->enter_stage(stage, __func__, __FILE__, __LINE__);
  mysql_stage_set_work_estimated(m_thd->m_stage_progress_psi, steps);
}

void Alter_stage::loads()
{
  m_reading= false;
  if (m_in_place)
    thd_progress_next_stage(m_thd);
  enter(&loading, m_entries);
}

// What is expected is an estimate: it is never shown as less than what is done.
void Alter_stage::report()
{
  ulonglong expected= std::max(m_steps, m_steps_expected);
  mysql_stage_set_work_estimated(m_thd->m_stage_progress_psi, expected);
  mysql_stage_set_work_completed(m_thd->m_stage_progress_psi, m_steps);
  if (m_in_place)
    thd_progress_report(m_thd, m_steps, expected);
}
