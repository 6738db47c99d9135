// Pages that keep their word: the commands a page shows are run, and what they print is compared
// with what the page says. A page (README.md, docs/*.md) marks its fenced blocks by the words
// behind the opening fence:
//
//   ```mgc mlp.mgc          any language and a file name: the block is written to that file
//   ```sh check             run by bash in the page's folder; must exit with 0
//   ```sh check exit=3      ... with 3
//   ```output               what the block before it printed, stdout and stderr together
//   ```output shape         the same, where numbers (and the width of columns) may differ
//
// In an output block a line `...` stands for any number of lines. Blocks of a page run in order, in
// one folder. Other blocks are only shown.

#ifndef MGC_TESTS_DOCS_PAGE_H_
#define MGC_TESTS_DOCS_PAGE_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace mgc {

struct PageBlock {
  std::string info;  // the words behind the opening fence
  std::string text;  // whole lines
  int line = 0;      // of the opening fence, from 1
};

std::vector<PageBlock> BlocksOf(absl::string_view page);

// Whether `printed` is what an output block shows; with `shape`, up to numbers.
bool MatchesOutput(absl::string_view shown, absl::string_view printed, bool shape);

// Writes the files and runs the commands of a page in the empty folder `folder`, with `path` in
// front of PATH. One text per thing that is not as the page says.
std::vector<std::string> RunPage(absl::string_view page, const std::string& folder,
                                 const std::string& path);

// Targets of a page's links, `[text](target)`, outside of code.
std::vector<std::string> LinksOf(absl::string_view page);

// What a page says `like this` in running text and tables.
std::vector<std::string> CodeWordsOf(absl::string_view page);

}  // namespace mgc

#endif  // MGC_TESTS_DOCS_PAGE_H_
