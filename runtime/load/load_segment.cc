#include "runtime/load/load_segment.h"

#include <utility>

#include "graph/base/status.h"

namespace mgc {
namespace {

class SegmentLoader {
 public:
  SegmentLoader(const Plan& plan, absl::Span<const DataInput> inputs, const StepSegment& segment)
      : plan_(plan), inputs_(inputs), segment_(*segment.segment), starts_(segment.starts) {
    out_.segment = &segment_;
  }

  LoadedSegment Run() {
    for (const Slot& slot : segment_.slots) {
      const int64_t elements = LocalElements(slot.type, slot.sharding, plan_.mesh);
      slots_.push_back({slot.formal, slot.offset, elements * SizeOf(slot.type.dtype)});
    }
    for (const Instr& instr : segment_.instrs) LoadInstr(instr);
    return std::move(out_);
  }

 private:
  std::vector<LoadedSlot> SlotsOf(const std::vector<int>& numbers) const {
    std::vector<LoadedSlot> slots;
    slots.reserve(numbers.size());
    for (int number : numbers) slots.push_back(slots_[static_cast<size_t>(number)]);
    return slots;
  }

  int InputNamed(absl::string_view name) const {
    size_t i = 0;
    while (inputs_[i].name != name) ++i;
    return static_cast<int>(i);
  }

  void LoadInstr(const Instr& instr) {
    LoadedInstr loaded;
    loaded.instr = &instr;
    loaded.kind = instr.kind;
    loaded.inputs = SlotsOf(instr.inputs);
    loaded.outputs = SlotsOf(instr.outputs);
    switch (instr.kind) {
      case InstrKind::kCompute:
        loaded.kernel = out_.num_kernels++;
        break;
      case InstrKind::kLoad:
        loaded.data = InputNamed(instr.attrs.Text("name"));
        break;
      case InstrKind::kStart:
        out_.exchanges.push_back(LoadExchange(instr));
        loaded.exchange = instr.collective;
        break;
      case InstrKind::kWait:
        loaded.exchange = instr.collective;
        break;
    }
    out_.instrs.push_back(std::move(loaded));
  }

  LoadedExchange LoadExchange(const Instr& instr) const {
    LoadedExchange exchange;
    exchange.instr = static_cast<int>(out_.instrs.size());
    exchange.start = &starts_[static_cast<size_t>(instr.collective)];
    for (size_t i = 0; i < instr.inputs.size(); ++i) {
      const Slot& in = segment_.slots[static_cast<size_t>(instr.inputs[i])];
      const Slot& out = segment_.slots[static_cast<size_t>(instr.outputs[i])];
      exchange.parts.push_back(ExchangeOf(exchange.start->collective.parts[i], in.type, in.sharding,
                                          out.sharding, plan_.mesh));
      // A sum that joins some classes has no pieces, and fewer members than its axis has ranks.
      const InstrCollective& collective = exchange.start->collective;
      if (!collective.classes.empty()) {
        exchange.parts.back().piece.resize(static_cast<size_t>(collective.ranks));
      }
    }
    return exchange;
  }

  const Plan& plan_;
  const absl::Span<const DataInput> inputs_;
  const Segment& segment_;
  const std::vector<StepStart>& starts_;
  LoadedSegment out_;
  std::vector<LoadedSlot> slots_;
};

}  // namespace

LoadedSegment LoadSegment(const Plan& plan, absl::Span<const DataInput> inputs,
                          const StepSegment& segment) {
  return SegmentLoader(plan, inputs, segment).Run();
}

}  // namespace mgc
