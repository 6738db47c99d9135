// Words of the text form of plans that its printer and its parser share.

#ifndef MGC_GRAPH_PLAN_TEXT_PLAN_WORDS_H_
#define MGC_GRAPH_PLAN_TEXT_PLAN_WORDS_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "graph/plan/plan.h"

namespace mgc {

// `compute`, `load`, `start`, `wait`; all InstrKinds.
inline constexpr int kNumInstrKinds = 4;
absl::string_view WordOf(InstrKind kind);
// `absolute`, `frame`, ...; all BaseKinds.
inline constexpr int kNumBaseKinds = 6;
absl::string_view WordOf(BaseKind kind);

// ` layer 3`, ` layer embedding`, or nothing.
std::string LayerText(int layer);

// ` stage 1 layers 2 2 head frame 8192`: a chunk but for its calls.
template <typename CallType>
std::string ChunkText(const ChunkOf<CallType>& chunk) {
  return absl::StrCat(" stage ", chunk.stage, " layers ", chunk.first_layer, " ", chunk.num_layers,
                      chunk.has_embedding ? " embedding" : "", chunk.has_head ? " head" : "",
                      " frame ", chunk.frame_bytes);
}

// ` word ref ref`, or nothing where there is none; `chunks` are those the references count in.
template <typename Ref, typename CallType>
std::string RefsText(absl::string_view word, const std::vector<Ref>& refs,
                     const std::vector<ChunkOf<CallType>>& chunks) {
  std::string text;
  for (const Ref& ref : refs) {
    if (text.empty()) text = absl::StrCat(" ", word);
    absl::StrAppend(&text, " ", NameOf(ref, chunks));
  }
  return text;
}

// Reads a name that NameOf (graph/plan/plan.h) writes, but puts the stage where the chunk's number
// belongs; false for anything else.
bool ParseRef(absl::string_view text, ActionRef* out);
bool ParseRef(absl::string_view text, TransferRef* out);

// The first entry of a list with that name, or -1. An entry goes by its name if this finds it, else
// by its number.
template <typename Entry>
int FindNamed(const std::vector<Entry>& list, absl::string_view name) {
  for (size_t i = 0; i < list.size(); ++i) {
    if (list[i].name == name) return static_cast<int>(i);
  }
  return -1;
}
// The first that is equal, or -1; formals go by name or number like entries.
inline int FindFormal(const std::vector<Formal>& list, const Formal& formal) {
  const auto it = std::find(list.begin(), list.end(), formal);
  return it == list.end() ? -1 : static_cast<int>(it - list.begin());
}

// Of an action's addresses (graph/plan/plan_fold.h).
inline constexpr absl::string_view kAddressWords[] = {"frame", "input", "output", "grad_input",
                                                      "grad_output"};

struct MemoryWord {
  absl::string_view name;
  int64_t MemoryUse::*field;
};
inline constexpr MemoryWord kMemoryWords[] = {
    {"params", &MemoryUse::params},       {"grads", &MemoryUse::grads},
    {"states", &MemoryUse::states},       {"copies", &MemoryUse::copies},
    {"frames", &MemoryUse::frames},       {"boundaries", &MemoryUse::boundaries},
    {"transient", &MemoryUse::transient}, {"peak", &MemoryUse::peak},
    {"workspace", &MemoryUse::workspace}};

}  // namespace mgc

#endif  // MGC_GRAPH_PLAN_TEXT_PLAN_WORDS_H_
