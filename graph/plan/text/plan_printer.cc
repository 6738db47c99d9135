#include <array>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/ir/op.h"
#include "graph/plan/plan_fold.h"
#include "graph/plan/text/plan_text.h"
#include "graph/plan/text/plan_words.h"
#include "graph/text/block_printer.h"
#include "graph/text/lexer.h"
#include "graph/text/machine_text.h"
#include "graph/text/printer.h"

namespace mgc {
namespace {

// An address, or the cycle of `cycles` that stands for it.
std::string AddressText(int64_t address, const AddressCycle* cycle) {
  if (cycle == nullptr) return absl::StrCat(address);
  return absl::StrCat("(", absl::StrJoin(cycle->addresses, " "), ")");
}

// Of one entry: the cycle of each address, or null.
using Cycles = std::array<const AddressCycle*, kMaxAddresses>;

// Lines of one program.
class EntryPrinter {
 public:
  explicit EntryPrinter(const std::vector<Chunk>& chunks) : chunks_(chunks) {}

  std::string Text(const Action& action, const Cycles& cycles) const {
    std::string text = NameOf(action.ref, chunks_);
    const auto addresses = AddressesOf(&action);
    for (size_t i = 0; i < addresses.size(); ++i) {
      if (*addresses[i] == -1) continue;
      absl::StrAppend(&text, " ", kAddressWords[i], " ", AddressText(*addresses[i], cycles[i]));
    }
    return absl::StrCat(text, RefsText("wait", action.waits, chunks_));
  }
  std::string Text(const Transfer& transfer, const Cycles& cycles) const {
    return absl::StrCat(
        NameOf(transfer.ref, chunks_), " at ", AddressText(transfer.address, cycles[0]), " bytes ",
        transfer.bytes, " peer ", transfer.peer, " behind ", transfer.issued, " of ",
        NameOf(transfer.anchor, chunks_), RefsText("after", transfer.after, chunks_),
        RefsText("after_transfers", transfer.after_transfers, chunks_));
  }

 private:
  const std::vector<Chunk>& chunks_;
};

std::string FormalText(const Segment& segment, int formal) {
  if (formal < 0 || formal >= static_cast<int>(segment.formals.size())) {
    return absl::StrCat(formal);
  }
  const Formal& named = segment.formals[static_cast<size_t>(formal)];
  return FindFormal(segment.formals, named) == formal ? NameText(ToString(named))
                                                      : absl::StrCat(formal);
}

// `@name`, or the number where the name says another entry.
template <typename Entry>
std::string EntryName(const std::vector<Entry>& list, int number) {
  if (number < 0 || number >= static_cast<int>(list.size())) return absl::StrCat(number);
  const std::string& name = list[static_cast<size_t>(number)].name;
  return FindNamed(list, name) == number ? SymbolText(name) : absl::StrCat(number);
}

std::string SlotsText(const std::vector<int>& slots) {
  return absl::StrJoin(slots, ", ",
                       [](std::string* out, int slot) { absl::StrAppend(out, "%", slot); });
}

// ` at "model.cc":3:1`; nothing where the model does not know the file.
std::string PlaceText(const Graph& model, const SourceLoc& loc) {
  if (loc.file < 0 || loc.file >= static_cast<int>(model.files().size())) return "";
  return absl::StrCat(" at ", QuotedText(model.files()[static_cast<size_t>(loc.file)]), ":",
                      loc.line, ":", loc.column);
}

// ` (0 0) (1 0)`: class and chunk of each.
std::string StagesText(const std::vector<StagePlace>& stages) {
  std::string text;
  for (const StagePlace& place : stages) {
    absl::StrAppend(&text, " (", place.rank_class, " ", place.chunk, ")");
  }
  return text;
}

std::string TensorText(const NamedTensor& tensor, const Mesh& mesh) {
  return absl::StrCat(QuotedText(tensor.name), ": ", TypeText(tensor.type), " ",
                      ToString(tensor.sharding, mesh), " at ", tensor.address);
}

class PlanPrinter : public BlockPrinter {
 public:
  explicit PlanPrinter(const Plan& plan) : plan_(plan) {}

  std::string Print() {
    PrintHeader();
    Append(PrintMesh(plan_.mesh));
    Append(PrintMachine(plan_.machine));
    Append(PrintGraph(plan_.model));
    PrintParts();
    for (const PlanClass& rank_class : plan_.classes) PrintClass(rank_class);
    return Take();
  }

