// Parts of graph/plan/plan_check.h that lie in files of their own.

#ifndef MGC_GRAPH_PLAN_PLAN_CHECK_INTERNAL_H_
#define MGC_GRAPH_PLAN_PLAN_CHECK_INTERNAL_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "graph/base/diagnostic.h"
#include "graph/plan/data_input.h"
#include "graph/plan/plan.h"
#include "graph/plan/plan_check.h"
#include "graph/plan/plan_refs.h"

namespace mgc {

inline constexpr int64_t kScalarAlignment = 8;  // of entries of vectors of f64

inline bool IsSize(int64_t bytes) { return bytes >= 0 && bytes <= kMaxPlanBytes; }
inline bool IsAligned(int64_t address) { return address % kScalarAlignment == 0; }

// Violations of one place.
class PlaceCheck {
 public:
  PlaceCheck(std::string place, Diagnostics* violations)
      : place_(std::move(place)), violations_(violations) {}

  size_t num_violations() const { return violations_->found(); }

  // Reports `parts`, joined, unless `holds`; returns `holds`.
  template <typename... Parts>
  bool Require(bool holds, absl::string_view label, const Parts&... parts) {
    if (holds) return true;
    if (violations_->full()) {
      violations_->LeaveOut(1);  // no text for what nobody sees
    } else {
      violations_->Add(label, place_, absl::StrCat(parts...));
    }
    return false;
  }
  // Reports `parts`, joined, and returns false: `holds || Fail(...)` where parts cost time to make.
  template <typename... Parts>
  bool Fail(absl::string_view label, const Parts&... parts) {
    return Require(false, label, parts...);
  }
  // Reports each line of the status unless it is OK.
  bool RequireOk(const absl::Status& status, absl::string_view label, absl::string_view what) {
    if (status.ok()) return true;
    for (absl::string_view line : absl::StrSplit(status.message(), '\n')) {
      Fail(label, what, ": ", line);
    }
    return false;
  }

 private:
  std::string place_;
  Diagnostics* violations_;
};

// plan_c2, c3, c7, c8, c9, c14 (if it is to run), c15, c16, c17 of one segment.
// `inputs`: what a plan that is to run loads (plan_c14); null for another.
void CheckSegment(const Plan& plan, const Segment& segment, const std::vector<DataInput>* inputs,
                  Diagnostics* violations);

// plan_c6, c10, c11, c12, c20 of all programs, once classes, chunks and calls are sound; as far as
// actions are decided plan_c6 and plan_c11 of them.
void CheckPrograms(const Plan& plan, PlanExtent extent, Diagnostics* violations);

// Bytes that a value needs on one rank, or more than kMaxPlanBytes. Types and shardings have passed
// CheckShardingBounds; dims' multiples can make the product larger than 64 bits.
int64_t NeededBytes(const TensorType& type, const Sharding& sharding, const Mesh& mesh);

// By formal of a segment: end of the slots behind it.
std::vector<int64_t> FormalEnds(const Segment& segment);

}  // namespace mgc

#endif  // MGC_GRAPH_PLAN_PLAN_CHECK_INTERNAL_H_
