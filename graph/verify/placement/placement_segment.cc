#include "graph/verify/placement/placement_segment.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/file.h"
#include "graph/ir/check_op_sharding.h"
#include "graph/ir/op.h"
#include "graph/plan/instr_collective.h"
#include "graph/types/sharding_text.h"

namespace mgc {
namespace {

absl::string_view LabelOf(ShardingFaultKind kind) {
  switch (kind) {
    case ShardingFaultKind::kOperandCut:
    case ShardingFaultKind::kNoRule:
      return "placement_v1";
    case ShardingFaultKind::kResultCut:
      return "placement_v2";
    case ShardingFaultKind::kOwedOperand:
      return "placement_v3";
    case ShardingFaultKind::kOwedResult:
      return "placement_v4";
    case ShardingFaultKind::kCollective:
      return "placement_v5";
  }
  return "";
}

class SegmentPlacement {
 public:
  SegmentPlacement(const Plan& plan, const Segment& segment, bool of_stage, Diagnostics* findings)
      : plan_(plan),
        segment_(segment),
        of_stage_(of_stage),
        pipeline_(PipelineAxis(plan.mesh)),
        findings_(*findings) {}

  void Run() {
    StripStages();
    for (size_t i = 0; i < segment_.instrs.size(); ++i) {
      const Instr& instr = segment_.instrs[i];
      if (instr.kind == InstrKind::kLoad) CheckLoad(i);
      if (instr.kind == InstrKind::kCompute) CheckCompute(i);
      if (instr.kind == InstrKind::kStart) CheckStart(i);
    }
  }

 private:
  void Add(size_t instr, absl::string_view label, absl::string_view text) {
    findings_.Add(label, PlaceOf(plan_, segment_, instr), text);
  }
  const Slot& SlotAt(int slot) const { return segment_.slots[static_cast<size_t>(slot)]; }
  const Sharding& ShardingAt(int slot) const { return shardings_[static_cast<size_t>(slot)]; }
  std::string Shown(int slot) const {
    return absl::StrCat("%", EscapeBytes(SlotAt(slot).name), " ",
                        ToString(SlotAt(slot).sharding, plan_.mesh));
  }

  // Shardings as seen inside a stage. Stages share no tensor, so `pp` can only be owed.
  void StripStages() {
    for (const Slot& slot : segment_.slots) {
      shardings_.push_back(slot.sharding);
      if (pipeline_ < 0) continue;
      if (slot.sharding.UsedAxes().Contains(pipeline_) && !slot.sharding.sum.Contains(pipeline_)) {
        findings_.Add(
            "placement_v9", absl::StrCat("segment ", EscapeBytes(segment_.name)),
            absl::StrCat("%", EscapeBytes(slot.name), " ", ToString(slot.sharding, plan_.mesh),
                         " is cut over pp, but each stage holds values of its own"));
      }
      if (of_stage_) shardings_.back().sum.Remove(pipeline_);
    }
  }

  void CheckLoad(size_t index) {
    const Instr& instr = segment_.instrs[index];
    const Slot& slot = SlotAt(instr.outputs[0]);
    const std::string name = instr.attrs.Text("name");
    const GraphInput* input = plan_.model.FindInput(plan_.model.FindValue(name));
    if (input == nullptr || input->kind != InputKind::kData) {
      Add(index, "placement_v6",
          absl::StrCat("loads `", EscapeBytes(name), "`, which is no data input of the model"));
      return;
    }
    const TensorType& type = plan_.model.type(input->value);
    if (!SameStorage(type, slot.type)) {
      Add(index, "placement_v6",
          absl::StrCat("loads `", EscapeBytes(name), "` as ", slot.type.ToString(), "; it is ",
                       type.ToString()));
    }
    if (!slot.sharding.Owed().empty() || !slot.sharding.storage.empty()) {
      Add(index, "placement_v6",
          absl::StrCat("loads ", Shown(instr.outputs[0]),
                       "; a data input owes nothing and is cut by dims only"));
    }
  }

  OpSharding UseOf(const Instr& instr, const std::vector<int>& inputs,
                   const std::vector<int>& outputs) const {
    OpSharding use{instr.op, &instr.attrs, &plan_.mesh, {}, {}};
    const auto laid_out = [this](int slot) {
      return LaidOut{SlotAt(slot).name, &SlotAt(slot).type, &ShardingAt(slot)};
    };
    for (int slot : inputs) use.operands.push_back(laid_out(slot));
    for (int slot : outputs) use.results.push_back(laid_out(slot));
    return use;
  }

  void Report(size_t index, const OpSharding& use) {
    for (const ShardingFault& fault : CheckOpSharding(use))
      Add(index, LabelOf(fault.kind), fault.text);
  }

  void CheckCompute(size_t index) {
    const Instr& instr = segment_.instrs[index];
    if (instr.op->name == "reshard") {
      const Sharding& from = ShardingAt(instr.inputs[0]);
      const Sharding& to = ShardingAt(instr.outputs[0]);
      if (from == to) return;
      Add(index, "placement_v5",
          absl::StrCat("copies ", Shown(instr.inputs[0]), " to ", Shown(instr.outputs[0]), ": ",
                       ExplainChange(from, to, plan_.mesh)));
      return;
    }
    Report(index, UseOf(instr, instr.inputs, instr.outputs));
  }

  void CheckStart(size_t index) {
    const Instr& instr = segment_.instrs[index];
    if (JoinsClasses(instr)) {
      if (!of_stage_) {
        Add(index, "placement_v5", "sums copies of tied weights where there are none");
      }
      return;
    }
    // Kind and axes are one for all operands: plan_c17.
    if (of_stage_ && pipeline_ >= 0 &&
        CollectiveOf(plan_.mesh, plan_.stages, segment_, instr).axes().Contains(pipeline_)) {
      Add(index, "placement_v5", "goes over pp inside a layer, which the other stages do not run");
      return;
    }
    for (size_t i = 0; i < instr.inputs.size(); ++i) {
      Report(index, UseOf(instr, {instr.inputs[i]}, {instr.outputs[i]}));
    }
  }

  const Plan& plan_;
  const Segment& segment_;
  const bool of_stage_;
  const AxisId pipeline_;
  Diagnostics& findings_;
  std::vector<Sharding> shardings_;
};

}  // namespace

std::string PlaceOf(const Plan& plan, const Segment& segment, size_t instr) {
  const Instr& at = segment.instrs[instr];
  std::string place = absl::StrCat("segment ", EscapeBytes(segment.name), ", instruction ", instr);
  if (at.op != nullptr) absl::StrAppend(&place, " ", at.op->name);
  if (at.kind == InstrKind::kLoad) absl::StrAppend(&place, " load");
  const std::string loc = plan.model.LocText(at.loc);
  if (!loc.empty()) absl::StrAppend(&place, " (", loc, ")");
  return place;
}

bool SameStorage(const TensorType& a, const TensorType& b) {
  if (a.dtype != b.dtype || a.ndim() != b.ndim()) return false;
  for (size_t d = 0; d < a.dims.size(); ++d) {
    if (a.dims[d].size != b.dims[d].size || a.dims[d].multiple != b.dims[d].multiple) return false;
  }
  return true;
}

void CheckSegmentPlacement(const Plan& plan, const Segment& segment, bool of_stage,
                           Diagnostics* findings) {
  SegmentPlacement(plan, segment, of_stage, findings).Run();
}

}  // namespace mgc
