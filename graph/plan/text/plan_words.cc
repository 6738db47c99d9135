#include "graph/plan/text/plan_words.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "graph/plan/plan_refs.h"

namespace mgc {
namespace {

absl::string_view WordOfKind(ActionKind kind) { return LetterOf(kind); }
absl::string_view WordOfKind(TransferKind kind) { return WordOf(kind); }

// Takes the number at the front of `text`.
bool TakeNumber(absl::string_view* text, int64_t* out) {
  size_t digits = 0;
  while (digits < text->size() &&
         absl::ascii_isdigit(static_cast<unsigned char>((*text)[digits]))) {
    ++digits;
  }
  // No other spelling of the same number: `03`.
  if (digits > 1 && (*text)[0] == '0') return false;
  const absl::string_view number = text->substr(0, digits);
  text->remove_prefix(digits);
  return absl::SimpleAtoi(number, out);
}

template <typename Ref>
bool ParseAnyRef(absl::string_view text, Ref* out) {
  int64_t chunk = 0;
  if (!TakeNumber(&text, &chunk) || chunk > (1 << 30)) return false;
  const size_t letters = static_cast<size_t>(
      std::find_if(text.begin(), text.end(),
                   [](char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)); }) -
      text.begin());
  const absl::string_view word = text.substr(0, letters);
  text.remove_prefix(letters);
  for (int i = 0; i < kNumRefKinds; ++i) {
    const auto kind = static_cast<decltype(out->kind)>(i);
    if (WordOfKind(kind) != word) continue;
    out->kind = kind;
    out->chunk = static_cast<int>(chunk);
    return TakeNumber(&text, &out->micro_batch) && text.empty();
  }
  return false;
}

}  // namespace

absl::string_view WordOf(InstrKind kind) {
  constexpr absl::string_view kWords[] = {"compute", "load", "start", "wait"};
  return kWords[static_cast<int>(kind)];
}

absl::string_view WordOf(BaseKind kind) {
  constexpr absl::string_view kWords[] = {"absolute", "frame",      "input",
                                          "output",   "grad_input", "grad_output"};
  return kWords[static_cast<int>(kind)];
}

std::string LayerText(int layer) {
  if (layer == kNoLayer) return "";
  return layer == kEmbeddingLayer ? " layer embedding" : absl::StrCat(" layer ", layer);
}

bool ParseRef(absl::string_view text, ActionRef* out) { return ParseAnyRef(text, out); }
bool ParseRef(absl::string_view text, TransferRef* out) { return ParseAnyRef(text, out); }

}  // namespace mgc
