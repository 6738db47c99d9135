// Tests written as `.mgc` files: what a text must become, or which errors it must
// give, stands in the file's own comments.
//
//   // test: roundtrip           the first line says what is done:
//   // test: check logical         roundtrip    print(parse(text)) == text; graph, mesh or machine
//   // test: pass shard tp=2       check LEVEL  the check of that level, which the graph is of
//                                  pass NAME    the named pass, with the rest of the line as
//                                  options
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
#include "graph/graph.h"

namespace mgc {

// Runs the pass of that name with options as the test line gives them.
using PassRunner = std::function<absl::StatusOr<Graph>(
    absl::string_view pass, absl::string_view options, const Graph& graph)>;

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
