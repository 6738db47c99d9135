#include "tests/docs/page.h"

#include <sys/wait.h>

#include <cstdlib>
#include <regex>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "graph/base/file.h"
#include "graph/base/status.h"

namespace mgc {
namespace {

constexpr absl::string_view kFence = "```";
constexpr absl::string_view kAnyLines = "...";

std::vector<std::string> WordsOf(absl::string_view text) {
  return absl::StrSplit(text, ' ', absl::SkipEmpty());
}

std::vector<std::string> LinesOf(absl::string_view text) {
  std::vector<std::string> lines = absl::StrSplit(text, '\n');
  while (!lines.empty() && absl::StripAsciiWhitespace(lines.back()).empty()) lines.pop_back();
  return lines;
}

// Numbers, with sign and factor (`-1.5`, `1.5 k`, `1.5 M`), as `#`; runs of blanks as one. A fast
// machine prints another factor than a slow one.
std::string ShapeOf(absl::string_view line) {
  static const std::regex number("[+-]?[0-9]+(\\.[0-9]+)?( [kMGT](?= ))?");
  static const std::regex blanks(" +");
  return std::regex_replace(std::regex_replace(std::string(line), number, "#"), blanks, " ");
}

bool MatchFrom(const std::vector<std::string>& shown, size_t s,
               const std::vector<std::string>& printed, size_t p, bool shape) {
  for (; s < shown.size(); ++s, ++p) {
    if (absl::StripAsciiWhitespace(shown[s]) == kAnyLines) {
      for (; p <= printed.size(); ++p) {
        if (MatchFrom(shown, s + 1, printed, p, shape)) return true;
      }
      return false;
    }
    if (p == printed.size()) return false;
    const absl::string_view a = absl::StripTrailingAsciiWhitespace(shown[s]);
    const absl::string_view b = absl::StripTrailingAsciiWhitespace(printed[p]);
    if (shape ? ShapeOf(a) != ShapeOf(b) : a != b) return false;
  }
  return p == printed.size();
}

// Runs the blocks of one page and collects what is not as shown.
class Runner {
 public:
  Runner(std::string folder, std::string path)
      : folder_(std::move(folder)), path_(std::move(path)) {}

  void Take(const PageBlock& block) {
    const std::vector<std::string> words = WordsOf(block.info);
    if (words.empty()) return;
    if (words[0] == "output") {
      const bool shape = words.size() > 1 && words[1] == "shape";
      if (MatchesOutput(block.text, printed_, shape)) return;
      problems_.push_back(
          absl::StrCat("line ", block.line, " shows\n", block.text, "but printed is\n", printed_));
    } else if (words[0] == "sh" && words.size() > 1 && words[1] == "check") {
      Run(block, words);
    } else if (words.size() == 2 && absl::StrContains(words[1], '.')) {
      Write(words[1], block.text);
    }
  }

  std::vector<std::string> Take() && { return std::move(problems_); }

 private:
  void Write(const std::string& name, const std::string& text) {
    const absl::Status status = WriteFileAtomically(absl::StrCat(folder_, "/", name), text);
    if (!status.ok()) problems_.push_back(std::string(status.message()));
  }

  void Run(const PageBlock& block, const std::vector<std::string>& words) {
    int expected = 0;
    for (absl::string_view word : words) {
      if (absl::ConsumePrefix(&word, "exit=")) MGC_CHECK(absl::SimpleAtoi(word, &expected));
    }
    Write(".script", block.text);
    const std::string command =
        absl::StrCat("cd '", folder_, "' && PATH='", path_,
                     "':\"$PATH\" bash -eo pipefail .script >.printed 2>&1 </dev/null");
    const int status = std::system(command.c_str());
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    printed_ = ReadFile(absl::StrCat(folder_, "/.printed")).value_or("");
    if (code == expected) return;
    problems_.push_back(absl::StrCat("line ", block.line, " exits with ", code, ", not ", expected,
                                     ":\n", block.text, printed_));
  }

  const std::string folder_;
  const std::string path_;
  std::string printed_;  // by the latest command block
  std::vector<std::string> problems_;
};

// The page without its blocks.
std::vector<std::string> TextLinesOf(absl::string_view page) {
  std::vector<std::string> text;
  bool inside = false;
  for (absl::string_view line : absl::StrSplit(page, '\n')) {
    if (absl::StartsWith(line, kFence)) {
      inside = !inside;
    } else if (!inside && !absl::StartsWith(line, "    ")) {
      text.emplace_back(line);
    }
  }
  return text;
}

}  // namespace

std::vector<PageBlock> BlocksOf(absl::string_view page) {
  std::vector<PageBlock> blocks;
  bool inside = false;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(page, '\n')) {
    ++number;
    if (absl::StartsWith(line, kFence)) {
      inside = !inside;
      if (inside) blocks.push_back({std::string(line.substr(kFence.size())), "", number});
    } else if (inside) {
      absl::StrAppend(&blocks.back().text, line, "\n");
    }
  }
  return blocks;
}

bool MatchesOutput(absl::string_view shown, absl::string_view printed, bool shape) {
  return MatchFrom(LinesOf(shown), 0, LinesOf(printed), 0, shape);
}

std::vector<std::string> RunPage(absl::string_view page, const std::string& folder,
                                 const std::string& path) {
  Runner runner(folder, path);
  for (const PageBlock& block : BlocksOf(page)) runner.Take(block);
  return std::move(runner).Take();
}

std::vector<std::string> LinksOf(absl::string_view page) {
  std::vector<std::string> links;
  for (absl::string_view line : TextLinesOf(page)) {
    for (size_t at = line.find("]("); at != line.npos; at = line.find("](", at + 1)) {
      const size_t end = line.find(')', at);
      if (end != line.npos) links.emplace_back(line.substr(at + 2, end - at - 2));
    }
  }
  return links;
}

std::vector<std::string> CodeWordsOf(absl::string_view page) {
  std::vector<std::string> words;
  for (absl::string_view line : TextLinesOf(page)) {
    const std::vector<std::string> parts = absl::StrSplit(line, '`');
    for (size_t i = 1; i + 1 < parts.size(); i += 2) words.push_back(parts[i]);
  }
  return words;
}

}  // namespace mgc
