#include "passes/config/recomputation.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "absl/types/span.h"
#include "graph/base/status.h"
#include "passes/config/place_layers.h"

namespace mgc {
namespace {

constexpr size_t kLongestGroup = 8;  // items of one that is printed

// So many layers of a kind that follow each other.
struct Item {
  RecomputeKind kind = RecomputeKind::kNone;
  int64_t layers = 1;

  friend bool operator==(const Item& a, const Item& b) {
    return a.kind == b.kind && a.layers == b.layers;
  }
};

absl::Status NoRecomputation(absl::string_view item) {
  return absl::InvalidArgumentError(
      absl::StrCat("'", item, "' is no kind of recomputation, nor a number of layers of one"));
}

// What stands behind `*`; 1 for nothing.
bool ReadCount(absl::string_view text, int64_t* count) {
  *count = 1;
  if (text.empty()) return true;
  return absl::ConsumePrefix(&text, "*") && !text.empty() &&
         absl::c_all_of(text, absl::ascii_isdigit) && absl::SimpleAtoi(text, count) && *count > 0;
}

// Takes one item off the front of a list: a group, or up to the next comma.
absl::string_view TakeItem(absl::string_view* list) {
  const size_t group_end = absl::StartsWith(*list, "(") ? list->find(')') : 0;
  const size_t end = std::min(list->find(',', std::min(group_end, list->size())), list->size());
  const absl::string_view item = list->substr(0, end);
  list->remove_prefix(end);
  return item;
}

// Appends the layers of one item `count` times.
absl::Status Append(const std::vector<RecomputeKind>& layers, int64_t count,
                    std::vector<RecomputeKind>* by_layer) {
  const auto left = static_cast<int64_t>(kMaxPipelineSize - by_layer->size());
  if (count > left / static_cast<int64_t>(layers.size())) {
    return absl::InvalidArgumentError(absl::StrCat("more than ", kMaxPipelineSize, " layers"));
  }
  for (int64_t i = 0; i < count; ++i) {
    by_layer->insert(by_layer->end(), layers.begin(), layers.end());
  }
  return absl::OkStatus();
}

absl::Status ReadList(absl::string_view list, bool in_group, std::vector<RecomputeKind>* by_layer) {
  do {
    const absl::string_view item = TakeItem(&list);
    const size_t end = std::min(item.rfind('*'), item.size());
    absl::string_view what = item.substr(0, end);
    int64_t count = 1;
    if (!ReadCount(item.substr(end), &count)) return NoRecomputation(item);
    std::vector<RecomputeKind> layers;
    const bool is_group = !in_group && absl::ConsumePrefix(&what, "(");
    if (is_group) {
      // Without a count the last star is one of the group's own.
      if (end == item.size() || !absl::ConsumeSuffix(&what, ")")) return NoRecomputation(item);
      MGC_RETURN_IF_ERROR(ReadList(what, true, &layers));
    } else {
      const auto kind = ParseRecomputeKind(what);
      if (!kind.has_value()) return NoRecomputation(item);
      layers.push_back(*kind);
    }
    MGC_RETURN_IF_ERROR(Append(layers, count, by_layer));
  } while (absl::ConsumePrefix(&list, ","));
  return absl::OkStatus();
}

std::vector<Item> ItemsOf(const std::vector<RecomputeKind>& kinds) {
  std::vector<Item> items;
  for (const RecomputeKind kind : kinds) {
    if (items.empty() || items.back().kind != kind) items.push_back({kind, 0});
    ++items.back().layers;
  }
  return items;
}

std::string ItemsText(absl::Span<const Item> items) {
  return absl::StrJoin(items, ",", [](std::string* out, const Item& item) {
    absl::StrAppend(out, ToString(item.kind));
    if (item.layers > 1) absl::StrAppend(out, "*", item.layers);
  });
}

// How many times the first `length` items follow each other.
size_t TimesOf(absl::Span<const Item> items, size_t length) {
  size_t times = 1;
  while (items.subspan(std::min(times * length, items.size()), length) == items.first(length)) {
    ++times;
  }
  return times;
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
  MGC_RETURN_IF_ERROR(ReadList(text, false, &by_layer));
  return Recomputation(by_layer);
}

std::string ToString(const Recomputation& recomputation) {
  const std::vector<RecomputeKind>& kinds = recomputation.by_layer();
  if (kinds.empty()) return std::string(ToString(recomputation.Of(0)));
  const std::vector<Item> all = ItemsOf(kinds);
  std::vector<std::string> texts;
  for (absl::Span<const Item> items = all; !items.empty();) {
    size_t covered = 1;  // by what is said once, or the group of most items
    size_t group = 1;
    for (size_t length = 2; length <= std::min(kLongestGroup, items.size() / 2); ++length) {
      const size_t by_group = TimesOf(items, length) * length;
      if (by_group <= std::max(covered, length)) continue;
      covered = by_group;
      group = length;
    }
    const std::string text = ItemsText(items.first(group));
    texts.push_back(covered > 1 ? absl::StrCat("(", text, ")*", covered / group) : text);
    items.remove_prefix(covered);
  }
  return absl::StrJoin(texts, ",");
}

}  // namespace mgc
