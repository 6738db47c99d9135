// What the pieces of a run share: the memory of all classes, and the first failure.

#ifndef MGC_GRAPH_VERIFY_MEANING_RUN_STATE_H_
#define MGC_GRAPH_VERIFY_MEANING_RUN_STATE_H_

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "graph/base/diagnostic.h"
#include "graph/plan/step_walk.h"
#include "graph/verify/meaning/bind_instr.h"
#include "graph/verify/meaning/run_plan.h"
#include "graph/verify/meaning/tile_store.h"

namespace mgc {

// A type and a sharding for values that have no slot: scalars and reports.
extern const TensorType kScalarTile;
extern const Sharding kWholeScalar;

const Slot& SlotOf(const InstrSite& site, int slot);

class RunState {
 public:
  RunState(const PlanRun& run, Diagnostics* findings);

  const PlanRun& run() const { return run_; }
  const Plan& plan() const { return run_.small; }
  BoundInstrs& bound() { return bound_; }
  TileStore& store(int class_index) { return stores_[static_cast<size_t>(class_index)]; }
  // Ranks of a class, ascending, and the place of a rank among them.
  const std::vector<int64_t>& ranks(int class_index) const {
    return ranks_[static_cast<size_t>(class_index)];
  }
  size_t IndexInClass(int64_t rank) const { return index_in_class_[static_cast<size_t>(rank)]; }
  int num_classes() const { return static_cast<int>(ranks_.size()); }

  // After the first failure nothing counts any more.
  bool failed() const { return failed_; }
  void Fail(absl::string_view label, absl::string_view place, absl::string_view text);
  // `status` ends with its label in brackets.
  void Fail(const absl::Status& status, absl::string_view place);
  std::string PlaceOf(const InstrSite& site) const;
  std::string ProgramName() const { return run_.eval ? "evaluation" : "training step"; }

  // The tiles of an instruction's operand; null after a failure.
  const Tiles* Read(const InstrSite& site, int slot);
  // Checks and keeps the tiles of a result.
  void Write(const InstrSite& site, int slot, Tiles tiles);
  void Poison(const InstrSite& site, int slot);
  // Compares tiles of a forward action, with what they owe inside the class paid, with the value of
  // the model that has the slot's name, where there is one.
  void CompareForward(const InstrSite& site, const Slot& slot, const Tiles& tiles);

 private:
  Range RangeOf(const InstrSite& site, const Slot& slot) const;
  // Whether the model has a maximum of the slot's name: a wrong one cancels out of a softmax, which
  // then is unstable only.
  bool IsMaximum(const InstrSite& site, const Slot& slot);
  // Whether the ranks of a class can pay what is owed: no maximum, and no sum over stages.
  bool IsOfClass(const Sharding& sharding) const;
  // The tiles with the sums paid that they owe.
  Tiles Paid(const InstrSite& site, const AxisSet& owed, Tiles tiles) const;
  // Compares tiles of a backward action, paid alike, with all that a single device computes there.
  void CompareBackward(const InstrSite& site, const Slot& slot, const Tiles& tiles);

  const PlanRun& run_;
  Diagnostics& findings_;
  BoundInstrs bound_;
  std::vector<std::vector<int64_t>> ranks_;  // by class
  std::vector<size_t> index_in_class_;       // by rank
  std::vector<TileStore> stores_;            // by class
  std::set<std::string> maxima_;             // of the model
  absl::flat_hash_map<const Slot*, bool> is_maximum_;
  bool failed_ = false;
};

// Puts parameters, moments and what a step carries on where each class expects them.
void FillParameters(RunState* state);
// Of a model that is asked: puts what steps keep for the next where each class expects it, and
// compares all tensors that a step has left with a single device.
void FillKept(RunState* state);
void CompareLeft(RunState* state);
// Compares what a step reported, and for training what it left, with a single device.
void CompareResults(RunState* state);

}  // namespace mgc

#endif  // MGC_GRAPH_VERIFY_MEANING_RUN_STATE_H_
