// The plan's header, segments and parameters; classes are in plan_parser_class.cc.

#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "graph/base/file.h"
#include "graph/base/status.h"
#include "graph/base/suggest.h"
#include "graph/ir/assemble.h"
#include "graph/ir/op.h"
#include "graph/plan/plan_check.h"
#include "graph/plan/plan_fold.h"
#include "graph/plan/text/plan_parser_internal.h"
#include "graph/plan/text/plan_text.h"
#include "graph/plan/text/plan_words.h"
#include "graph/text/lexer.h"
#include "graph/text/machine_text.h"
#include "graph/text/parser.h"
#include "graph/text/pieces.h"

namespace mgc {
namespace {

constexpr int64_t kMaxSourceLine = std::numeric_limits<int32_t>::max();

// `(0 0) (1 0)`: class and chunk of each stage.
bool ReadStages(TokenReader* reader, std::vector<StagePlace>* out) {
  while (reader->Accept("(")) {
    StagePlace& place = out->emplace_back();
    if (!ReadBare(reader, &place.rank_class) || !ReadBare(reader, &place.chunk) ||
        !reader->Expect(")")) {
      return false;
    }
  }
  return true;
}

bool ReadHeaderLine(TokenReader* reader, Plan* out) {
  std::string first;
  std::string second;
  if (reader->Accept("flag")) {
    if (!reader->ExpectString("a flag's name", &first) ||
        !reader->ExpectString("a flag's value", &second)) {
      return false;
    }
    out->options.emplace_back(first, second);
  } else if (reader->Accept("batch")) {
    return ReadNumber(reader, "micro", &out->micro_batch_size) &&
           ReadNumber(reader, "global", &out->global_batch_size) &&
           ReadNumber(reader, "micro_batches", &out->num_micro_batches) &&
           ReadNumber(reader, "seq", &out->seq_length) && ReadNumber(reader, "vocab", &out->vocab);
  } else if (reader->Accept("gradient_sums")) {
    return ReadElementType(reader, "an element type", &out->gradient_sums);
  } else if (reader->Accept("stages")) {
    return ReadStages(reader, &out->stages);
  } else if (reader->At("predicted")) {
    return ReadNumber(reader, "predicted", &out->predicted_step_ns);
  } else if (reader->Accept("note")) {
    if (!reader->ExpectString("a note", &first)) return false;
    out->notes.push_back(first);
  } else {
    return reader->FailExpecting(
        "`flag`, `batch`, `gradient_sums`, `stages`, `predicted`, `note` or `}`");
  }
  return true;
}

bool ReadPlanHeader(TokenReader* reader, Plan* out) {
  if (!reader->Accept("plan")) return reader->FailExpecting("`plan`");
  int64_t version = 0;
  if (!reader->ExpectSymbol("the name of the plan, `@name`", &out->name)) return false;
  const TextPlace place = reader->place();
  if (!ReadNumber(reader, "version", &version)) return false;
  if (version != kPlanVersion) {
    reader->diagnostics().Add(
        place, "text_c10",
        absl::StrCat("a plan of version ", version, "; this program reads version ", kPlanVersion));
    return false;
  }
  if (!reader->Expect("{")) return false;
  while (!reader->Accept("}")) {
    if (!ReadHeaderLine(reader, out)) return false;
  }
  return true;
}

bool ReadSlotNumber(TokenReader* reader, int* out) {
  if (reader->Peek().kind != TokenKind::kValue || !absl::SimpleAtoi(reader->Peek().text, out)) {
    return reader->FailMissing("a slot, `%0`");
  }
  reader->Next();
  return true;
}

bool ReadSlots(TokenReader* reader, std::vector<int>* out) {
  do {
    out->emplace_back();
    if (!ReadSlotNumber(reader, &out->back())) return false;
  } while (reader->Accept(","));
  return true;
}

bool ReadOperands(TokenReader* reader, std::vector<int>* out) {
  return reader->Expect("(") && (reader->At(")") || ReadSlots(reader, out)) && reader->Expect(")");
}

bool ReadFormal(TokenReader* reader, Formal* out) {
  const TextPlace place = reader->place();
  std::string name;
  if (!reader->ExpectName("a formal", &name)) return false;
  absl::optional<Formal> formal = ParseFormal(name);
  if (formal.has_value()) {
    *out = *std::move(formal);
    return true;
  }
  std::vector<std::string> words;
  words.reserve(kNumRegions);
  for (int i = 0; i < kNumRegions; ++i) words.push_back(ToString({static_cast<Region>(i), ""}));
  const std::vector<absl::string_view> names(words.begin(), words.end());
  reader->diagnostics().Add(
      place, "text_c4",
      absl::StrCat("there is no formal ", NameText(name), DidYouMean(name, names),
                   "; parameters, gradients and states may name a block, `grads:head`"));
  return false;
}

// Where the text says what CheckPlan calls by these names.
using PlanPlaces = absl::flat_hash_map<std::string, TextPlace>;

class PlanReader {
 public:
  PlanReader(TokenReader* reader, Plan* plan, PlanPlaces* places)
      : reader_(*reader), plan_(*plan), places_(*places) {}

