#include "graph/ops/attention_shared.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/ops/op_helpers.h"

namespace mgc {
namespace {

// Pairs of query and key that are visible, with the queries the last of the keys: the rank with the
// end of a sequence that is cut over ranks has most of them, and all others wait for it.
double VisiblePairs(double queries, double keys, double window) {
  const double rows = std::min(queries, keys);
  const double full = std::min(std::max(keys - window, 0.0), rows);  // rows that fill the window
  // The others see keys - rows + 1, ..., keys - full.
  return full * window + (rows - full) * (2 * keys - rows - full + 1) / 2;
}

}  // namespace

absl::Status CheckAttention(absl::string_view op, const OpUse& use) {
  const double p = use.attrs.Real("p");
  if (!(p >= 0 && p < 1)) return Refuse(op, 1, "p must lie in [0, 1)");
  if (use.attrs.Find("window") != nullptr && WindowOf(use.attrs) < 1) {
    return Refuse(op, 3, "a window has at least one key; without one there is no attribute");
  }
  if (!(CapOf(use.attrs) > 0)) return Refuse(op, 4, "cap must be positive");
  if (!IsCausal(use.attrs) && WindowOf(use.attrs) != 0) {
    return Refuse(op, 5, "a window is of keys before a query: causal attention only");
  }
  return absl::OkStatus();
}

std::vector<AttrSpec> AttentionAttrs() {
  return {{"scale", AttrKind::kReal},        {kDropAttr, AttrKind::kReal},
          {kRandomKeyAttr, AttrKind::kText}, {"window", AttrKind::kInt, false},
          {"cap", AttrKind::kReal, false},   {"causal", AttrKind::kInt, false}};
}

std::string SegmentName(absl::string_view op) { return absl::StrCat("segment_", op); }

Attrs PlainAttention() { return {{"scale", 0.5}, {"p", 0.0}, {"key", ""}}; }
Attrs DroppedAttention() { return {{"scale", 0.7}, {"p", 0.3}, {"key", "layers.1.attention"}}; }
Attrs Windowed(Attrs attrs) {
  attrs.Set("window", int64_t{3});
  return attrs;
}
Attrs Capped(Attrs attrs) {
  attrs.Set("cap", 1.5);
  return attrs;
}
Attrs OverAll(Attrs attrs) {
  attrs.Set("causal", int64_t{0});
  return attrs;
}

OpDef InSegments(OpDef op, absl::string_view results, std::vector<OpCase> cases) {
  const int at = static_cast<int>(op.operands.size());
  op.name = SegmentName(op.name);
  op.operands.insert(op.operands.end(), {"qseg", "kseg"});
  op.index_operands.insert(op.index_operands.end(), {at, at + 1});
  const size_t arrow = op.rule.find(" ->");
  op.rule = absl::StrCat(op.rule.substr(0, arrow), ", b s, b t! -> ", results);
  op.check = [name = op.name](const OpUse& use) { return CheckAttention(name, use); };
  op.cases = std::move(cases);
  return op;
}

HeadSizes HeadSizesOf(const TensorType& q, const TensorType& k) {
  const auto size = [](const TensorType& type, size_t d) {
    constexpr int64_t kRounding = 32;
    constexpr int64_t kMost = int64_t{1} << 26;  // damaged sizes stay in range
    return kRounding + (d < type.dims.size() ? std::min(type.dims[d].size, kMost) : 0);
  };
  return {std::max(size(q, 1), size(k, 1)), size(q, 3)};
}

double AttentionFlops(const OpUse& use, const TensorType& q, const TensorType& k, double products) {
  if (q.ndim() != 4 || k.ndim() != 4) return 0;  // of a damaged plan
  const auto size = [](const TensorType& type, size_t d) {
    return static_cast<double>(type.dims[d].size);
  };
  const double queries = size(q, 1);
  const double keys = size(k, 1);
  const int64_t window = WindowOf(use.attrs);
  const double pairs =
      IsCausal(use.attrs)
          ? VisiblePairs(queries, keys, window > 0 ? static_cast<double>(window) : keys)
          : queries * keys;
  return 2 * products * size(q, 0) * size(q, 2) * size(q, 3) * pairs;
}

}  // namespace mgc
