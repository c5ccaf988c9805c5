// Whether encoded texts compare as the server compares the texts, for each collation that the server has: all pairs
// of a list of awkward texts, and of texts made at random. Uses the plugin's own encoder.
//   collations [TEXTS [SEED]]
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "../../src/collation_codec.h"

extern "C" const char *charsets_dir;

namespace
{

const my_wc_t AWKWARD[]= {'a', 'A', 'b', 'B', 'c', 'C', 'h', 'H', 'z', 'Z', '0', '9', ' ', '\t', 0xe4, 0xc4, 0xdf,
                          's', 'S', 0x153, 0xa0, 1, 0, 0x131, 'i', 'I', 0x308, 0x301, 0x200d, 0xe01, 0xe40, 0x4e2d,
                          0x65e5, 0x30a2, 0xff71, 0xac00, 0x1c6, 'd', 0x17e, 'l', 'j', 0x663, 0x3000, 0x1f600,
                          0x10330, 0xfb03, 0x2460, 0x5d0, 0x142};

// Contractions, expansions, ignorable characters, spaces at the end and what is below a space.
const std::vector<std::vector<my_wc_t>> FIXED= {
    {}, {' '}, {' ', ' '}, {'a'}, {'a', ' '}, {'a', ' ', ' '}, {'A'}, {'a', '\t'}, {'a', 1}, {'a', 0}, {'s', 's'},
    {0xdf}, {0xdf, ' '}, {'s', 's', 's'}, {0xdf, 0xdf, 0xdf}, {0xdf, 0xdf, 0xdf, 'x'}, {'a', 'e'}, {0xe4},
    {0xe4, ' '}, {'c', 'h'}, {'c'}, {'h'}, {'a', 0xa0}, {'a', 0x200d}, {0x308}, {'a', 0x308}, {0x3000},
    {'a', 0x3000}, {' ', 'a'}, {0xfb03, 0xfb03, 0xfb03}, {0xfb03, 0xfb03, 0xfb04}};

// A text in a character set; characters that it lacks are left out, and 8-bit sets get a byte at random instead.
std::string in_charset(CHARSET_INFO *cs, const std::vector<my_wc_t> &text, std::mt19937 *random)
{
  std::string out;
  for (my_wc_t c : text)
  {
    uchar bytes[16];
    int length= cs->cset->wc_mb(cs, c, bytes, bytes + sizeof(bytes));
    if (length > 0)
      out.append(reinterpret_cast<char *>(bytes), length);
    else if (cs->mbmaxlen == 1)
      out.push_back(static_cast<char>(0x80 + (*random)() % 0x80));
  }
  return out;
}

int sign(int n) { return (n > 0) - (n < 0); }

} // namespace

int main(int argc, char **argv)
{
  size_t count= argc > 1 ? atoi(argv[1]) : 70;
  std::mt19937 random(argc > 2 ? atoi(argv[2]) : 7);
  my_init();
  charsets_dir= "/usr/share/mysql/charsets/";
  uint collations= 0, nopad= 0, multi= 0, bad= 0;
  ulong pairs= 0;
  for (uint id= 1; id < 4096; id++)
  {
    CHARSET_INFO *cs= get_charset(id, MYF(0));
    // The server's own, for names of files; no column has it.
    if (!cs || !strcmp(cs->cs_name.str, "filename"))
      continue;
    Collation_codec codec(cs);
    collations++;
    nopad+= (cs->state & MY_CS_NOPAD) != 0;
    multi+= my_count_bits_uint32(cs->levels_for_order) > 1;
    std::vector<std::string> texts, encoded;
    for (const std::vector<my_wc_t> &text : FIXED)
      texts.push_back(in_charset(cs, text, &random));
    while (texts.size() < count)
    {
      std::vector<my_wc_t> text;
      for (size_t n= random() % 9; n > 0; n--)
        text.push_back(random() % 4 ? AWKWARD[random() % array_elements(AWKWARD)] : 0x20 + random() % 0x500);
      text.insert(text.end(), random() % 3, ' ');
      texts.push_back(in_charset(cs, text, &random));
    }
    for (const std::string &text : texts)
    {
      encoded.emplace_back();
      codec.encode(reinterpret_cast<const uchar *>(text.data()), text.size(), &encoded.back());
    }
    uint wrong= 0;
    for (size_t a= 0; a < texts.size(); a++)
      for (size_t b= a + 1; b < texts.size(); b++)
      {
        const std::string &x= texts[a], &y= texts[b];
        int want= sign(cs->strnncollsp(x.data(), x.size(), y.data(), y.size()));
        int got= sign(encoded[a].compare(encoded[b]));
        // Behind a text other columns follow: it must not be the beginning of another.
        bool begins= want && (encoded[b].compare(0, encoded[a].size(), encoded[a]) == 0 ||
                              encoded[a].compare(0, encoded[b].size(), encoded[b]) == 0);
        wrong+= want != got || begins;
        pairs++;
      }
    if (wrong)
      printf("collations: %s: %u pairs compare otherwise\n", cs->coll_name.str, wrong);
    bad+= wrong != 0;
  }
  printf("collations: %u, of which %u NOPAD and %u of several levels; %lu pairs; %u collations wrong\n", collations,
         nopad, multi, pairs, bad);
  return bad != 0 || collations < 300;
}
