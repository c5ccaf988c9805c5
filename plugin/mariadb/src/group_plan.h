// Which group of the binary log is waited for, and how long: a decision over counts and times, without threads or clocks.
#ifndef WEIR_PLUGIN_GROUP_PLAN_H
#define WEIR_PLUGIN_GROUP_PLAN_H

#include <chrono>

// What is prepared while a group is written forms the next one, so halves alternate, and with transactions of many
// statements most groups have one or two. Where the processors are short that costs nothing (docs/decisions/gathering.md).
// Where the disk is, each group costs about eight of its writes, which pages need as well: there the next group
// waits until one more has come than were in the last one or came while it was written, but no longer than three times
// what a group takes. A commit that is alone does not wait.
class Group_plan
{
public:
  using micros= std::chrono::microseconds;
  using place= unsigned long long;

  // One more stands in line. Gives its place there, counted from 1 and never anew.
  place joins() { return ++m_in_line; }
  // Those that are queued are being written. Nothing happens, `false`, if none is (other engines' transactions
  // are), or until `written`.
  bool begins(micros now);
  // They are written and synced; again: nothing happens.
  void written(micros now);
  // So is the one in that place, perhaps of the group before, whose turn comes late; 0: it never stood in line.
  void written(micros now, place whose);
  // How long others are worth waiting for; 0: not at all.
  micros wait_limit() const;
  // It was waited for others, as long as it was worth it.
  void has_waited();
  // All those are there that were waited for.
  bool is_complete() const { return m_in_line >= m_closed + m_expected; }

private:
  // Commits that have stood in line: ever, before the last group was begun, and before the one in front of that.
  place m_in_line= 0, m_closed= 0, m_closed_before= 0;
  place m_expected= 0;
  // For so many groups no commit is expected that was not there before.
  unsigned m_rests= 0;
  bool m_is_writing= false;
  micros m_begun= micros(0);
  // What a group takes, in the mean: lately; and where none is waited for.
  micros m_takes_now= micros(0), m_takes= micros(0);
};

#endif
