// Numbers and texts of what the engine keeps for the server.
#ifndef WEIR_PLUGIN_WIRE_H
#define WEIR_PLUGIN_WIRE_H

#include <algorithm>
#include <string>
#include <vector>

#include "server.h"

// What is kept of a key of several entries begins so, as no description of another key does (Announced_key); then its kind.
const ulonglong SEVERAL_ENTRIES_MARK= 0;
enum Several_entries { SEVERAL_WORDS= 1, SEVERAL_CELLS= 2 };

class Writer
{
public:
  void number(ulonglong n)
  {
    for (; n >= 0x80; n>>= 7)
      m_out.push_back(static_cast<char>(n | 0x80));
    m_out.push_back(static_cast<char>(n));
  }
  void begin_key(Several_entries kind)
  {
    number(SEVERAL_ENTRIES_MARK);
    number(SEVERAL_ENTRIES_MARK);
    number(kind);
  }
  void text(const std::string &s)
  {
    number(s.size());
    m_out+= s;
  }
  void texts(const std::vector<std::string> &all)
  {
    number(all.size());
    for (const std::string &s : all)
      text(s);
  }
  std::string m_out;
};

// What is not there reads as 0 or empty: the engine has checked the bytes.
class Reader
{
public:
  Reader(const uchar *from, size_t length) : m_at(from), m_end(from + length) {}
  ulonglong number()
  {
    ulonglong n= 0;
    for (uint shift= 0; m_at < m_end && shift < 64; shift+= 7)
    {
      uchar byte= *m_at++;
      n|= static_cast<ulonglong>(byte & 0x7f) << shift;
      if (!(byte & 0x80))
        break;
    }
    return n;
  }
  // False: the bytes are of another key, or of a later version.
  bool begins_key(Several_entries kind)
  {
    return !ended() && number() == SEVERAL_ENTRIES_MARK && number() == SEVERAL_ENTRIES_MARK && number() == kind;
  }
  std::string text()
  {
    size_t length= std::min<ulonglong>(number(), m_end - m_at);
    std::string s(reinterpret_cast<const char *>(m_at), length);
    m_at+= length;
    return s;
  }
  std::vector<std::string> texts()
  {
    std::vector<std::string> all;
    for (ulonglong n= number(); n > 0 && !ended(); n--)
      all.push_back(text());
    return all;
  }
  bool ended() const { return m_at == m_end; }

private:
  const uchar *m_at, *m_end;
};

#endif
