#include "passes/config/recomputation.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "passes/config/place_layers.h"

namespace mgc {
namespace {

absl::Status NoRecomputation(absl::string_view item) {
  return absl::InvalidArgumentError(
      absl::StrCat("'", item, "' is no kind of recomputation, nor a number of layers of one"));
}

}  // namespace

std::optional<RecomputeKind> ParseRecomputeKind(absl::string_view text) {
  for (RecomputeKind kind :
       {RecomputeKind::kNone, RecomputeKind::kSelective, RecomputeKind::kFull}) {
    if (text == ToString(kind)) return kind;
  }
  return std::nullopt;
}

absl::string_view ToString(RecomputeKind kind) {
  switch (kind) {
    case RecomputeKind::kNone:
      return "none";
    case RecomputeKind::kSelective:
      return "selective";
    case RecomputeKind::kFull:
      return "full";
  }
  return "?";
}

RecomputeKind Recomputation::Of(int64_t layer) const {
  if (by_layer_.empty()) return all_;
  const bool is_inner = layer >= 0 && layer < static_cast<int64_t>(by_layer_.size());
  return is_inner ? by_layer_[static_cast<size_t>(layer)] : RecomputeKind::kNone;
}

bool Recomputation::Has(RecomputeKind kind) const {
  if (by_layer_.empty()) return all_ == kind;
  return std::find(by_layer_.begin(), by_layer_.end(), kind) != by_layer_.end();
}

Recomputation SimplestOf(const std::vector<RecomputeKind>& by_layer) {
  if (by_layer.empty()) return {};
  const bool alike = std::all_of(by_layer.begin(), by_layer.end(),
                                 [&](RecomputeKind kind) { return kind == by_layer.front(); });
  return alike ? Recomputation(by_layer.front()) : Recomputation(by_layer);
}

absl::StatusOr<Recomputation> ParseRecomputation(absl::string_view text) {
  if (const auto all = ParseRecomputeKind(text)) return Recomputation(*all);
  std::vector<RecomputeKind> by_layer;
  for (const absl::string_view item : absl::StrSplit(text, ',')) {
    const std::vector<absl::string_view> parts = absl::StrSplit(item, '*');
    const auto kind = ParseRecomputeKind(parts[0]);
    int64_t layers = 1;
    const bool counts = parts.size() == 2;
    const bool is_number = !counts || (absl::c_all_of(parts[1], absl::ascii_isdigit) &&
                                       absl::SimpleAtoi(parts[1], &layers) && layers > 0);
    if (!kind.has_value() || parts.size() > 2 || !is_number) return NoRecomputation(item);
    if (layers > kMaxPipelineSize - static_cast<int64_t>(by_layer.size())) {
      return absl::InvalidArgumentError(absl::StrCat("more than ", kMaxPipelineSize, " layers"));
    }
    by_layer.insert(by_layer.end(), static_cast<size_t>(layers), *kind);
  }
  return Recomputation(by_layer);
}

std::string ToString(const Recomputation& recomputation) {
  const std::vector<RecomputeKind>& kinds = recomputation.by_layer();
  if (kinds.empty()) return std::string(ToString(recomputation.Of(0)));
  std::vector<std::string> items;
  for (auto first = kinds.begin(); first != kinds.end();) {
    const auto last =
        std::find_if(first, kinds.end(), [first](RecomputeKind k) { return k != *first; });
    const auto layers = last - first;
    items.push_back(absl::StrCat(ToString(*first), layers > 1 ? absl::StrCat("*", layers) : ""));
    first = last;
  }
  return absl::StrJoin(items, ",");
}

}  // namespace mgc