  void PrintParts() {
    for (const Segment& segment : plan_.segments) PrintSegment(segment);
    for (const ParamBlock& block : plan_.blocks) PrintBlock(block);
  }

 private:
  void PrintHeader() {
    Open("plan ", SymbolText(plan_.name), " version ", kPlanVersion);
    for (const auto& [name, value] : plan_.options) {
      Line("flag ", QuotedText(name), " ", QuotedText(value));
    }
    Line("batch micro ", plan_.micro_batch_size, " global ", plan_.global_batch_size,
         " micro_batches ", plan_.num_micro_batches, " seq ", plan_.seq_length, " vocab ",
         plan_.vocab);
    if (plan_.gradient_sums != DType::kF32) {
      Line("gradient_sums ", NameOf(plan_.gradient_sums));
    }
    Line("stages", StagesText(plan_.stages));
    Line("predicted ", plan_.predicted_step_ns);
    for (const std::string& note : plan_.notes) Line("note ", QuotedText(note));
    Close();
  }

  void PrintSegment(const Segment& segment) {
    Open("segment ", SymbolText(segment.name), " transient ", segment.transient_bytes,
         " workspace ", segment.workspace_bytes, " collectives ", segment.num_collectives, " (",
         absl::StrJoin(
             segment.formals, ", ",
             [](std::string* out, const Formal& formal) { *out += NameText(ToString(formal)); }),
         ")");
    for (size_t i = 0; i < segment.slots.size(); ++i) {
      const Slot& slot = segment.slots[i];
      Line("slot %", i, " ", QuotedText(slot.name), ": ", TypeText(slot.type), " ",
           ToString(slot.sharding, plan_.mesh), " in ", FormalText(segment, slot.formal), " at ",
           slot.offset, " bytes ", slot.bytes);
    }
    for (const Instr& instr : segment.instrs) PrintInstr(instr);
    Close();
  }

  void PrintInstr(const Instr& instr) {
    std::vector<std::string> words;
    if (instr.kind != InstrKind::kCompute) words.emplace_back(WordOf(instr.kind));
    if (instr.collective != -1) words.push_back(absl::StrCat(instr.collective));
    if (!instr.outputs.empty()) words.push_back(SlotsText(instr.outputs));
    if (instr.op != nullptr) {
      if (!instr.outputs.empty()) words.emplace_back("=");
      words.push_back(absl::StrCat(instr.op->name, "(", SlotsText(instr.inputs), ")"));
    } else if (!instr.inputs.empty()) {
      words.push_back(absl::StrCat("(", SlotsText(instr.inputs), ")"));
    }
    std::string text = absl::StrJoin(words, " ");
    if (!instr.attrs.empty()) absl::StrAppend(&text, " ", AttrsText(instr.attrs));
    absl::StrAppend(&text, " ", NameOf(instr.phase));
    text += PlaceText(plan_.model, instr.loc);
    if (!instr.origin.empty()) absl::StrAppend(&text, " because ", QuotedText(instr.origin));
    Line(text);
  }

  void PrintBlock(const ParamBlock& block) {
    Open("block ", SymbolText(block.name), " params ", block.param_bytes, " grads ",
         block.grad_bytes, " states ", block.state_bytes);
    for (const ParamEntry& entry : block.entries) {
      Line("param ", QuotedText(entry.name), ": ", TypeText(entry.type), " ",
           ToString(entry.sharding, plan_.mesh), " state ",
           ToString(entry.state_sharding, plan_.mesh), " ", AttrsText(entry.init), " at ",
           entry.param_offset, " gradient ", NameText(ToString(entry.gradient_base)), " ",
           entry.gradient_offset, StatesText(entry));
    }
    for (const NamedTensor& t : block.kept) Line("kept ", TensorText(t, plan_.mesh));
    Close();
  }

  static std::string StatesText(const ParamEntry& entry) {
    std::string text;
    for (const ParamState& state : entry.states) {
      absl::StrAppend(&text, " keeps ", QuotedText(state.name), " ", state.offset);
    }
    return text;
  }

  void PrintCalls(absl::string_view word, const std::vector<Call>& calls) {
    for (const Call& call : calls) {
      std::vector<std::string> bindings;
      for (size_t f = 0; f < call.bindings.size(); ++f) {
        bindings.push_back(BindingText(call, f));
      }
      Line(word, " ", EntryName(plan_.segments, call.segment), LayerText(call.layer),
           call.running == kAnyRunning ? "" : absl::StrCat(" running ", call.running), " (",
           absl::StrJoin(bindings, ", "), ")");
    }
  }

