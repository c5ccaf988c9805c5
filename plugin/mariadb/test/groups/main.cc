// What is decided about the binary log's groups (src/group_plan.h), over a clock of its own. test/groups.sh has a server do it.
//   group_plan
#include <cstdio>
#include <initializer_list>

#include "../../src/group_plan.h"

namespace
{

using micros= Group_plan::micros;

int failures= 0;

#define HOLDS(what) ((what) ? void() : (void)(failures++, printf("group_plan: line %d does not hold: %s\n", __LINE__, #what)))

struct Clock
{
  micros now= micros(1000000);
  void passes(int64_t us) { now+= micros(us); }
};

void join(Group_plan *plan, int count)
{
  for (int i= 0; i < count; i++)
    plan->joins();
}

// Commits that stand in line are written in `takes`, while `meanwhile` more come.
void write_group(Group_plan *plan, Clock *clock, int64_t takes, int meanwhile= 0)
{
  plan->begins(clock->now);
  clock->passes(takes);
  join(plan, meanwhile);
  plan->written(clock->now);
}

// Groups of `count`, each written in `takes`, while `meanwhile` more come that are the first of the next.
void write_groups(Group_plan *plan, Clock *clock, int groups, int count, int64_t takes, int meanwhile= 0)
{
  for (int group= 0; group < groups; group++)
  {
    join(plan, group ? count - meanwhile : count);
    write_group(plan, clock, takes, meanwhile);
  }
}

// Also where it stands still for a tenth of a second now and then.
void a_quick_disk_holds_no_group()
{
  Group_plan plan;
  Clock clock;
  for (int group= 0; group < 10000; group++)
  {
    write_groups(&plan, &clock, 1, 6, group % 1000 ? 900 : 100000, 3);
    HOLDS(plan.wait_limit() == micros(0));
  }
}

void a_slow_disk_is_patient_for_three_groups()
{
  Group_plan plan;
  Clock clock;
  write_groups(&plan, &clock, 1000, 6, 5000, 3);
  HOLDS(plan.wait_limit() > micros(14000) && plan.wait_limit() <= micros(15000));
  // Never longer than 20 ms.
  write_groups(&plan, &clock, 1000, 6, 300000, 3);
  HOLDS(plan.wait_limit() > micros(19500) && plan.wait_limit() <= micros(20000));
}

// Waiting relieves a disk: that is no reason to stop, until it has been quick for long; and no longer after an hour of
// groups that took a second.
void a_disk_that_was_slow_is_waited_for_some_hundred_groups_more()
{
  for (int64_t slow: {6000, 1000000})
  {
    Group_plan plan;
    Clock clock;
    write_groups(&plan, &clock, 3600, 6, slow, 3);
    write_groups(&plan, &clock, 400, 6, 800, 3);
    HOLDS(plan.wait_limit() > micros(6000));
    write_groups(&plan, &clock, 800, 6, 800, 3);
    HOLDS(plan.wait_limit() == micros(0));
  }
}

void one_that_is_alone_is_never_waited_with()
{
  Group_plan plan;
  Clock clock;
  write_groups(&plan, &clock, 500, 1, 6000);
  HOLDS(plan.wait_limit() == micros(0));
}

// The kernel's limit: 200 writes at once in each tenth of a second, eight of them for a group.
void a_limited_disk_is_slow_between_its_standstills_too()
{
  Group_plan plan;
  Clock clock;
  for (int tenth= 0; tenth < 100; tenth++)
    for (int group= 0; group < 25; group++)
    {
      write_groups(&plan, &clock, 1, 6, group ? 600 : 85600, 3);
      if (tenth > 10)
        HOLDS(plan.wait_limit() > micros(0));
    }
}

// Waited for: those of the last group, those that came while it was written, and one.
void one_more_is_expected_and_after_a_vain_wait_sixteen_times_none()
{
  Group_plan plan;
  Clock clock;
  write_groups(&plan, &clock, 500, 4, 6000);
  for (int i= 0; i < 4; i++)
  {
    HOLDS(!plan.is_complete());
    plan.joins();
  }
  HOLDS(!plan.is_complete());
  plan.joins();
  HOLDS(plan.is_complete());
  plan.has_waited();

  write_group(&plan, &clock, 6000);
  join(&plan, 5);
  // The sixth did not come.
  HOLDS(!plan.is_complete());
  plan.has_waited();
  for (int group= 0; group < 16; group++)
  {
    write_group(&plan, &clock, 6000);
    join(&plan, 5);
    HOLDS(plan.is_complete());
    plan.has_waited();
  }
  write_group(&plan, &clock, 6000);
  join(&plan, 5);
  HOLDS(!plan.is_complete());
}

void newcomers_are_expected_beside_returning_commits()
{
  Group_plan plan;
  Clock clock;
  write_groups(&plan, &clock, 500, 5, 6000, 3);
  // Three of eight are in line already; five come back, and one more is hoped for.
  join(&plan, 5);
  HOLDS(!plan.is_complete());
  plan.joins();
  HOLDS(plan.is_complete());
}

void a_group_is_begun_once_and_by_queued_commits()
{
  Group_plan plan;
  Clock clock;
  HOLDS(!plan.begins(clock.now));
  plan.joins();
  HOLDS(plan.begins(clock.now));
  // Two more; their gate is passed before the first are written.
  plan.joins();
  plan.joins();
  HOLDS(!plan.begins(clock.now));
  plan.written(clock.now);
  HOLDS(plan.begins(clock.now));
  plan.written(clock.now);
  // Another engine's.
  HOLDS(!plan.begins(clock.now));
}

// A commit of the group before, whose turn comes late, ends neither this group nor its timing.
void a_latecomer_ends_no_group()
{
  Group_plan plan;
  Clock clock;
  for (int group= 0; group < 500; group++)
  {
    Group_plan::place first= plan.joins();
    Group_plan::place late= plan.joins();
    HOLDS(first + 1 == late);
    plan.begins(clock.now);
    clock.passes(3000);
    plan.written(clock.now, first);
    plan.written(clock.now, late);
    Group_plan::place next= plan.joins();
    plan.joins();
    plan.begins(clock.now);
    clock.passes(10);
    plan.written(clock.now, late);
    plan.written(clock.now, 0);
    HOLDS(!plan.begins(clock.now));
    clock.passes(2990);
    plan.written(clock.now, next);
  }
  // All groups took 3 ms; were latecomers taken for theirs, half would have taken nothing.
  HOLDS(plan.wait_limit() > micros(8500));
}

} // namespace

int main()
{
  a_quick_disk_holds_no_group();
  a_slow_disk_is_patient_for_three_groups();
  a_disk_that_was_slow_is_waited_for_some_hundred_groups_more();
  one_that_is_alone_is_never_waited_with();
  a_limited_disk_is_slow_between_its_standstills_too();
  one_more_is_expected_and_after_a_vain_wait_sixteen_times_none();
  newcomers_are_expected_beside_returning_commits();
  a_group_is_begun_once_and_by_queued_commits();
  a_latecomer_ends_no_group();
  if (failures == 0)
    printf("group_plan: all hold\n");
  return failures > 0;
}
