#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/suggest.h"
#include "graph/plan/plan_fold.h"
#include "graph/plan/text/plan_parser_internal.h"
#include "graph/plan/text/plan_words.h"
#include "graph/text/lexer.h"

namespace mgc {
namespace {

// `@name` or a number of an entry of `list`; `what` it is.
template <typename Entry>
bool ReadEntryName(TokenReader* reader, absl::string_view what, const std::vector<Entry>& list,
                   int* out) {
  if (reader->Peek().kind == TokenKind::kInt) return ReadBare(reader, out);
  const TextPlace place = reader->place();
  std::string name;
  if (!reader->ExpectSymbol(absl::StrCat("the ", what, ", `@name`"), &name)) return false;
  *out = FindNamed(list, name);
  if (*out >= 0) return true;
  std::vector<absl::string_view> names;
  names.reserve(list.size());
  for (const Entry& entry : list) names.push_back(entry.name);
  reader->diagnostics().Add(
      place, "text_c4",
      absl::StrCat("no ", what, " is named ", SymbolText(name), DidYouMean(name, names)));
  return false;
}

bool ReadLayer(TokenReader* reader, int* out) {
  *out = kNoLayer;
  if (!reader->Accept("layer")) return true;
  if (!reader->Accept("embedding")) return ReadBare(reader, out);
  *out = kEmbeddingLayer;
  return true;
}

// The action or transfer at the cursor, its stage turned into one of `chunks`.
template <typename Ref>
bool ReadRef(TokenReader* reader, const std::vector<Chunk>& chunks, Ref* out) {
  if (reader->Peek().kind != TokenKind::kName || !ParseRef(reader->Peek().text, out)) {
    return reader->FailMissing("an action or transfer, such as `0F3` or `0SEND_F3`");
  }
  for (size_t k = 0; k < chunks.size(); ++k) {
    if (chunks[k].stage != out->chunk) continue;
    out->chunk = static_cast<int>(k);
    reader->Next();
    return true;
  }
  return reader->Fail(absl::StrCat("this class has no stage ", out->chunk), "text_c4");
}

// Refs up to another word.
template <typename Ref>
bool ReadRefs(TokenReader* reader, const std::vector<Chunk>& chunks, std::vector<Ref>* out) {
  Ref ref;
  do {
    if (!ReadRef(reader, chunks, &ref)) return false;
    out->push_back(ref);
  } while (!reader->Peek().starts_line && reader->Peek().kind == TokenKind::kName &&
           ParseRef(reader->Peek().text, &ref));
  return true;
}

// An address, or in a repeat a cycle of them in parentheses, which goes to `cycles`.
bool ReadAddress(TokenReader* reader, int which, int64_t* out, std::vector<AddressCycle>* cycles) {
  if (cycles == nullptr || !reader->Accept("(")) return ReadBare(reader, out);
  AddressCycle cycle;
  cycle.which = which;
  do {
    if (!ReadBare(reader, &cycle.addresses.emplace_back())) return false;
  } while (!reader->Accept(")"));
  *out = cycle.addresses[0];
  cycles->push_back(std::move(cycle));
  return true;
}

bool ReadEntry(TokenReader* reader, const std::vector<Chunk>& chunks, Action* out,
               std::vector<AddressCycle>* cycles = nullptr) {
  if (!ReadRef(reader, chunks, &out->ref)) return false;
  const auto addresses = AddressesOf(out);
  for (int i = 0; i < kMaxAddresses; ++i) {
    if (reader->Accept(kAddressWords[i]) && !ReadAddress(reader, i, addresses[i], cycles)) {
      return false;
    }
  }
  return !reader->Accept("wait") || ReadRefs(reader, chunks, &out->waits);
}

bool ReadEntry(TokenReader* reader, const std::vector<Chunk>& chunks, Transfer* out,
               std::vector<AddressCycle>* cycles = nullptr) {
  return ReadRef(reader, chunks, &out->ref) && reader->Expect("at") &&
         ReadAddress(reader, 0, &out->address, cycles) &&
         ReadNumber(reader, "bytes", &out->bytes) && ReadNumber(reader, "peer", &out->peer) &&
         ReadNumber(reader, "behind", &out->issued) && reader->Expect("of") &&
         ReadRef(reader, chunks, &out->anchor) &&
         (!reader->Accept("after") || ReadRefs(reader, chunks, &out->after)) &&
         (!reader->Accept("after_transfers") || ReadRefs(reader, chunks, &out->after_transfers));
}

template <typename Entry>
bool ReadRepeat(TokenReader* reader, const std::vector<Chunk>& chunks, int64_t* room,
                std::vector<Entry>* out) {
  const TextPlace place = reader->place();
  Repeat<Entry> repeat;
  if (!ReadNumber(reader, "repeat", &repeat.times) || !ReadNumber(reader, "shift", &repeat.shift) ||
      !reader->Expect("{")) {
    return false;
  }
  while (!reader->Accept("}")) {
    std::vector<AddressCycle> cycles;
    repeat.body.emplace_back();
    if (!ReadEntry(reader, chunks, &repeat.body.back(), &cycles)) return false;
    for (AddressCycle& cycle : cycles) {
      cycle.entry = static_cast<int>(repeat.body.size()) - 1;
      repeat.cycles.push_back(std::move(cycle));
    }
  }
  if (Unfold(repeat, room, out)) return true;
  reader->diagnostics().Add(
      place, "text_c2",
      absl::StrCat("the lists of a plan have at most ", kMaxPlanEntries, " entries and refs"));
  return false;
}

template <typename Entry>
bool ReadEntries(TokenReader* reader, absl::string_view word, const std::vector<Chunk>& chunks,
                 int64_t* room, std::vector<Entry>* out) {
  if (!reader->Expect(word) || !reader->Expect("{")) return false;
  while (!reader->Accept("}")) {
    if (reader->At("repeat")) {
      if (!ReadRepeat(reader, chunks, room, out)) return false;
    } else {
      out->emplace_back();
      if (!ReadEntry(reader, chunks, &out->back())) return false;
    }
  }
  return true;
}

bool ReadNamed(TokenReader* reader, std::vector<NamedAddress>* out) {
  out->emplace_back();
  return reader->ExpectString("a name in quotes", &out->back().name) &&
         ReadBare(reader, &out->back().address);
}

bool ReadMemory(TokenReader* reader, MemoryUse* out) {
  for (const MemoryWord& word : kMemoryWords) {
    if (!ReadNumber(reader, word.name, &(out->*word.field))) return false;
  }
  return true;
}

bool ReadRange(TokenReader* reader, Range* out) {
  return ReadBare(reader, &out->begin) && ReadBare(reader, &out->end);
}

// The lines of one class.
class ClassReader {
 public:
  ClassReader(TokenReader* reader, const Plan& plan, const NamedMesh& mesh, int64_t* room,
              PlanClass* out)
      : reader_(reader), plan_(plan), mesh_(mesh), room_(room), out_(out) {}

