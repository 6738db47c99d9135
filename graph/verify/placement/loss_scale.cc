#include "graph/verify/placement/loss_scale.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/file.h"
#include "graph/ir/op.h"
#include "graph/ir/step_names.h"
#include "graph/verify/placement/placement_segment.h"

namespace mgc {
namespace {

class LossScaleCheck {
 public:
  LossScaleCheck(const Plan& plan, Diagnostics* findings) : plan_(plan), findings_(*findings) {}

  void Run() {
    const bool scales = ScalesLoss(plan_);
    for (const PlanClass& rank_class : plan_.classes) {
      if (scales) CheckNames(rank_class);
      for (const Chunk& chunk : rank_class.chunks) {
        for (const auto* calls : ListsOf(chunk)) {
          for (const Call& call : *calls) scales ? CheckCall(rank_class, call) : CheckWide(call);
        }
      }
    }
  }

 private:
  const Segment& SegmentOf(const Call& call) const {
    return plan_.segments[static_cast<size_t>(call.segment)];
  }

  void CheckNames(const PlanClass& rank_class) {
    std::vector<std::string> names, expected(std::begin(kCarriedNames), std::end(kCarriedNames));
    for (const NamedAddress& carried : rank_class.carried) names.push_back(carried.name);
    std::sort(names.begin(), names.end());
    std::sort(expected.begin(), expected.end());
    if (names == expected) return;
    std::string text = "carries";
    for (const std::string& name : names) absl::StrAppend(&text, " `", EscapeBytes(name), "`");
    absl::StrAppend(&text, names.empty() ? " nothing" : "",
                    "; a step that scales its loss carries");
    for (const std::string& name : expected) absl::StrAppend(&text, " `", name, "`");
    findings_.Add("placement_v18", absl::StrCat("class ", rank_class.coordinate), text);
  }

  // Without a scale: nothing of a backward is of f16.
  void CheckWide(const Call& call) {
    const Segment& segment = SegmentOf(call);
    for (size_t i = 0; i < segment.instrs.size(); ++i) {
      const Instr& instr = segment.instrs[i];
      if (instr.phase != Phase::kBackward) continue;
      const auto narrow = std::find_if(instr.outputs.begin(), instr.outputs.end(), [&](int slot) {
        return SlotAt(segment, slot).type.dtype == DType::kF16;
      });
      if (narrow == instr.outputs.end() || !reported_.insert({&segment, 0}).second) continue;
      findings_.Add("placement_v18", PlaceOf(plan_, segment, i),
                    absl::StrCat("makes %", EscapeBytes(SlotAt(segment, *narrow).name),
                                 " of f16, and the plan carries no scale of its loss"));
    }
  }

  static const Slot& SlotAt(const Segment& segment, int slot) {
    return segment.slots[static_cast<size_t>(slot)];
  }

  void CheckCall(const PlanClass& rank_class, const Call& call) {
    const Segment& segment = SegmentOf(call);
    for (size_t i = 0; i < segment.instrs.size(); ++i) {
      const Instr& instr = segment.instrs[i];
      for (size_t k = 0; k < instr.inputs.size(); ++k) {
        if (!IsScale(rank_class, call, SlotAt(segment, instr.inputs[k]))) continue;
        if (IsSeed(segment, i, k) || !reported_.insert({&segment, i}).second) continue;
        findings_.Add("placement_v19", PlaceOf(plan_, segment, i),
                      absl::StrCat("reads the scale of the loss, which multiplies the seeds of "
                                   "losses and nothing else: a gradient is scaled before it is "
                                   "rounded"));
      }
    }
  }

  static bool IsScale(const PlanClass& rank_class, const Call& call, const Slot& slot) {
    const Binding& binding = call.bindings[static_cast<size_t>(slot.formal)];
    if (slot.formal == 0 || binding.base != BaseKind::kAbsolute) return false;
    return std::any_of(
        rank_class.carried.begin(), rank_class.carried.end(), [&](const NamedAddress& carried) {
          return carried.name == kLossScale && carried.address == binding.offset + slot.offset;
        });
  }

  // Whether instruction `index` multiplies operand `scale` by a constant and nothing more.
  static bool IsSeed(const Segment& segment, size_t index, size_t scale) {
    const Instr& product = segment.instrs[index];
    const bool is_product = product.kind == InstrKind::kCompute && product.op->name == "mul" &&
                            product.inputs.size() == 2 && product.phase == Phase::kBackward;
    if (!is_product) return false;
    const int other = product.inputs[1 - scale];
    for (size_t i = index; i-- > 0;) {
      const Instr& maker = segment.instrs[i];
      if (std::count(maker.outputs.begin(), maker.outputs.end(), other) == 0) continue;
      return maker.kind == InstrKind::kCompute && maker.op->name == "constant";
    }
    return false;
  }

  const Plan& plan_;
  Diagnostics& findings_;
  std::set<std::pair<const Segment*, size_t>> reported_;
};

}  // namespace

void CheckLossScale(const Plan& plan, Diagnostics* findings) {
  LossScaleCheck(plan, findings).Run();
}

}  // namespace mgc
