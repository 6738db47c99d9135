// Parts of the parser of plans (graph/plan/text/plan_text.h) that lie in files of their own.
// Readers report at the cursor and return false, as those of pieces.h.

#ifndef MGC_GRAPH_PLAN_TEXT_PLAN_PARSER_INTERNAL_H_
#define MGC_GRAPH_PLAN_TEXT_PLAN_PARSER_INTERNAL_H_

#include <cstdint>
#include <limits>

#include "absl/strings/string_view.h"
#include "graph/plan/plan.h"
#include "graph/text/pieces.h"
#include "graph/text/token_reader.h"

namespace mgc {

// `plan` holds the segments and blocks, `mesh` is its mesh as the text names it; `room` is that of
// Unfold (graph/plan/plan_fold.h).
bool ReadPlanClass(TokenReader* reader, const Plan& plan, const NamedMesh& mesh, int64_t* room,
                   PlanClass* out);

// `"logits": f32[2,8] @m[dp,-] at 64`, of the plan's mesh as the text names it.
bool ReadTensor(TokenReader* reader, const NamedMesh& mesh, NamedTensor* out);

// `word` and a number behind it. Sizes are checked by CheckPlan.
inline bool ReadNumber(TokenReader* reader, absl::string_view word, int64_t* out) {
  return reader->Expect(word) && reader->ExpectInt("a number", std::numeric_limits<int64_t>::min(),
                                                   std::numeric_limits<int64_t>::max(), out);
}
inline bool ReadNumber(TokenReader* reader, absl::string_view word, int* out) {
  int64_t number = 0;
  if (!reader->Expect(word) || !reader->ExpectInt("a number", std::numeric_limits<int>::min(),
                                                  std::numeric_limits<int>::max(), &number)) {
    return false;
  }
  *out = static_cast<int>(number);
  return true;
}
// A number without a word.
template <typename Int>
bool ReadBare(TokenReader* reader, Int* out) {
  int64_t number = 0;
  if (!reader->ExpectInt("a number", std::numeric_limits<Int>::min(),
                         std::numeric_limits<Int>::max(), &number)) {
    return false;
  }
  *out = static_cast<Int>(number);
  return true;
}

// The enumerator, of `count`, whose WordOf is the word at the cursor; steps over it.
template <typename Enum>
bool AcceptWord(TokenReader* reader, int count, Enum* out) {
  for (int i = 0; i < count; ++i) {
    if (reader->Accept(WordOf(static_cast<Enum>(i)))) {
      *out = static_cast<Enum>(i);
      return true;
    }
  }
  return false;
}

}  // namespace mgc

#endif  // MGC_GRAPH_PLAN_TEXT_PLAN_PARSER_INTERNAL_H_
