// Keeps one copy of equal segments: equal layers, and equal parts of different classes, fold.

#ifndef MGC_PASSES_PLAN_STAGE_FOLD_SEGMENTS_H_
#define MGC_PASSES_PLAN_STAGE_FOLD_SEGMENTS_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "graph/plan/plan.h"

namespace mgc {

class SegmentFolder {
 public:
  // Number of the segment equal to this one in everything but source locations; adds it if new.
  // Different segments of one name are told apart by a suffix `.2`, ... .
  int Add(Segment segment);
  int size() const { return static_cast<int>(segments_.size()); }
  const Segment& segment(int i) const { return segments_[static_cast<size_t>(i)]; }
  std::vector<Segment> Take() && { return std::move(segments_); }

 private:
  std::vector<Segment> segments_;
  absl::flat_hash_map<std::string, int> by_key_;
  absl::flat_hash_map<std::string, int> name_count_;
};

}  // namespace mgc

#endif  // MGC_PASSES_PLAN_STAGE_FOLD_SEGMENTS_H_
