#include "tests/plan_corpus/normal_form.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "graph/ir/op.h"
#include "graph/text/printer.h"
#include "graph/types/sharding.h"

namespace mgc {
namespace {

class NormalPrinter {
 public:
  explicit NormalPrinter(const Plan& plan) : plan_(plan) {}

  std::string Print() {
    Line("batch", plan_.micro_batch_size, plan_.global_batch_size, plan_.num_micro_batches,
         plan_.seq_length, plan_.vocab);
    text_ += PrintMesh(plan_.mesh);
    for (const Segment& segment : plan_.segments) Print(segment);
    for (const ParamBlock& block : plan_.blocks) Print(block);
    for (const PlanClass& rank_class : plan_.classes) Print(rank_class);
    return std::move(text_);
  }

 private:
  template <typename... Parts>
  void Line(const Parts&... parts) {
    const std::vector<std::string> words = {absl::StrCat(parts)...};
    absl::StrAppend(&text_, absl::StrJoin(words, " "), "\n");
  }
  std::string Text(const Sharding& sharding) const { return ToString(sharding, plan_.mesh); }

  void Print(const Segment& segment) {
    Line("segment", segment.formals.size(), segment.num_collectives, segment.transient_bytes,
         segment.workspace_bytes);
    for (const Slot& slot : segment.slots) {
      Line("slot", TypeText(slot.type), Text(slot.sharding), slot.formal, slot.offset, slot.bytes);
    }
    for (const Instr& instr : segment.instrs) {
      Line("instr", static_cast<int>(instr.kind), instr.op == nullptr ? "-" : instr.op->name,
           MeaningOf(instr.attrs), absl::StrJoin(instr.inputs, ","),
           absl::StrJoin(instr.outputs, ","), instr.collective, NameOf(instr.phase));
    }
  }

  // Attributes, less the words for people and the group that a collective's shardings do not say.
  static std::string MeaningOf(const Attrs& attrs) {
    Attrs kept;
    for (const auto& [name, value] : attrs) {
      if (name != "label" && name != "group") kept.Set(name, value);
    }
    return AttrsText(kept);
  }

  // Where states stand; which they are follows from the parameter's optimizer.
  static std::string StatesText(const ParamEntry& entry) {
    return absl::StrJoin(entry.states, " ", [](std::string* text, const ParamState& state) {
      absl::StrAppend(text, state.offset);
    });
  }

  void Print(const ParamBlock& block) {
    Line("block", block.param_bytes, block.grad_bytes, block.state_bytes);
    for (const ParamEntry& entry : block.entries) {
      Line("param", entry.name, TypeText(entry.type), Text(entry.sharding),
           Text(entry.state_sharding), AttrsText(entry.init), entry.param_offset,
           entry.gradient_offset, StatesText(entry));
    }
  }

  void Print(const PlanClass& c) {
    Line("class", c.coordinate, c.global_bytes, c.eval_global_bytes);
    for (const HeldBlock& held : c.blocks) {
      Line("hold", held.block, held.layer, held.owner ? 1 : 0, held.param_base, held.grad_base,
           held.state_base);
    }
    for (const Chunk& chunk : c.chunks) Print(chunk);
    for (const Chunk& chunk : c.eval_chunks) Print(chunk);
    Print("update", c.update);
    Print("eval_update", c.eval_update);
    Print(c.train);
    Print(c.eval);
    for (const Range& range : c.zeroed) Line("zeroed", range.begin, range.end);
    for (const Range& range : c.eval_zeroed) Line("eval_zeroed", range.begin, range.end);
    Print("scalar", c.scalars);
    Print("carried", c.carried);
    Print("report", c.reports);
    Print("eval_report", c.eval_reports);
    const MemoryUse& m = c.memory;
    Line("memory", m.params, m.grads, m.states, m.copies, m.frames, m.boundaries, m.transient,
         m.peak, m.workspace);
  }

  void Print(const Chunk& chunk) {
    Line("chunk", chunk.stage, chunk.first_layer, chunk.num_layers, chunk.has_embedding ? 1 : 0,
         chunk.has_head ? 1 : 0, chunk.frame_bytes);
    Print("prepare", chunk.prepare);
    Print("forward", chunk.forward);
    Print("backward", chunk.backward);
    Print("last_backward", chunk.last_backward);
  }

  void Print(const char* what, absl::Span<const Call> calls) {
    for (const Call& call : calls) {
      Line(what, call.segment, call.layer, call.running,
           absl::StrJoin(call.bindings, ",", [](std::string* out, const Binding& binding) {
             absl::StrAppend(out, static_cast<int>(binding.base), "+", binding.offset);
           }));
    }
  }

  void Print(const char* what, absl::Span<const NamedAddress> list) {
    for (const NamedAddress& named : list) Line(what, named.address);
  }

  static absl::string_view Word(ActionKind kind) { return LetterOf(kind); }
  static absl::string_view Word(TransferKind kind) { return WordOf(kind); }
  template <typename Ref>
  static std::string Text(const Ref& ref) {
    return absl::StrCat(Word(ref.kind), ":", ref.chunk, ":", ref.micro_batch);
  }
  template <typename Ref>
  static std::string Text(const std::vector<Ref>& refs) {
    return absl::StrCat(
        "[",
        absl::StrJoin(refs, " ", [](std::string* out, const Ref& ref) { out->append(Text(ref)); }),
        "]");
  }

  void Print(const Program& program) {
    for (const Action& a : program.compute) {
      Line("action", Text(a.ref), a.frame, a.input, a.output, a.grad_input, a.grad_output,
           Text(a.waits));
    }
    for (const Transfer& t : program.transfers) {
      Line("transfer", Text(t.ref), t.address, t.bytes, t.peer, Text(t.anchor), t.issued,
           Text(t.after), Text(t.after_transfers));
    }
  }

  const Plan& plan_;
  std::string text_;
};

}  // namespace

std::string NormalForm(const Plan& plan) { return NormalPrinter(plan).Print(); }

}  // namespace mgc
