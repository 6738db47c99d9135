// What the proof of a plan holds against it.

#ifndef MGC_GRAPH_VERIFY_COMMON_FINDING_H_
#define MGC_GRAPH_VERIFY_COMMON_FINDING_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace mgc {

// One reason why a plan is not proved. docs/verify.md lists the labels:
//   placement_v*   a sharding that does not follow, a sum that is owed and not paid
//   order_v*       a step that hangs, a wait that is missing, lists that do not match
//   memory_v*      live buffers that overlap, a wrong peak
//   meaning_v*     the instructions compute something else than the model
struct Finding {
  std::string label;
  std::string place;   // `class 3`, `segment layer.forward, instruction 4 all_reduce`
  std::string text;    // one line, with the numbers
  std::string detail;  // further lines (a circle of waits, a grid of ranks and times), or empty
  std::string dot;     // a drawing of the same, or empty
};

// What a status says whose message ends in ` [label]`, a label of the same part as `otherwise`; any
// other message stays whole, under `otherwise`.
Finding FindingOf(const absl::Status& status, absl::string_view place, absl::string_view otherwise);

// `place: text [label]`, then the detail; without a last newline.
std::string ToString(const Finding& finding);

// Collects findings; of one label it keeps the first few and counts the rest.
class Findings {
 public:
  static constexpr size_t kMostOfALabel = 5;

  void Add(Finding finding);
  void Add(absl::string_view label, absl::string_view place, absl::string_view text) {
    Add(Finding{std::string(label), std::string(place), std::string(text), "", ""});
  }
  void Append(const Findings& more);

  bool empty() const { return list_.empty(); }
  const std::vector<Finding>& list() const { return list_; }
  size_t left_out() const { return left_out_; }
  bool Has(absl::string_view label) const;

 private:
  std::vector<Finding> list_;
  size_t left_out_ = 0;
};

}  // namespace mgc

#endif  // MGC_GRAPH_VERIFY_COMMON_FINDING_H_
