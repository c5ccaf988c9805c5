// Keys are taken at even distances, and for each is asked how many rows begin as it does. A key that many rows share is
// met as often as they are many, so the mean of one over their numbers is the number of different keys over that of
// rows, without bias and however many of them there are.
#include "statistics.h"

namespace
{
const uint SAMPLES= 20;
} // namespace

std::vector<double> rows_per_key(weir_table *table, int32_t place, const std::vector<Key_part_codec> &parts)
{
  std::vector<double> sums(parts.size(), 0);
  uint taken= 0;
  for (uint nth= 0; nth < SAMPLES; nth++)
  {
    weir_bytes found;
    if (weir_table_key_at(table, place, nth, SAMPLES, &found) != WEIR_OK)
      continue;
    std::string key(reinterpret_cast<const char *>(found.data), found.len);
    const uchar *at= reinterpret_cast<const uchar *>(key.data()), *begin= at, *end= at + key.size();
    taken++;
    bool alone= false;
    for (size_t part= 0; part < parts.size(); part++)
    {
      if (!alone && at)
        at= parts[part].skip(at, end);
      uint64_t rows= 1;
      if (!alone && at)
      {
        std::string from(key, 0, at - begin), to= from;
        uint32_t kind;
        bool has_to= after_prefix(&to);
        weir_bytes above= bytes_of(to);
        if (weir_table_estimate(table, place, bytes_of(from), has_to ? &above : nullptr, &rows, &kind) != WEIR_OK)
          rows= 1;
        // What it alone has in its first columns it alone has in all.
        alone= rows <= 1;
      }
      sums[part]+= 1.0 / std::max<uint64_t>(rows, 1);
    }
  }
  std::vector<double> out;
  for (double sum : sums)
    if (taken)
      out.push_back(taken / sum);
  return out;
}