  // `params=4096`, `frame=frame+64`, `input=input`
  std::string BindingText(const Call& call, size_t formal) const {
    const Binding& binding = call.bindings[formal];
    std::string text;
    if (call.segment >= 0 && call.segment < static_cast<int>(plan_.segments.size())) {
      const Segment& segment = plan_.segments[static_cast<size_t>(call.segment)];
      text = absl::StrCat(FormalText(segment, static_cast<int>(formal)), "=");
    }
    if (binding.base == BaseKind::kAbsolute) return absl::StrCat(text, binding.offset);
    absl::StrAppend(&text, WordOf(binding.base));
    if (binding.offset != 0) absl::StrAppend(&text, "+", binding.offset);
    return text;
  }

  void PrintChunks(absl::string_view word, const std::vector<Chunk>& chunks) {
    for (const Chunk& chunk : chunks) {
      Open(word, ChunkText(chunk));
      PrintCalls("prepare", chunk.prepare);
      PrintCalls("forward", chunk.forward);
      PrintCalls("backward", chunk.backward);
      PrintCalls("last_backward", chunk.last_backward);
      Close();
    }
  }

  template <typename Entry>
  void PrintEntries(absl::string_view word, const std::vector<Entry>& entries,
                    const EntryPrinter& printer) {
    Open(word);
    for (const Repeat<Entry>& repeat : Fold(entries)) {
      const bool repeats = repeat.times > 1;
      if (repeats) Open("repeat ", repeat.times, " shift ", repeat.shift);
      std::vector<Cycles> cycles(repeat.body.size(), Cycles{});
      for (const AddressCycle& cycle : repeat.cycles) {
        cycles[static_cast<size_t>(cycle.entry)][static_cast<size_t>(cycle.which)] = &cycle;
      }
      for (size_t i = 0; i < repeat.body.size(); ++i) {
        Line(printer.Text(repeat.body[i], cycles[i]));
      }
      if (repeats) Close();
    }
    Close();
  }

  void PrintProgram(absl::string_view word, const Program& program,
                    const std::vector<Chunk>& chunks) {
    const EntryPrinter printer(chunks);
    Open(word);
    PrintEntries("compute", program.compute, printer);
    PrintEntries("transfers", program.transfers, printer);
    Close();
  }

  void PrintNamed(absl::string_view word, const std::vector<NamedAddress>& list) {
    for (const NamedAddress& entry : list) {
      Line(word, " ", QuotedText(entry.name), " ", entry.address);
    }
  }

  void PrintClass(const PlanClass& rank_class) {
    Open("class ", rank_class.coordinate);
    for (const HeldBlock& held : rank_class.blocks) {
      Line("hold ", held.owner ? "" : "copy ", EntryName(plan_.blocks, held.block),
           LayerText(held.layer), " params ", held.param_base, " grads ", held.grad_base,
           " states ", held.state_base);
    }
    PrintChunks("chunk", rank_class.chunks);
    PrintChunks("eval_chunk", rank_class.eval_chunks);
    PrintCalls("update", rank_class.update);
    PrintCalls("eval_update", rank_class.eval_update);
    PrintProgram("train", rank_class.train, rank_class.chunks);
    PrintProgram("eval", rank_class.eval, rank_class.eval_chunks);
    for (const Range& range : rank_class.zeroed) Line("zero ", range.begin, " ", range.end);
    for (const Range& range : rank_class.eval_zeroed) {
      Line("eval_zero ", range.begin, " ", range.end);
    }
    Line("globals ", rank_class.global_bytes, " eval ", rank_class.eval_global_bytes);
    PrintNamed("scalar", rank_class.scalars);
    PrintNamed("carried", rank_class.carried);
    PrintNamed("report", rank_class.reports);
    PrintNamed("eval_report", rank_class.eval_reports);
    for (const NamedTensor& t : rank_class.results) Line("result ", TensorText(t, plan_.mesh));
    std::string memory = "memory";
    for (const MemoryWord& word : kMemoryWords) {
      absl::StrAppend(&memory, " ", word.name, " ", rank_class.memory.*word.field);
    }
    Line(memory);
    Close();
  }

  const Plan& plan_;
};

}  // namespace

std::string PrintSegmentsAndBlocks(const Plan& plan) {
  PlanPrinter printer(plan);
  printer.PrintParts();
  return printer.Take();
}

std::string PrintPlan(const Plan& plan) { return PlanPrinter(plan).Print(); }

}  // namespace mgc
