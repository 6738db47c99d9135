// order_v1, of places that layers take in turn.

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "graph/verify/order/order_internal.h"

namespace mgc {
namespace {

// What a layer reads in such a place, a call of the same layer and list has put there. A stale
// value of another layer has the same type and size.
class TurnCheck {
 public:
  TurnCheck(const Plan& plan, std::string place, Diagnostics* findings)
      : plan_(plan), place_(std::move(place)), findings_(*findings) {}

  void Run(const std::vector<Call>& calls) {
    for (const Call& call : calls) {
      const Segment& segment = plan_.segments[static_cast<size_t>(call.segment)];
      for (const Instr& instr : segment.instrs) {
        for (const int slot : instr.inputs) Read(call, segment, slot);
        for (const int slot : instr.outputs) Write(call, segment, slot);
      }
    }
  }

 private:
  static size_t FormalOf(const Segment& segment, int slot) {
    return static_cast<size_t>(segment.slots[static_cast<size_t>(slot)].formal);
  }

  void Write(const Call& call, const Segment& segment, int slot) {
    const size_t formal = FormalOf(segment, slot);
    if (IsInTurn(segment.formals[formal].region)) {
      holders_[call.bindings[formal].offset] = call.layer;
    }
  }

  void Read(const Call& call, const Segment& segment, int slot) {
    const size_t formal = FormalOf(segment, slot);
    if (!IsInTurn(segment.formals[formal].region)) return;
    const int64_t place = call.bindings[formal].offset;
    const auto holder = holders_.find(place);
    if (holder != holders_.end() && holder->second == call.layer) return;
    findings_.Add("order_v1", place_,
                  absl::StrCat(segment.name, " for ", NameOfLayer(call.layer), " reads `",
                               ToString(segment.formals[formal]), "` at ", place, ", where ",
                               holder == holders_.end() ? "nothing" : NameOfLayer(holder->second),
                               " has left something"));
  }

  const Plan& plan_;
  const std::string place_;
  Diagnostics& findings_;
  absl::flat_hash_map<int64_t, int> holders_;  // layers by place
};

}  // namespace

void CheckTurns(const StepTables& tables, Diagnostics* findings) {
  for (const StepClass& walk : tables.classes) {
    for (const Chunk& chunk : *walk.chunks) {
      for (const auto* calls : ListsOf(chunk)) {
        TurnCheck(tables.plan, PlaceOf(tables, walk), findings).Run(*calls);
      }
    }
  }
}

}  // namespace mgc
