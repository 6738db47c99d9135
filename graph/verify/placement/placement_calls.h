// Calls against the memory they work on: placement_v7 to placement_v9.

#ifndef MGC_GRAPH_VERIFY_PLACEMENT_PLACEMENT_CALLS_H_
#define MGC_GRAPH_VERIFY_PLACEMENT_PLACEMENT_CALLS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "graph/base/diagnostic.h"
#include "graph/plan/plan.h"
#include "graph/verify/common/address_map.h"

namespace mgc {

// How the copies of a tied weight, or of what comes of its gradient, were summed on the way to a
// value.
struct TiedSum {
  int times = 0;
  const std::vector<int>* classes = nullptr;  // over which, the last time
};

// A value as it was written. Types and shardings belong to the plan.
struct PlacedValue {
  const TensorType* type = nullptr;
  const Sharding* sharding = nullptr;
  absl::string_view name;
  const Segment* by = nullptr;  // who wrote it; null: there from the start
  size_t instr = 0;
  bool of_stage = false;    // made for one layer: the other stages have none
  ValueId norm_of = kNone;  // of a scalar: the parameter whose gradient it is a norm of
  TiedSum tied_sum;
};
// One address space: the arena of a class, the frame or a boundary of a chunk.
using PlacedValues = AddressMap<PlacedValue>;
// Nothing is left of what the value overwrites. Its bytes follow from its type and sharding.
void Place(const PlacedValue& value, int64_t address, const Mesh& mesh, PlacedValues* space);

// What a chunk's actions bring, by BaseKind; the entry of kAbsolute is not used.
using ChunkValues = std::array<PlacedValues, 6>;

// A value that is summed over all stages: how many of them make each of its entries.
struct StageShare {
  std::string reader;
  absl::string_view name;
  int64_t entries = 1;
  bool owed_by_all = false;  // every stage has computed a term of it
  std::map<int64_t, int> stages;
};
// By who reads it: call of the whole step, instruction, operand.
using StageShares = std::map<std::tuple<size_t, size_t, size_t>, StageShare>;

// The memory of one class, and the calls that work on it in order.
class ClassCalls {
 public:
  // Plan, class, shares and findings outlive this. `eval`: the calls are those of an evaluation.
  ClassCalls(const Plan& plan, const PlanClass& rank_class, bool eval, StageShares* shares,
             Diagnostics* findings);

  PlacedValues& arena() { return arena_; }
  // Says where the gradient of a parameter of the model stands.
  void SetGradient(int64_t address, ValueId param) { gradients_[address] = param; }

  // A call of a chunk.
  void RunOfChunk(const Call& call, ChunkValues* values);
  // A call of the update; `ordinal` counts those of the whole step.
  void RunOfUpdate(const Call& call, size_t ordinal);

  // Why a value cannot be read as `slot` at the end of a step, or empty.
  std::string Mismatch(const PlacedValue& value, const TensorType& type,
                       const Sharding& sharding) const;
  const std::string& place() const { return place_; }

 private:
  struct Site {  // a call
    const Call* call = nullptr;
    const Segment* segment = nullptr;
    bool of_stage = true;
    size_t ordinal = 0;
    ChunkValues* values = nullptr;
  };

  void Run(const Site& site);
  PlacedValues& SpaceOf(const Site& site, const Slot& slot, int64_t* address);
  ValueId NormOf(const Site& site, const Slot& slot);
  void Read(const Site& site, size_t instr, size_t operand, TiedSum* tied_sum);
  StageShare& ShareOf(const Site& site, size_t instr, size_t operand);
  void ReadEntries(const Site& site, size_t instr, size_t operand, const PlacedValues& space,
                   int64_t address);
  void ReadValue(const Site& site, size_t instr, size_t operand, const PlacedValue& value,
                 const TensorType& type, const Sharding& sharding, int64_t entry);
  void Write(const Site& site, size_t instr, size_t result, const TiedSum& tied_sum);
  const std::vector<int>* JoinedBy(const Instr& instr);
  bool MayBeZero(const Site& site, size_t instr, size_t operand) const;
  bool IsZero(const PlacedValues& space, int64_t begin, int64_t end) const;
  void Add(const Site& site, size_t instr, int slot, absl::string_view label,
           absl::string_view text);

  const Plan& plan_;
  const PlanClass& rank_class_;
  const bool eval_;
  const std::string place_;
  const AxisId pipeline_;
  StageShares& shares_;
  Diagnostics& findings_;
  std::map<const Instr*, std::vector<int>> joined_;  // by starts that join classes
  absl::flat_hash_map<int64_t, ValueId> gradients_;  // by address
  PlacedValues arena_;
  PlacedValues transient_;
  int64_t entries_read_ = 0;  // of vectors
  std::set<std::tuple<const Segment*, size_t, int>> reported_;
};

}  // namespace mgc

#endif  // MGC_GRAPH_VERIFY_PLACEMENT_PLACEMENT_CALLS_H_
