// What an ALTER that takes long is at, for people: in SHOW PROCESSLIST, with how much of it is done, and as stages of the
// performance schema.
#ifndef WEIR_PLUGIN_ALTER_STAGE_H
#define WEIR_PLUGIN_ALTER_STAGE_H

#include "server.h"

// Once, as the plugin is loaded.
void register_alter_stages();

// Of a session, while the engine fills indexes of a table. The engine asks whether to go on at each row that it reads,
// and at each entry that it loads.
class Alter_stage
{
public:
  // `rows`: about how many there are; `entries`: of the indexes together. `reads`: rows are read first, and the server has
  // no stages of progress of its own meanwhile.
  Alter_stage(THD *thd, ulonglong rows, ulonglong entries, bool reads);
  // The session's state is again what it was.
  ~Alter_stage();
  Alter_stage(const Alter_stage &)= delete;

  // An entry has been made of the row that was asked for last.
  void has_read() { m_has_read= true; }
  void step()
  {
    // Of each row that is read at least one entry is made: a step without one is an entry that is loaded.
    if (unlikely(m_reading && m_steps && !m_has_read))
      loads();
    m_has_read= false;
    if (unlikely(++m_steps % STEPS_BETWEEN_REPORTS == 0))
      report();
  }

private:
  static const ulonglong STEPS_BETWEEN_REPORTS= 1024;

  void enter(PSI_stage_info *stage, ulonglong steps);
  void loads();
  void report();

  THD *m_thd;
  PSI_stage_info m_before;
  ulonglong m_entries, m_steps, m_steps_expected;
  bool m_in_place, m_reading, m_has_read;
};

#endif
