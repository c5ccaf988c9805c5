// How the rows of a table lie that were written before ALTER has changed its columns.
//
// A column that comes, goes, moves or grows leaves the rows as they are: a row says of which layout it is, and is read as
// one of the present layout. Layouts name columns by numbers that no other column of the table ever has.
#ifndef WEIR_PLUGIN_ROW_LAYOUT_H
#define WEIR_PLUGIN_ROW_LAYOUT_H

#include <memory>
#include <string>
#include <vector>

#include "server.h"

// How values of a column lie in a row: up to 4, so many bytes of length before them; from 16 on, always so many bytes and 16.
typedef uint Column_kind;
const Column_kind FIXED_KIND= 16;
Column_kind kind_of(const Field *field);
// Behind a value that is not NULL; nullptr: it does not end before `end`.
const uchar *skip_value(Column_kind kind, const uchar *at, const uchar *end);
// Takes a value that lies as `kind` says into its field, of which those are longer now or not. As Field::unpack.
const uchar *unpack_value(Field *field, Column_kind kind, const uchar *at, const uchar *end);

// What rows that were written before a column came have in it: the default that it came with.
struct Added_column
{
  bool null;
  std::string packed;
};
// The value that the column has in the record.
Added_column added_column(Field *field);

struct Laid_column
{
  uint id;
  Column_kind kind;
  bool nullable;
  bool operator==(const Laid_column &other) const
  {
    return id == other.id && kind == other.kind && nullable == other.nullable;
  }
};
typedef std::vector<Laid_column> Row_layout;

struct Later_column
{
  uint id;
  Column_kind kind;
  Added_column value;
};

// The layouts of a table, the present one last. There are at least two.
struct Row_layouts
{
  // More of them would take more room than they save: then ALTER writes the rows anew.
  static const size_t MOST= 64;

  std::vector<Row_layout> all;
  // How many columns the oldest rows hold, which say no number: so many of the first layout.
  uint plain;
  // What columns that came later have in rows without them.
  std::vector<Later_column> later;

  const Row_layout &now() const { return all.back(); }
  uint number() const { return static_cast<uint>(all.size() - 1); }
  uint next_id() const;
  const Later_column *find_later(uint id) const;
  // As the column was when it came; nullptr: it is in no layout.
  const Laid_column *find_first(uint id) const;

  std::string encode() const;
  // nullptr: there are none.
  static std::shared_ptr<const Row_layouts> decode(const uchar *bytes, size_t length);
};
typedef std::shared_ptr<const Row_layouts> Layouts_pointer;

#endif