  bool Read() {
    if (!ReadPlanHeader(&reader_, &plan_) || !ReadMesh(&reader_, &mesh_)) return false;
    plan_.mesh = mesh_.mesh;
    if (!ReadMachine(&reader_, &plan_.machine)) return false;
    // The model brings its own mesh, if it has one.
    NamedMesh model_mesh;
    if (reader_.At("mesh") && !ReadMesh(&reader_, &model_mesh)) return false;
    if (!ReadGraph(&reader_, model_mesh, &plan_.model)) return false;
    for (size_t i = 0; i < plan_.model.files().size(); ++i) {
      files_.emplace(plan_.model.files()[i], static_cast<int32_t>(i));
    }
    while (reader_.At("segment")) {
      const TextPlace place = reader_.place();
      plan_.segments.emplace_back();
      if (!ReadSegment(&plan_.segments.back())) return false;
      places_.emplace(absl::StrCat("segment ", EscapeBytes(plan_.segments.back().name)), place);
    }
    while (reader_.At("block")) {
      const TextPlace place = reader_.place();
      plan_.blocks.emplace_back();
      if (!ReadBlock(&plan_.blocks.back())) return false;
      places_.emplace(absl::StrCat("block ", EscapeBytes(plan_.blocks.back().name)), place);
    }
    while (reader_.At("class")) {
      places_.emplace(absl::StrCat("class ", plan_.classes.size()), reader_.place());
      plan_.classes.emplace_back();
      if (!ReadPlanClass(&reader_, plan_, mesh_, &room_, &plan_.classes.back())) return false;
    }
    return reader_.AtEnd() || reader_.FailExpecting("`segment`, `block`, `class` or the end");
  }

 private:
  bool ReadSegment(Segment* out) {
    if (!reader_.Expect("segment") ||
        !reader_.ExpectSymbol("the name of the segment, `@name`", &out->name) ||
        !ReadNumber(&reader_, "transient", &out->transient_bytes) ||
        !ReadNumber(&reader_, "workspace", &out->workspace_bytes) ||
        !ReadNumber(&reader_, "collectives", &out->num_collectives) || !reader_.Expect("(")) {
      return false;
    }
    while (!reader_.At(")")) {
      if (!ReadFormal(&reader_, &out->formals.emplace_back())) return false;
      if (!reader_.Accept(",")) break;
    }
    if (!reader_.Expect(")") || !reader_.Expect("{")) return false;
    while (!reader_.Accept("}")) {
      if (reader_.At("slot")) {
        out->slots.emplace_back();
        if (!ReadSlot(*out, &out->slots.back())) return false;
      } else {
        out->instrs.emplace_back();
        if (!ReadInstr(&out->instrs.back())) return false;
      }
    }
    return true;
  }

  // The last slot of `segment`.
  bool ReadSlot(const Segment& segment, Slot* out) {
    const int number = static_cast<int>(segment.slots.size()) - 1;
    if (!reader_.Expect("slot")) return false;
    const TextPlace place = reader_.place();
    int written = 0;
    if (!ReadSlotNumber(&reader_, &written)) return false;
    if (written != number) {
      reader_.diagnostics().Add(place, "text_c2", absl::StrCat("expected slot %", number));
      return false;
    }
    return reader_.ExpectString("the slot's name", &out->name) && reader_.Expect(":") &&
           ReadType(&reader_, &out->type) &&
           ReadSharding(&reader_, mesh_, out->type, &out->sharding) && reader_.Expect("in") &&
           ReadFormalOf(segment, &out->formal) && ReadNumber(&reader_, "at", &out->offset) &&
           ReadNumber(&reader_, "bytes", &out->bytes);
  }

  // One of the segment's.
  bool ReadFormalOf(const Segment& segment, int* out) {
    if (reader_.Peek().kind == TokenKind::kInt) return ReadBare(&reader_, out);
    const TextPlace place = reader_.place();
    Formal formal;
    if (!ReadFormal(&reader_, &formal)) return false;
    *out = FindFormal(segment.formals, formal);
    if (*out >= 0) return true;
    reader_.diagnostics().Add(
        place, "text_c4", absl::StrCat("the segment has no formal ", NameText(ToString(formal))));
    return false;
  }

  // `%1 = op(%0)`; `load %1 (%0)`, `start 0 %1 = op(%0)`, `wait 0`; attributes and place.
  bool ReadInstr(Instr* out) {
    if (!reader_.Peek().starts_line) return reader_.FailExpecting("the end of the line");
    AcceptWord(&reader_, kNumInstrKinds, &out->kind);
    const bool numbered = out->kind == InstrKind::kStart || out->kind == InstrKind::kWait;
    if (numbered && !ReadBare(&reader_, &out->collective)) return false;
    if (reader_.Peek().kind == TokenKind::kValue && !ReadSlots(&reader_, &out->outputs))
      return false;
    const bool has_op = out->kind == InstrKind::kCompute || out->kind == InstrKind::kStart;
    if (has_op && !ReadOp(out)) return false;
    if (!has_op && reader_.At("(") && !ReadOperands(&reader_, &out->inputs)) return false;
    if (reader_.At("{") && !ReadAttrs(&reader_, &out->attrs)) return false;
    if (!ReadPhase(&out->phase)) return false;
    if (reader_.Accept("at") && !ReadLocation(&out->loc)) return false;
    return !reader_.Accept("because") || reader_.ExpectString("its origin", &out->origin);
  }

