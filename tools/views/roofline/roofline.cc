#include "tools/views/roofline/roofline.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "graph/base/file.h"
#include "graph/base/json_writer.h"
#include "graph/base/status.h"
#include "passes/plan/time/cost.h"
#include "tools/views/drawings/read_timeline.h"
#include "tools/views/format.h"

namespace mgc {
namespace {

constexpr size_t kRowsShown = 20;
constexpr double kNsPerSecond = 1e9;
constexpr double kMsPerSecond = 1e3;
constexpr double kPercent = 100;

struct Place {
  const Segment* segment = nullptr;
  const Instr* instr = nullptr;
};

// Of `layer.forward[7] matmul layer 3`; none where the plan has no such instruction.
Place PlaceOf(const std::map<std::string, const Segment*>& segments, const std::string& name) {
  const size_t open = name.find('[');
  const size_t close = name.find(']');
  if (open == std::string::npos || close == std::string::npos || close < open) return {};
  const auto segment = segments.find(name.substr(0, open));
  size_t at = 0;
  if (segment == segments.end() ||
      !absl::SimpleAtoi(name.substr(open + 1, close - open - 1), &at) ||
      at >= segment->second->instrs.size()) {
    return {};
  }
  const Instr& instr = segment->second->instrs[at];
  const std::string op = instr.op != nullptr ? absl::StrCat("] ", instr.op->name) : "]";
  return name.compare(close, op.size(), op) == 0 ? Place{segment->second, &instr} : Place{};
}

std::string TypesOf(const Plan& plan, const Segment& segment, const std::vector<int>& slots) {
  return absl::StrJoin(slots, " ", [&](std::string* out, int index) {
    const Slot& slot = segment.slots[static_cast<size_t>(index)];
    absl::StrAppend(out, NameOf(slot.type.dtype), "[",
                    absl::StrJoin(LocalShape(slot.type, slot.sharding, plan.mesh), ","), "]");
  });
}

// Without calls and what was measured.
RooflineRow RowOf(const Plan& plan, const Machine& machine, const Place& place) {
  const Segment& segment = *place.segment;
  const Instr& instr = *place.instr;
  RooflineRow row;
  row.op = instr.op != nullptr ? instr.op->name : "load";
  row.shapes = absl::StrCat(TypesOf(plan, segment, instr.inputs), instr.inputs.empty() ? "" : " ",
                            "-> ", TypesOf(plan, segment, instr.outputs));
  const std::string dtype(NameOf(ComputedIn(segment, instr)));
  row.flops_seconds = FlopsOf(plan.mesh, segment, instr) / machine.RateOf(dtype).flops;
  row.bytes_seconds = BytesOf(plan.mesh, segment, instr) / machine.memory_bandwidth;
  return row;
}

std::vector<std::string> CellsOf(const RooflineRow& row, double all_gaps) {
  const auto ms = [](double seconds) { return absl::StrFormat("%.3f", seconds * kMsPerSecond); };
  const auto share = [](double part, double whole) {
    return whole > 0 ? absl::StrFormat("%.1f %%", kPercent * part / whole) : std::string("-");
  };
  return {row.op,
          absl::StrCat(row.calls),
          ms(row.seconds),
          ms(row.flops_seconds),
          ms(row.bytes_seconds),
          share(row.limit(), row.seconds),
          share(row.gap(), all_gaps),
          row.shapes};
}

// A row for several, whose limit is the sum of theirs.
struct Sum {
  RooflineRow row;
  double limit = 0;
};

Sum SumOf(const std::vector<RooflineRow>& rows, size_t first) {
  Sum sum;
  for (size_t i = first; i < rows.size(); ++i) {
    sum.row.calls += rows[i].calls;
    sum.row.seconds += rows[i].seconds;
    sum.row.flops_seconds += rows[i].flops_seconds;
    sum.row.bytes_seconds += rows[i].bytes_seconds;
    sum.limit += rows[i].limit();
  }
  return sum;
}

// Instructions that are alike in one row, largest gap first. Limits are those of one call.
std::vector<RooflineRow> ByShapes(const std::map<const Instr*, RooflineRow>& by_instr) {
  std::map<std::pair<std::string, std::string>, RooflineRow> by_shapes;
  for (const auto& [instr, row] : by_instr) {
    RooflineRow& sum = by_shapes[{row.op, row.shapes}];
    sum.op = row.op;
    sum.shapes = row.shapes;
    sum.calls += row.calls;
    sum.seconds += row.seconds;
    sum.flops_seconds += static_cast<double>(row.calls) * row.flops_seconds;
    sum.bytes_seconds += static_cast<double>(row.calls) * row.bytes_seconds;
  }
  std::vector<RooflineRow> rows;
  rows.reserve(by_shapes.size());
  for (auto& [key, row] : by_shapes) rows.push_back(std::move(row));
  std::stable_sort(rows.begin(), rows.end(),
                   [](const RooflineRow& a, const RooflineRow& b) { return a.gap() > b.gap(); });
  return rows;
}

}  // namespace

absl::StatusOr<std::vector<RooflineRow>> Roofline(const Plan& plan, const Machine& machine,
                                                  const Timeline& timeline) {
  std::map<std::string, const Segment*> segments;
  for (const Segment& segment : plan.segments) segments[segment.name] = &segment;
  std::map<const Instr*, RooflineRow> by_instr;
  for (const TimelineEvent& event : timeline.events) {
    if (event.category != "compute" || IsPredicted(timeline.tracks[event.track])) continue;
    const Place place = PlaceOf(segments, event.name);
    if (place.instr == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("the timeline has ", EscapeBytes(event.name),
                       ", which the plan lacks; nearest legal: the plan that was run"));
    }
    auto [found, is_new] = by_instr.try_emplace(place.instr);
    if (is_new) found->second = RowOf(plan, machine, place);
    ++found->second.calls;
    found->second.seconds += static_cast<double>(event.end_ns - event.begin_ns) / kNsPerSecond;
  }
  if (by_instr.empty()) {
    return absl::InvalidArgumentError(
        "the timeline has no measured instruction; nearest legal: one of mgc-run --trace");
  }
  return ByShapes(by_instr);
}

