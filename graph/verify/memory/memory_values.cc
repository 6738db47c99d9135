// memory_v3, v6.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/verify/common/address_map.h"
#include "graph/verify/common/memory_ranges.h"
#include "graph/verify/memory/memory_internal.h"

namespace mgc {
namespace {

constexpr size_t kMostPairs = size_t{1} << 24;  // of operands of an instruction

// Who has put the bytes of a range there.
struct Writer {
  enum Kind { kGiven, kSlot, kCut };
  Kind kind = kGiven;          // kCut: part of a value whose rest is gone
  const Call* call = nullptr;  // of kSlot and kCut
  int slot = -1;
  bool renamed = false;  // a result that takes its operand's slot: others read it by another name
};

using WriterMap = AddressMap<Writer>;

// Of a value that another one has cut, a part stays.
bool Cut(Writer* writer) {
  if (writer->kind == Writer::kSlot) writer->kind = Writer::kCut;
  return true;
}

// Runs a class' step for the last micro-batch, with the addresses it really uses.
class ValueCheck {
 public:
  ValueCheck(const StepTables& tables, const StepClass& walk, Diagnostics* findings)
      : tables_(tables), walk_(walk), findings_(*findings) {}

  void Run() {
    const PlanClass& plan_class = *walk_.plan_class;
    std::vector<Range> carried;
    for (const NamedRange& block : BlockRanges(tables_.plan, plan_class)) {
      if (block.name[0] == 'g') continue;
      values_.Put(block.range, {}, Cut);
      carried.push_back(block.range);
    }
    for (const NamedAddress& number : plan_class.carried) {
      carried.push_back({number.address, number.address + 8});
    }
    carried_ = Merged(std::move(carried));
    for (const Range& range : ZeroedRanges(plan_class, tables_.eval)) values_.Put(range, {}, Cut);
    for (const auto* given : {&plan_class.scalars, &plan_class.carried}) {
      for (const NamedAddress& number : *given) {
        values_.Put({number.address, number.address + 8}, {}, Cut);
      }
    }
    for (const StepAction* action : ProjectedActions(tables_, walk_)) {
      action_ = action;
      Receive();
      for (const Call& call : *action->calls) RunCall(call);
    }
    for (const NamedAddress& report : tables_.eval ? plan_class.eval_reports : plan_class.reports) {
      CheckReport(report.name, {report.address, report.address + 8});
    }
    for (const NamedTensor& result : plan_class.results) {
      if (!tables_.eval) CheckReport(result.name, RangeOfTensor(result, 0));
    }
  }

 private:
  // What a transfer has put where the action reads it.
  void Receive() {
    const ActionRef& ref = action_->action->ref;
    if (!IsOfMicroBatch(ref.kind)) return;
    const int index = walk_.IndexOf(TransferRef{
        ref.kind == ActionKind::kForward ? TransferKind::kRecvForward : TransferKind::kRecvBackward,
        ref.chunk, ref.micro_batch});
    if (index < 0) return;
    const Transfer& transfer = *walk_.transfers[static_cast<size_t>(index)].transfer;
    values_.Put({transfer.address, transfer.address + transfer.bytes}, {}, Cut);
  }

  void RunCall(const Call& call) {
    call_ = &call;
    segment_ = &tables_.plan.segments[static_cast<size_t>(call.segment)];
    for (const Instr& instr : segment_->instrs) {
      if (instr.kind == InstrKind::kWait) continue;
      instr_ = &instr;
      for (int slot : instr.inputs) Read(slot);
      CheckInPlace();
      for (int slot : instr.outputs) {
        CheckLeavesCarried(slot);
        const bool renamed = std::count(instr.inputs.begin(), instr.inputs.end(), slot) > 0;
        values_.Put(RangeOfSlot(slot), {Writer::kSlot, &call, slot, renamed}, Cut);
      }
    }
  }

  const Slot& SlotAt(int slot) const { return segment_->slots[static_cast<size_t>(slot)]; }
  Range RangeOfSlot(int slot) const { return RangeOf(SlotAt(slot), *call_, *action_->action); }

  void Read(int slot) {
    const Range range = RangeOfSlot(slot);
    int64_t at = range.begin;
    for (const WriterMap::Entry& entry : values_.Overlapping(range)) {
      if (entry.range.begin > at) break;
      const Writer& writer = entry.value;
      at = entry.range.end;
      if (writer.kind == Writer::kGiven) continue;
      // A value may be made of several that lie side by side, never of a part of one.
      const bool whole = writer.kind == Writer::kSlot && entry.range.begin >= range.begin &&
                         entry.range.end <= range.end;
      const bool stale = writer.call == call_ && writer.slot != slot && !writer.renamed &&
                         Equal(entry.range, range);
      if (whole && !stale) continue;
      Report(absl::StrCat("reads `", SlotAt(slot).name, "` at ", ToString(range), ", which `",
                          NameOfWriter(writer), "` at ", ToString(entry.range),
                          writer.kind == Writer::kCut ? " and others have" : " has",
                          " overwritten"));
      return;
    }
    if (at < range.end) {
      Report(absl::StrCat("reads `", SlotAt(slot).name, "` at ", ToString(range),
                          ", where nothing was put at ", at));
    }
  }