  bool ReadLine() {
    if (reader_->Accept("hold")) return ReadHold(&out_->blocks.emplace_back());
    if (reader_->Accept("chunk")) return ReadChunk(&out_->chunks.emplace_back());
    if (reader_->Accept("eval_chunk")) return ReadChunk(&out_->eval_chunks.emplace_back());
    if (reader_->Accept("update")) return ReadCall(&out_->update.emplace_back());
    if (reader_->Accept("eval_update")) return ReadCall(&out_->eval_update.emplace_back());
    if (reader_->Accept("train")) return ReadProgram(out_->chunks, &out_->train);
    if (reader_->Accept("eval")) return ReadProgram(out_->eval_chunks, &out_->eval);
    if (reader_->Accept("zero")) return ReadRange(reader_, &out_->zeroed.emplace_back());
    if (reader_->Accept("eval_zero")) return ReadRange(reader_, &out_->eval_zeroed.emplace_back());
    if (reader_->At("globals")) {
      return ReadNumber(reader_, "globals", &out_->global_bytes) &&
             ReadNumber(reader_, "eval", &out_->eval_global_bytes);
    }
    if (reader_->Accept("scalar")) return ReadNamed(reader_, &out_->scalars);
    if (reader_->Accept("carried")) return ReadNamed(reader_, &out_->carried);
    if (reader_->Accept("report")) return ReadNamed(reader_, &out_->reports);
    if (reader_->Accept("eval_report")) return ReadNamed(reader_, &out_->eval_reports);
    if (reader_->Accept("result")) {
      return ReadTensor(reader_, mesh_, &out_->results.emplace_back());
    }
    if (reader_->Accept("memory")) return ReadMemory(reader_, &out_->memory);
    return reader_->FailExpecting("a line of a class (`hold`, `chunk`, `train`, ...) or `}`");
  }

 private:
  bool ReadHold(HeldBlock* out) {
    out->owner = !reader_->Accept("copy");
    return ReadEntryName(reader_, "block", plan_.blocks, &out->block) &&
           ReadLayer(reader_, &out->layer) && ReadNumber(reader_, "params", &out->param_base) &&
           ReadNumber(reader_, "grads", &out->grad_base) &&
           ReadNumber(reader_, "states", &out->state_base);
  }

