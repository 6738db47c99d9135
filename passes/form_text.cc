#include "passes/form_text.h"

#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/plan/text/plan_text.h"
#include "graph/plan/text/plan_words.h"
#include "graph/text/block_printer.h"
#include "graph/text/lexer.h"
#include "graph/text/printer.h"

namespace mgc {
namespace {

absl::string_view WordOf(StagedBase base) {
  constexpr absl::string_view kWords[] = {"",       "frame",      "input",
                                          "output", "grad_input", "grad_output"};
  return kWords[static_cast<size_t>(base)];
}

class FormPrinter : public BlockPrinter {
 public:
  explicit FormPrinter(const StagedPlan& staged) : staged_(staged) {}

  void PrintStaged() {
    Append(absl::StrCat("staged ", PrintMesh(staged_.mesh)));
    Plan parts;
    parts.mesh = staged_.mesh;
    parts.segments = staged_.segments;
    parts.blocks = staged_.blocks;
    Append(PrintSegmentsAndBlocks(parts));
    for (const StagedClass& c : staged_.classes) PrintClass(c);
  }

  void PrintSchedule(const PipelineSchedule& schedule) {
    for (const std::vector<ScheduleAction>& actions : schedule.lists) {
      Line("schedule ", absl::StrJoin(actions, " ", [](std::string* out, const auto& action) {
             absl::StrAppend(out, ToString(action));
           }));
    }
  }

  void PrintOrder(const std::vector<OrderedClass>& classes) {
    for (size_t c = 0; c < classes.size(); ++c) {
      Open("order ", c, " slots ", classes[c].pool);
      PrintProgram("train", classes[c].train, staged_.classes[c].train.chunks);
      PrintProgram("eval", classes[c].eval, staged_.classes[c].eval.chunks);
      Close();
    }
  }

 private:
  void PrintClass(const StagedClass& c) {
    Open("class ", c.coordinate);
    for (const StagedBlock& held : c.blocks) {
      Line("hold ", held.owner ? "" : "copy ",
           SymbolText(staged_.blocks[static_cast<size_t>(held.block)].name), LayerText(held.layer));
    }
    PrintStep("train", c.train);
    PrintStep("eval", c.eval);
    Close();
  }

  void PrintStep(absl::string_view word, const StagedStep& step) {
    Open(word);
    for (const StagedChunk& chunk : step.chunks) {
      Open("chunk", ChunkText(chunk));
      PrintCalls("prepare", chunk.prepare);
      PrintCalls("forward", chunk.forward);
      PrintCalls("backward", chunk.backward);
      PrintCalls("last_backward", chunk.last_backward);
      Close();
    }
    PrintCalls("update", step.update);
    if (step.copy_bytes > 0) Line("copies ", step.copy_bytes);
    if (step.owed_bytes > 0) Line("owed ", step.owed_bytes);
    Line("globals ", step.global_bytes, " zeroed ", step.zeroed_global_bytes);
    for (const NamedOffset& scalar : step.scalars) {
      Line("scalar ", QuotedText(scalar.name), " ", scalar.offset);
    }
    for (const NamedOffset& carried : step.carried) {
      Line("carried ", QuotedText(carried.name), " ", carried.offset);
    }
    for (const NamedOffset& report : step.reports) {
      Line("report ", QuotedText(report.name), " ", report.offset);
    }
    for (const StagedResult& result : step.results) {
      Line("result ", QuotedText(result.name), ": ", TypeText(result.type), " ",
           ToString(result.sharding, staged_.mesh), " ", result.offset);
    }
    Close();
  }

  void PrintCalls(absl::string_view word, const std::vector<StagedCall>& calls) {
    for (const StagedCall& call : calls) {
      const Segment& segment = staged_.segments[static_cast<size_t>(call.segment)];
      std::vector<std::string> bindings;
      for (size_t f = 0; f < call.bindings.size(); ++f) {
        bindings.push_back(BindingText(segment.formals[f], call.bindings[f]));
      }
      Line(word, " ", SymbolText(segment.name), LayerText(call.layer),
           call.running == kAnyRunning ? "" : absl::StrCat(" running ", call.running), " (",
           absl::StrJoin(bindings, ", "), ")");
    }
  }

  // `params+64`, `frame`, `input=frame+128`
  static std::string BindingText(const Formal& formal, const StagedBinding& binding) {
    std::string text = ToString(formal);
    const absl::string_view base = WordOf(binding.base);
    if (!base.empty() && base != text) absl::StrAppend(&text, "=", base);
    if (binding.offset != 0) absl::StrAppend(&text, "+", binding.offset);
    return text;
  }

  void PrintProgram(absl::string_view word, const OrderedProgram& program,
                    const std::vector<StagedChunk>& chunks) {
    Open(word);
    for (const OrderedAction& action : program.compute) {
      std::string slots;
      const std::pair<absl::string_view, int64_t> places[] = {{"input", action.input},
                                                              {"output", action.output},
                                                              {"grad_input", action.grad_input},
                                                              {"grad_output", action.grad_output}};
      for (const auto& [place, slot] : places) {
        if (slot >= 0) absl::StrAppend(&slots, " ", place, " ", slot);
      }
      Line(NameOf(action.ref, chunks), slots, RefsText("wait", action.waits, chunks));
    }
    for (const OrderedTransfer& transfer : program.transfers) {
      Line(NameOf(transfer.ref, chunks), " slot ", transfer.slot, " bytes ", transfer.bytes,
           " peer ", transfer.peer, " behind ", transfer.issued, " of ",
           NameOf(transfer.anchor, chunks), RefsText("after", transfer.after, chunks),
           RefsText("after_transfers", transfer.after_transfers, chunks));
    }
    Close();
  }

  const StagedPlan& staged_;
};

struct PrintVisitor {
  std::string operator()(const StepGraphs& graphs) const { return PrintGraph(graphs.train); }
  std::string operator()(const StagedPlan& staged) const {
    FormPrinter printer(staged);
    printer.PrintStaged();
    return printer.Take();
  }
  std::string operator()(const ScheduledPlan& scheduled) const {
    FormPrinter printer(scheduled.staged);
    printer.PrintStaged();
    printer.PrintSchedule(scheduled.schedule);
    return printer.Take();
  }
  std::string operator()(const OrderedPlan& ordered) const {
    FormPrinter printer(ordered.staged);
    printer.PrintStaged();
    printer.PrintOrder(ordered.classes);
    return printer.Take();
  }
  std::string operator()(const Plan& plan) const { return PrintPlan(plan); }
};

}  // namespace

std::string PrintForm(const PassForm& form) { return std::visit(PrintVisitor(), form); }

}  // namespace mgc