  const std::string& NameOfWriter(const Writer& writer) const {
    return tables_.plan.segments[static_cast<size_t>(writer.call->segment)]
        .slots[static_cast<size_t>(writer.slot)]
        .name;
  }

  // Results take the places of operands that the op lets them, exactly, and of nothing else that
  // the instruction uses.
  void CheckInPlace() {
    const std::vector<int>& outputs = instr_->outputs;
    if (outputs.size() * (outputs.size() + instr_->inputs.size()) > kMostPairs) {
      findings_.Add("memory_v5", Place(), "an instruction has too many operands");
      return;
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      const Range made = RangeOfSlot(outputs[i]);
      for (size_t k = 0; k < instr_->inputs.size(); ++k) {
        const Range read = RangeOfSlot(instr_->inputs[k]);
        if (!Overlap(made, read)) continue;
        const bool may = instr_->op != nullptr && MayTakePlace(*instr_->op, i, k);
        if (may && Equal(made, read)) continue;
        if (i == k && Equal(made, read) && instr_->kind == InstrKind::kStart) {
          Report(absl::StrCat("writes `", SlotAt(outputs[i]).name, "` over its operand `",
                              SlotAt(instr_->inputs[k]).name, "` at ", ToString(read), "; ",
                              instr_->op->name, " may not work in place"));
        } else {
          ReportOverlap(outputs[i], instr_->inputs[k]);
        }
      }
      for (size_t j = 0; j < i; ++j) {
        if (Overlap(made, RangeOfSlot(outputs[j]))) ReportOverlap(outputs[i], outputs[j]);
      }
    }
  }

  void ReportOverlap(int output, int other) {
    Report(absl::StrCat("writes `", SlotAt(output).name, "` at ", ToString(RangeOfSlot(output)),
                        " across `", SlotAt(other).name, "` at ", ToString(RangeOfSlot(other))));
  }

  // Between two updates others may read what steps carry on: a checkpoint is written meanwhile.
  void CheckLeavesCarried(int slot) {
    const ActionKind kind = action_->action->ref.kind;
    if (kind == ActionKind::kUpdate && !tables_.eval) return;
    if (kind == ActionKind::kForward && IsKept(RangeOfSlot(slot))) return;
    if (!Touches(carried_, RangeOfSlot(slot))) return;
    Report("memory_v6",
           absl::StrCat("writes `", SlotAt(slot).name, "` at ", ToString(RangeOfSlot(slot)),
                        ", where parameters, states or numbers lie that the update "
                        "alone may write"));
  }

  Range RangeOfTensor(const NamedTensor& tensor, int64_t base) const {
    const int64_t elements = LocalElements(tensor.type, tensor.sharding, tables_.plan.mesh);
    const int64_t begin = base + tensor.address;
    return {begin, begin + elements * SizeOf(tensor.type.dtype)};
  }

  // Whether forward may write there: what steps leave for the next, of the call's own layer.
  bool IsKept(const Range& range) const {
    if (tables_.eval) return false;
    const HeldBlock* held = FindHeld(tables_.plan, *walk_.plan_class, "", call_->layer);
    if (held == nullptr) return false;
    const std::vector<NamedTensor>& kept =
        tables_.plan.blocks[static_cast<size_t>(held->block)].kept;
    return std::any_of(kept.begin(), kept.end(), [&](const NamedTensor& tensor) {
      return Equal(range, RangeOfTensor(tensor, held->state_base));
    });
  }

  void CheckReport(const std::string& name, const Range& range) {
    const WriterMap::Entry* found = values_.Find(range);
    if (found != nullptr && Equal(found->range, range) && found->value.kind == Writer::kSlot) {
      return;
    }
    findings_.Add("memory_v3", Place(),
                  absl::StrCat("reports `", name, "` from ", range.begin,
                               ", where no instruction puts ", range.end - range.begin, " bytes"));
  }

  std::string Place() const {
    return absl::StrCat("class ", walk_.plan_class->coordinate,
                        tables_.eval ? ", evaluation" : ", training");
  }

  void Report(const std::string& text) { Report("memory_v3", text); }
  void Report(absl::string_view label, const std::string& text) {
    const bool layered = call_->layer >= 0;
    findings_.Add(label,
                  absl::StrCat(Place(), ", ", NameOf(action_->action->ref, *walk_.chunks), " ",
                               segment_->name, layered ? absl::StrCat(" layer ", call_->layer) : "",
                               ", instruction ", instr_ - segment_->instrs.data(), " ",
                               instr_->op == nullptr ? "load" : instr_->op->name),
                  text);
  }

  const StepTables& tables_;
  const StepClass& walk_;
  Diagnostics& findings_;
  const StepAction* action_ = nullptr;
  const Call* call_ = nullptr;
  const Segment* segment_ = nullptr;
  const Instr* instr_ = nullptr;
  WriterMap values_;
  std::vector<Range> carried_;  // parameters, states and numbers that outlive the step; merged
};

}  // namespace

void CheckValues(const StepTables& tables, Diagnostics* findings) {
  for (const StepClass& walk : tables.classes) ValueCheck(tables, walk, findings).Run();
}

}  // namespace mgc
