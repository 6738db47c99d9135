#include "graph/plan/formal.h"

namespace mgc {
namespace {

constexpr absl::string_view kWords[kNumRegions] = {
    "transient",  "params",      "grads",  "states", "frame",   "input",    "output",
    "grad_input", "grad_output", "copies", "norm",   "globals", "gathered", "owed"};
constexpr char kOf = ':';  // between region and block

}  // namespace

bool IsSound(const Formal& formal) {
  if (formal.block.empty() || IsOfBlock(formal.region)) return true;
  if (formal.region == Region::kCopies) return true;
  return formal.block == kSharedFrame &&
         (formal.region == Region::kFrame || IsBoundary(formal.region));
}

std::string ToString(const Formal& formal) {
  std::string text(kWords[static_cast<size_t>(formal.region)]);
  if (!formal.block.empty()) {
    text += kOf;
    text += formal.block;
  }
  return text;
}

absl::optional<Formal> ParseFormal(absl::string_view text) {
  const size_t colon = text.find(kOf);
  const absl::string_view word = text.substr(0, colon);
  for (int i = 0; i < kNumRegions; ++i) {
    if (kWords[i] != word) continue;
    Formal formal{static_cast<Region>(i), ""};
    if (colon == absl::string_view::npos) return formal;
    formal.block = std::string(text.substr(colon + 1));
    if (!formal.block.empty() && IsSound(formal)) return formal;
    break;
  }
  return absl::nullopt;
}

}  // namespace mgc