std::string RooflineText(const Machine& machine, const std::vector<RooflineRow>& rows, bool all) {
  double gaps = 0;
  for (const RooflineRow& row : rows) gaps += std::max(0.0, row.gap());
  std::vector<std::vector<std::string>> cells = {
      {"op", "calls", "ms", "ms by flops", "ms by bytes", "of the limit", "of the gap", "shapes"}};
  const size_t shown = all ? rows.size() : std::min(rows.size(), kRowsShown);
  for (size_t i = 0; i < shown; ++i) cells.push_back(CellsOf(rows[i], gaps));
  if (shown < rows.size()) {
    const Sum rest = SumOf(rows, shown);
    cells.push_back({absl::StrCat(rows.size() - shown, " more"), absl::StrCat(rest.row.calls),
                     absl::StrFormat("%.3f", rest.row.seconds * kMsPerSecond), "", "", "", "", ""});
  }
  const Sum whole = SumOf(rows, 0);
  return absl::StrCat(
      absl::StrFormat("%d kernels: %.3f ms, of which %s needs %.3f ms\n", whole.row.calls,
                      whole.row.seconds * kMsPerSecond, machine.name, whole.limit * kMsPerSecond),
      TableText(cells, {false, true, true, true, true, true, true, false}));
}

std::string RooflineJson(const Machine& machine, const std::vector<RooflineRow>& rows) {
  JsonWriter json;
  json.BeginObject().String("machine", machine.name).Key("kernels").BeginArray();
  for (const RooflineRow& row : rows) {
    json.NewLine().BeginObject().String("op", row.op).String("shapes", row.shapes);
    json.Integer("calls", row.calls).Number("seconds", row.seconds);
    json.Number("flops_seconds", row.flops_seconds).Number("bytes_seconds", row.bytes_seconds);
    json.EndObject();
  }
  return std::move(json.NewLine().EndArray().EndObject()).Finish();
}

}  // namespace mgc
