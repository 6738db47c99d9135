#include "tests/filetest/filetest.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "graph/ir/check.h"
#include "graph/text/machine_text.h"
#include "graph/text/parser.h"
#include "graph/text/printer.h"
#include "tests/filetest/equivalence.h"

namespace mgc {
namespace {

constexpr absl::string_view kTest = "// test: ";
constexpr absl::string_view kError = "// error: ";

// Runs of blanks as one blank, none at the ends.
std::string Squeezed(absl::string_view text) {
  return absl::StrJoin(absl::StrSplit(text, absl::ByAnyChar(" \t"), absl::SkipEmpty()), " ");
}

bool Contains(absl::string_view line, absl::string_view wanted) {
  return absl::StrContains(Squeezed(line), Squeezed(wanted));
}

bool IsComment(absl::string_view line) {
  return absl::StartsWith(absl::StripLeadingAsciiWhitespace(line), "//");
}

// The text behind `mark` on a line that is such a comment; false otherwise.
bool Expectation(absl::string_view line, absl::string_view mark, std::string* out) {
  line = absl::StripAsciiWhitespace(line);
  if (!absl::ConsumePrefix(&line, mark)) return false;
  *out = std::string(absl::StripAsciiWhitespace(line));
  return true;
}

bool IsExpectation(absl::string_view line) {
  std::string text;
  return Expectation(line, kError, &text) || Expectation(line, "// check:", &text) ||
         Expectation(line, "// next:", &text) || Expectation(line, "// not:", &text);
}

bool IsPassTest(absl::string_view command) { return command == "pass" || command == "equivalent"; }

std::vector<std::string> LinesOf(absl::string_view text) {
  absl::ConsumeSuffix(&text, "\n");
  return absl::StrSplit(text, '\n');
}

}  // namespace

FileTest::FileTest(absl::string_view text, absl::string_view name, PassRunner passes)
    : name_(name), passes_(std::move(passes)), lines_(LinesOf(text)) {}

std::string FileTest::Run() {
  if (Execute()) {
    MatchErrors();
    MatchResult();
  }
  return absl::StrJoin(problems_, "\n");
}

bool FileTest::Execute() {
  absl::string_view test = lines_[0];
  if (!absl::ConsumePrefix(&test, kTest)) {
    problems_.push_back(absl::StrCat(name_, ":1: the first line must be `// test: ...`"));
    return false;
  }
  const std::vector<absl::string_view> words = absl::StrSplit(test, absl::MaxSplits(' ', 1));
  const absl::string_view rest = words.size() > 1 ? words[1] : "";
  if (words[0] == "roundtrip") {
    std::vector<std::string> source;
    for (const std::string& line : lines_) {
      if (!IsComment(line) && !(source.empty() && line.empty())) source.push_back(line);
    }
    ExecuteRoundTrip(absl::StrCat(absl::StrJoin(source, "\n"), "\n"));
  } else if ((words[0] == "check" || IsPassTest(words[0])) && !rest.empty()) {
    ExecuteGraph(words[0], rest);
  } else {
    problems_.push_back(absl::StrCat(name_, ":1: unknown test `", test, "`"));
    return false;
  }
  return true;
}

void FileTest::ExecuteRoundTrip(absl::string_view source) {
  const std::string text = absl::StrJoin(lines_, "\n");
  std::string printed;
  absl::Status status;
  if (absl::StartsWith(source, "machine")) {
    const absl::StatusOr<Machine> machine = ParseMachine(text, name_);
    status = machine.status();
    if (status.ok()) printed = PrintMachine(*machine);
  } else if (absl::StartsWith(source, "mesh") && !absl::StrContains(source, "graph")) {
    const absl::StatusOr<Mesh> mesh = ParseMesh(text, name_);
    status = mesh.status();
    if (status.ok()) printed = PrintMesh(*mesh);
  } else {
    const absl::StatusOr<Graph> graph = ParseGraph(text, name_);
    status = graph.status();
    if (status.ok()) printed = PrintGraph(*graph);
  }
  AddErrors(status);
  if (!status.ok()) return;
  result_ = LinesOf(printed);
  if (printed != source) {
    problems_.push_back(absl::StrCat(name_, ": prints otherwise:\n", printed));
  }
}

void FileTest::ExecuteGraph(absl::string_view command, absl::string_view rest) {
  const std::vector<std::string> words = absl::StrSplit(rest, absl::MaxSplits(' ', 1));
  ValuePlaces places;
  const absl::StatusOr<Graph> graph = ParseGraph(absl::StrJoin(lines_, "\n"), name_, &places);
  AddErrors(graph.status());
  if (!graph.ok()) return;
  if (IsPassTest(command)) {
    ExecutePasses(command, words[0], words.size() > 1 ? words[1] : "", *graph);
  } else {
    ExecuteCheck(words[0], *graph, places);
  }
}

void FileTest::ExecuteCheck(absl::string_view level, const Graph& graph,
                            const ValuePlaces& places) {
  if (NameOf(graph.level()) != level) {
    problems_.push_back(absl::StrCat(name_, ": the graph is ", NameOf(graph.level())));
  }
  for (const Diagnostic& violation : FindViolations(graph)) {
    const auto place = places.find(violation.place.substr(violation.place.rfind('%') + 1));
    errors_.push_back({place == places.end() ? 1 : place->second.line, ToString(violation)});
  }
  result_ = LinesOf(PrintGraph(graph));
}

void FileTest::ExecutePasses(absl::string_view command, absl::string_view passes,
                             absl::string_view options, const Graph& graph) {
  if (!passes_) {
    problems_.push_back(absl::StrCat(name_, ": this runner has no passes"));
    return;
  }
  if (const absl::Status sound = CheckGraph(graph); !sound.ok()) {
    problems_.push_back(absl::StrCat(name_, ": unsound: ", sound.message()));
    return;
  }
  const absl::StatusOr<PassResult> result = passes_(passes, options, graph);
  AddErrors(result.status());
  if (!result.ok()) return;
  result_ = LinesOf(result->text);
  if (command != "equivalent") return;
  if (!result->graph.has_value()) {
    problems_.push_back(absl::StrCat(name_, ": what comes out is no graph to compare"));
  } else if (const absl::Status same = CheckEquivalent(graph, *result->graph); !same.ok()) {
    problems_.push_back(absl::StrCat(name_, ": ", same.message()));
  }
}

void FileTest::AddErrors(const absl::Status& status) {
  if (status.ok()) return;
  for (absl::string_view line : absl::StrSplit(status.message(), '\n', absl::SkipEmpty())) {
    if (absl::StartsWith(line, "  note: ") && !errors_.empty()) {
      absl::StrAppend(&errors_.back().text, "\n", line);
    } else {
      errors_.push_back({LineOf(line), std::string(line)});
    }
  }
}

// The line an error names, `file:line:`, or 1.
int FileTest::LineOf(absl::string_view error) const {
  int line = 1;
  if (!absl::ConsumePrefix(&error, absl::StrCat(name_, ":"))) return line;
  return absl::SimpleAtoi(error.substr(0, error.find(':')), &line) ? line : 1;
}

void FileTest::MatchErrors() {
  std::vector<FoundError> left = errors_;
  int above = 1;
  for (size_t i = 0; i < lines_.size(); ++i) {
    if (!IsExpectation(lines_[i])) above = static_cast<int>(i) + 1;
    const std::vector<absl::string_view> parts = absl::StrSplit(lines_[i], kError);
    for (size_t p = 1; p < parts.size(); ++p) {
      const auto match = std::find_if(left.begin(), left.end(), [&](const FoundError& error) {
        return error.line == above && Contains(error.text, parts[p]);
      });
      if (match == left.end()) {
        problems_.push_back(absl::StrCat(name_, ":", above, ": no such error: ", parts[p]));
      } else {
        left.erase(match);
      }
    }
  }
  for (const FoundError& error : left) {
    problems_.push_back(absl::StrCat(name_, ":", error.line, ": unexpected error: ", error.text));
  }
}

void FileTest::MatchResult() {
  size_t at = 0;  // first line of the result not matched yet
  std::vector<std::string> forbidden;
  const auto refuse_between = [&](size_t end) {
    for (const std::string& text : forbidden) {
      for (size_t i = at; i < end; ++i) {
        if (!Contains(result_[i], text)) continue;
        problems_.push_back(absl::StrCat(name_, ": the result must not have: ", text));
      }
    }
    forbidden.clear();
  };
  for (const std::string& line : lines_) {
    std::string text;
    if (Expectation(line, "// not:", &text)) {
      forbidden.push_back(text);
    } else if (Expectation(line, "// check:", &text) || Expectation(line, "// next:", &text)) {
      const size_t last =
          Expectation(line, "// next:", &text) ? std::min(at + 1, result_.size()) : result_.size();
      size_t found = at;
      while (found < last && !Contains(result_[found], text)) ++found;
      if (found == last) {
        problems_.push_back(absl::StrCat(name_, ": the result lacks `", text, "` behind line ", at,
                                         ":\n", absl::StrJoin(result_, "\n")));
        return;
      }
      refuse_between(found);
      at = found + 1;
    }
  }
  refuse_between(result_.size());
}

std::string FileTest::Update() {
  const bool had_result = absl::StartsWith(lines_[0], "// test: pass") ||
                          absl::StartsWith(lines_[0], "// test: equivalent") ||
                          std::any_of(lines_.begin(), lines_.end(), [](const std::string& line) {
                            std::string text;
                            return Expectation(line, "// check:", &text);
                          });
  // Expectations move to lines of their own: what was counted stays counted from the new text.
  std::vector<std::string> bare;
  for (const std::string& line : lines_) {
    if (IsExpectation(line)) continue;
    const absl::string_view text = line;
    bare.emplace_back(absl::StripTrailingAsciiWhitespace(text.substr(0, text.find(kError))));
  }
  lines_ = std::move(bare);
  if (!Execute()) return absl::StrCat(absl::StrJoin(lines_, "\n"), "\n");
  std::string text;
  for (size_t i = 0; i < lines_.size(); ++i) {
    absl::StrAppend(&text, lines_[i], "\n");
    for (const FoundError& error : errors_) {
      if (error.line != static_cast<int>(i) + 1) continue;
      absl::string_view shown = error.text;
      shown = shown.substr(0, shown.find('\n'));
      // Without the place, which says where it stands today.
      if (absl::StartsWith(shown, absl::StrCat(name_, ":")))
        shown.remove_prefix(shown.find(": ") + 2);
      absl::StrAppend(&text, kError, shown, "\n");
    }
  }
  for (size_t i = 0; had_result && i < result_.size(); ++i) {
    absl::StrAppend(&text, i == 0 ? "// check: " : "// next: ", result_[i], "\n");
  }
  return text;
}

}  // namespace mgc
