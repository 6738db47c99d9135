// What is wrong with what a user gave, in a form that can be collected: a check never stops at the
// first rule that is broken, and every check in the house says what it found with these records.

#ifndef MGC_GRAPH_BASE_DIAGNOSTIC_H_
#define MGC_GRAPH_BASE_DIAGNOSTIC_H_

#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace mgc {

struct Diagnostic {
  std::string label;       // of the rule that is broken: `P7`, `plan_c3`; empty: `text` ends in one
  std::string text;        // what is wrong, with its numbers: one line without a full stop
  std::string hint = {};   // the nearest legal values, or empty
  std::string place = {};  // where: `mlp.mgc:3:14`, `class 3`, or empty
  std::string detail = {};   // further lines (notes, a circle of waits), or empty
  std::string drawing = {};  // of the same in Graphviz' language, or empty
};

// `place: text [label]; nearest legal: hint`, without what is empty, then the detail on lines of
// its own; without a last newline. Bytes that do not print are escaped.
std::string ToString(const Diagnostic& diagnostic);

// A list of diagnostics, in the order they were added. It keeps the first few of a label and of
// all, and counts the rest: what has a million mistakes costs no more than what has twenty.
class Diagnostics {
 public:
  static constexpr size_t kMost = 20;
  static constexpr size_t kMostOfALabel = 5;
  static constexpr size_t kNoLimit = std::numeric_limits<size_t>::max();

  Diagnostics() = default;
  Diagnostics(size_t most, size_t most_of_a_label)
      : most_(most), most_of_a_label_(most_of_a_label) {}

  void Add(Diagnostic diagnostic);
  void Add(absl::string_view label, absl::string_view place, absl::string_view text) {
    Add({std::string(label), std::string(text), "", std::string(place)});
  }
  void Append(const Diagnostics& more);
  // Counts what was never made into a diagnostic, because the list is full or what it came from
  // was.
  void LeaveOut(size_t count) { left_out_ += count; }

  bool empty() const { return found() == 0; }
  bool full() const { return list_.size() >= most_; }
  // All that were added or left out.
  size_t found() const { return list_.size() + left_out_; }

  // Those that are kept.
  size_t size() const { return list_.size(); }
  const Diagnostic& operator[](size_t i) const { return list_[i]; }
  std::vector<Diagnostic>::const_iterator begin() const { return list_.begin(); }
  std::vector<Diagnostic>::const_iterator end() const { return list_.end(); }
  size_t left_out() const { return left_out_; }

  // Whether one with this label is kept.
  bool Has(absl::string_view label) const;

  // The diagnostics, one behind the other, and `... and N more` for those that were left out;
  // without a last newline.
  std::string ToString() const;

  // OK, or an error with that text.
  absl::Status ToStatus(absl::StatusCode code = absl::StatusCode::kInvalidArgument) const;

 private:
  size_t most_ = kMost;
  size_t most_of_a_label_ = kMostOfALabel;
  std::vector<Diagnostic> list_;
  size_t left_out_ = 0;
};

// A place in a text, both from 1; columns count bytes.
struct TextPlace {
  int line = 1;
  int column = 1;
};

// What is wrong with one file, each at its place, found in any order.
class FileDiagnostics {
 public:
  // `file` as it is shown; bytes that do not print are escaped.
  explicit FileDiagnostics(absl::string_view file);

  void Add(TextPlace place, absl::string_view label, absl::string_view text);
  // Adds a line to the latest, unless that was left out.
  void Note(absl::string_view text);
  void Note(TextPlace place, absl::string_view text);
  void LeaveOut(size_t count) { left_out_ += count; }

  bool empty() const { return found_.empty() && left_out_ == 0; }

  // OK, or InvalidArgument with one line `file:line:column: text [label]` for each, in the order of
  // their places, notes indented below theirs.
  absl::Status ToStatus() const;

 private:
  struct Found {
    TextPlace place;
    Diagnostic diagnostic;
  };

  std::string At(TextPlace place) const;

  std::string file_;
  std::vector<Found> found_;
  size_t left_out_ = 0;
};

}  // namespace mgc

#endif  // MGC_GRAPH_BASE_DIAGNOSTIC_H_
