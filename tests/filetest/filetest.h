// Tests written as `.mgc` files: what a text must become, or which errors it must give, stands in
// the file's own comments. The first line says what is done:
//
//   // test: roundtrip                       print(parse(text)) == text; graph, mesh or machine
//   // test: check logical                   the check of that level, which the graph is of
//   // test: pass shard tp=2                 the named pass with these options
//   // test: pass stage,schedule pp=2        several, one after the other
//   // test: equivalent shard,partition tp=2 the same, and what comes out computes what went in
//                                            does (tests/filetest/equivalence.h)
//
//   // check: text   some later line of the result contains the text, spaces counted as one
//   // next: text    the line right behind the last match does
//   // not: text     no line between the last match and the next one does
//   // error: text   an error on this line contains the text; on a line of its own it speaks of the
//                    nearest line above that is no such comment
//
// Every error must be expected. Errors without a place belong to line 1. Update() writes the file
// with the expectations that hold now; read them before you commit them.

#ifndef MGC_TESTS_FILETEST_FILETEST_H_
#define MGC_TESTS_FILETEST_FILETEST_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "graph/ir/graph.h"
#include "graph/text/parser.h"

namespace mgc {

struct PassResult {
  std::string text;
  absl::optional<Graph> graph;  // where the result is one
};

// Runs passes, their names separated by commas, with options as the test line gives them.
using PassRunner = std::function<absl::StatusOr<PassResult>(
    absl::string_view passes, absl::string_view options, const Graph& graph)>;

class FileTest {
 public:
  // `name` is the file's name, for messages; `passes` may be empty where no test needs one.
  FileTest(absl::string_view text, absl::string_view name, PassRunner passes);

  // What is wrong, one thing a line; empty when the test passes.
  std::string Run();

  // The text with its expectations rewritten.
  std::string Update();

 private:
  struct FoundError {
    int line = 1;
    std::string text;
  };

  // Fills result_ and errors_; false, with a line in problems_, for a malformed test.
  bool Execute();
  void ExecuteRoundTrip(absl::string_view source);
  void ExecuteGraph(absl::string_view command, absl::string_view rest);
  void ExecuteCheck(absl::string_view level, const Graph& graph, const ValuePlaces& places);
  void ExecutePasses(absl::string_view command, absl::string_view passes, absl::string_view options,
                     const Graph& graph);
  void AddErrors(const absl::Status& status);
  int LineOf(absl::string_view error) const;
  void MatchErrors();
  void MatchResult();

  std::string name_;
  PassRunner passes_;
  std::vector<std::string> lines_;
  std::vector<std::string> result_;  // lines of what came out
  std::vector<FoundError> errors_;
  std::vector<std::string> problems_;
};

}  // namespace mgc

#endif  // MGC_TESTS_FILETEST_FILETEST_H_
