// Errors in a text, each with its place, collected so that one reading reports all of them.

#ifndef MGC_GRAPH_TEXT_DIAGNOSTICS_H_
#define MGC_GRAPH_TEXT_DIAGNOSTICS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace mgc {

// A place in a text, both from 1; columns count bytes.
struct TextPlace {
  int line = 1;
  int column = 1;
};

class Diagnostics {
 public:
  // Errors beyond this many are counted, not kept.
  static constexpr int kMaxErrors = 20;

  // `filename` as it is shown; bytes that do not print are escaped.
  explicit Diagnostics(absl::string_view filename);

  // `label` names the violated constraint, `text_c3`; empty when `message` already ends with one.
  void Error(TextPlace place, absl::string_view label, absl::string_view message);
  // Adds a line to the latest error; without a place it has none.
  void Note(absl::string_view message);
  void Note(TextPlace place, absl::string_view message);

  bool ok() const { return count_ == 0; }

  // OK, or InvalidArgument with one line `file:line:column: error: message [label]` per error, in
  // the order of their places, notes indented below theirs.
  absl::Status ToStatus() const;

 private:
  struct Entry {
    TextPlace place;
    std::string text;
  };

  std::string At(TextPlace place) const;

  std::string filename_;
  std::vector<Entry> entries_;
  int count_ = 0;
};

}  // namespace mgc

#endif  // MGC_GRAPH_TEXT_DIAGNOSTICS_H_