  // `@layer.forward layer 1 (transient=0, frame=frame+128)`
  bool ReadCall(Call* out) {
    const TextPlace place = reader_->place();
    if (!ReadEntryName(reader_, "segment", plan_.segments, &out->segment)) return false;
    if (out->segment < 0 || out->segment >= static_cast<int>(plan_.segments.size())) {
      reader_->diagnostics().Add(place, "text_c4",
                                 absl::StrCat("there is no segment ", out->segment));
      return false;
    }
    if (!ReadLayer(reader_, &out->layer)) return false;
    if (reader_->At("running") && !ReadNumber(reader_, "running", &out->running)) return false;
    if (!reader_->Expect("(")) return false;
    const std::vector<Formal>& formals = plan_.segments[static_cast<size_t>(out->segment)].formals;
    while (!reader_->At(")")) {
      const size_t number = out->bindings.size();
      if (!ReadBinding(formals, number, &out->bindings.emplace_back())) return false;
      if (!reader_->Accept(",")) break;
    }
    return reader_->Expect(")");
  }

  // Formals are bound in their order, each with its name, or its number where another has its name.
  bool ReadBinding(const std::vector<Formal>& formals, size_t number, Binding* out) {
    const bool exists = number < formals.size();
    if (!exists) return reader_->Fail("the segment has no more formals");
    if (reader_->Peek().kind == TokenKind::kInt) {
      const int64_t low = static_cast<int64_t>(number);
      int64_t written = 0;
      if (!reader_->ExpectInt("the number of the next formal", low, low, &written)) return false;
    } else {
      const std::string name = ToString(formals[number]);
      const Token& token = reader_->Peek();
      const bool named = token.kind == TokenKind::kName || token.kind == TokenKind::kString;
      if (!named || token.text != name) {
        return reader_->FailExpecting(absl::StrCat("the next formal, ", NameText(name)));
      }
      reader_->Next();
    }
    if (!reader_->Expect("=")) return false;
    out->base = BaseKind::kAbsolute;
    if (reader_->Peek().kind == TokenKind::kInt) return ReadBare(reader_, &out->offset);
    if (!AcceptWord(reader_, kNumBaseKinds, &out->base) || out->base == BaseKind::kAbsolute) {
      return reader_->FailMissing("an address, `frame`, `input`, ...");
    }
    return !reader_->Accept("+") || ReadBare(reader_, &out->offset);
  }

  bool ReadChunk(Chunk* out) {
    if (!ReadNumber(reader_, "stage", &out->stage) ||
        !ReadNumber(reader_, "layers", &out->first_layer) || !ReadBare(reader_, &out->num_layers)) {
      return false;
    }
    out->has_embedding = reader_->Accept("embedding");
    out->has_head = reader_->Accept("head");
    if (!ReadNumber(reader_, "frame", &out->frame_bytes) || !reader_->Expect("{")) return false;
    while (!reader_->Accept("}")) {
      std::vector<Call>* calls = reader_->Accept("prepare")         ? &out->prepare
                                 : reader_->Accept("forward")       ? &out->forward
                                 : reader_->Accept("backward")      ? &out->backward
                                 : reader_->Accept("last_backward") ? &out->last_backward
                                                                    : nullptr;
      if (calls == nullptr) {
        return reader_->FailExpecting("`prepare`, `forward`, `backward`, `last_backward` or `}`");
      }
      if (!ReadCall(&calls->emplace_back())) return false;
    }
    return true;
  }

  bool ReadProgram(const std::vector<Chunk>& chunks, Program* out) {
    return reader_->Expect("{") && ReadEntries(reader_, "compute", chunks, room_, &out->compute) &&
           ReadEntries(reader_, "transfers", chunks, room_, &out->transfers) &&
           reader_->Expect("}");
  }

  TokenReader* reader_;
  const Plan& plan_;
  const NamedMesh& mesh_;
  int64_t* room_;
  PlanClass* out_;
};

}  // namespace

bool ReadTensor(TokenReader* reader, const NamedMesh& mesh, NamedTensor* out) {
  return reader->ExpectString("the tensor's name", &out->name) && reader->Expect(":") &&
         ReadType(reader, &out->type) && ReadSharding(reader, mesh, out->type, &out->sharding) &&
         ReadNumber(reader, "at", &out->address);
}

bool ReadPlanClass(TokenReader* reader, const Plan& plan, const NamedMesh& mesh, int64_t* room,
                   PlanClass* out) {
  if (!ReadNumber(reader, "class", &out->coordinate) || !reader->Expect("{")) return false;
  ClassReader lines(reader, plan, mesh, room, out);
  while (!reader->Accept("}")) {
    if (!lines.ReadLine()) return false;
  }
  return true;
}

}  // namespace mgc