  bool ReadOp(Instr* out) {
    if (!out->outputs.empty() && !reader_.Expect("=")) return false;
    const TextPlace place = reader_.place();
    std::string name;
    if (!reader_.ExpectName("the name of an op", &name)) return false;
    absl::StatusOr<const OpDef*> op = FindOpOrSuggest(name);
    if (!op.ok()) {
      reader_.diagnostics().Add(place, "", op.status().message());
      return false;
    }
    out->op = *op;
    return ReadOperands(&reader_, &out->inputs);
  }

  bool ReadPhase(Phase* out) {
    for (Phase phase : {Phase::kPrepare, Phase::kForward, Phase::kBackward, Phase::kUpdate}) {
      if (!reader_.Accept(NameOf(phase))) continue;
      *out = phase;
      return true;
    }
    return reader_.FailMissing("`forward`, `backward` or `update`");
  }

  bool ReadLocation(SourceLoc* out) {
    const TextPlace place = reader_.place();
    std::string file;
    int64_t line = 0;
    int64_t column = 0;
    if (!reader_.ExpectString("a file name in quotes", &file) || !reader_.Expect(":") ||
        !reader_.ExpectInt("the line", 0, kMaxSourceLine, &line) || !reader_.Expect(":") ||
        !reader_.ExpectInt("the column", 0, kMaxSourceLine, &column)) {
      return false;
    }
    const auto it = files_.find(file);
    if (it == files_.end()) {
      reader_.diagnostics().Add(place, "text_c4", "the model names no such file");
      return false;
    }
    *out = {it->second, static_cast<int32_t>(line), static_cast<int32_t>(column)};
    return true;
  }

  bool ReadBlock(ParamBlock* out) {
    if (!reader_.Expect("block") ||
        !reader_.ExpectSymbol("the name of the block, `@name`", &out->name) ||
        !ReadNumber(&reader_, "params", &out->param_bytes) ||
        !ReadNumber(&reader_, "grads", &out->grad_bytes) ||
        !ReadNumber(&reader_, "states", &out->state_bytes) || !reader_.Expect("{")) {
      return false;
    }
    while (!reader_.Accept("}")) {
      const bool read = reader_.Accept("kept")
                            ? ReadTensor(&reader_, mesh_, &out->kept.emplace_back())
                            : ReadParam(&out->entries.emplace_back());
      if (!read) return false;
    }
    return true;
  }

  bool ReadParam(ParamEntry* out) {
    return reader_.Expect("param") && reader_.ExpectString("the parameter's name", &out->name) &&
           reader_.Expect(":") && ReadType(&reader_, &out->type) &&
           ReadSharding(&reader_, mesh_, out->type, &out->sharding) && reader_.Expect("state") &&
           ReadSharding(&reader_, mesh_, out->type, &out->state_sharding) &&
           ReadAttrs(&reader_, &out->init) && ReadNumber(&reader_, "at", &out->param_offset) &&
           reader_.Expect("gradient") && ReadFormal(&reader_, &out->gradient_base) &&
           ReadBare(&reader_, &out->gradient_offset) && ReadStates(&out->states);
  }

  bool ReadStates(std::vector<ParamState>* out) {
    while (reader_.Accept("keeps")) {
      out->emplace_back();
      if (!reader_.ExpectString("the state's name", &out->back().name) ||
          !ReadBare(&reader_, &out->back().offset)) {
        return false;
      }
    }
    return true;
  }

  TokenReader& reader_;
  Plan& plan_;
  PlanPlaces& places_;
  NamedMesh mesh_;
  int64_t room_ = kMaxPlanEntries;
  absl::flat_hash_map<std::string, int32_t> files_;
};

}  // namespace

absl::StatusOr<Plan> ParsePlan(absl::string_view text, absl::string_view name) {
  FileDiagnostics diagnostics(name);
  TokenReader reader(text, &diagnostics);
  Plan plan;
  PlanPlaces places;
  if (PlanReader(&reader, &plan, &places).Read() && diagnostics.empty()) {
    const Diagnostics violations = FindPlanViolations(plan);
    for (const Diagnostic& violation : violations) {
      const auto place = places.find(violation.place);
      diagnostics.Add(place == places.end() ? TextPlace() : place->second, violation.label,
                      absl::StrCat(violation.place, ": ", violation.text));
    }
    diagnostics.LeaveOut(violations.left_out());
  }
  if (!diagnostics.empty()) return diagnostics.ToStatus();
  return plan;
}

}  // namespace mgc
