#include "tools/views/cuts.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "graph/base/file.h"
#include "graph/base/units.h"
#include "graph/types/layer_names.h"
#include "passes/graph/simplify.h"
#include "passes/plan/time/cost.h"
#include "tools/views/format.h"

namespace mgc {
namespace {

constexpr size_t kMostNamed = 4;  // values of one cut

// Behind stage number its index.
struct StageCut {
  int layer = kEmbeddingLayer;  // the last before it
  std::vector<std::string> values;
  int64_t bytes = 0;
  double before = 0;
};

std::map<int, int> StagesByLayer(const Plan& plan) {
  std::map<int, int> stages;
  for (const PlanClass& plan_class : plan.classes) {
    for (const Chunk& chunk : plan_class.chunks) {
      if (chunk.has_embedding) stages[kEmbeddingLayer] = chunk.stage;
      for (int i = 0; i < chunk.num_layers; ++i) stages[chunk.first_layer + i] = chunk.stage;
      if (chunk.has_head) stages[plan.model.num_layers()] = chunk.stage;
    }
  }
  return stages;
}

// What is made until a cut and read behind it, as differentiation saw the model.
void NameValues(const Plan& plan, std::vector<StageCut>* cuts) {
  const Graph model = Simplify(plan.model);
  const std::map<int, int> stage_of = StagesByLayer(plan);
  const auto stage = [&](NodeId node) {
    const auto found = stage_of.find(model.node(node).layer);
    return found == stage_of.end() ? 0 : found->second;
  };
  const std::vector<std::vector<NodeId>> users = model.Users();
  for (size_t v = 0; v < users.size(); ++v) {
    const Value& value = model.value(static_cast<ValueId>(v));
    if (value.producer == kNone) continue;
    int last = 0;
    for (const NodeId user : users[v]) last = std::max(last, stage(user));
    for (int s = stage(value.producer); s < last; ++s) {
      (*cuts)[static_cast<size_t>(s)].values.push_back(value.name);
    }
  }
}

int64_t BytesSent(const PlanClass& plan_class, size_t chunk) {
  for (const Transfer& transfer : plan_class.train.transfers) {
    const bool forward = transfer.ref.kind == TransferKind::kSendForward;
    if (forward && static_cast<size_t>(transfer.ref.chunk) == chunk) return transfer.bytes;
  }
  return 0;
}

double ForwardNs(const Plan& plan, const PlanClass& plan_class, const Chunk& chunk) {
  const CostModel costs{plan.mesh, plan.machine, plan.stages};
  double ns = 0;
  for (const Call& call : chunk.forward) {
    const Segment& segment = plan.segments[static_cast<size_t>(call.segment)];
    for (const TimedStep& step : TimeSegment(costs, segment, plan_class.coordinate)) {
      ns += static_cast<double>(step.ns);
    }
  }
  return ns;
}

std::vector<StageCut> CutsOf(const Plan& plan) {
  std::vector<StageCut> cuts(plan.stages.size());
  for (const PlanClass& plan_class : plan.classes) {
    for (size_t c = 0; c < plan_class.chunks.size(); ++c) {
      const Chunk& chunk = plan_class.chunks[c];
      StageCut& cut = cuts[static_cast<size_t>(chunk.stage)];
      if (chunk.num_layers > 0) cut.layer = chunk.first_layer + chunk.num_layers - 1;
      cut.bytes = BytesSent(plan_class, c);
      cut.before = ForwardNs(plan, plan_class, chunk);
    }
  }
  double until = 0;
  for (StageCut& cut : cuts) cut.before = until += cut.before;
  for (StageCut& cut : cuts) cut.before = until > 0 ? cut.before / until : 0;
  NameValues(plan, &cuts);
  if (!cuts.empty()) cuts.pop_back();
  return cuts;
}

std::string ShareText(double share) { return absl::StrFormat("%.1f %%", 100 * share); }

std::string ValuesText(const std::vector<std::string>& values) {
  const size_t named = std::min(values.size(), kMostNamed);
  const std::string names = absl::StrJoin(values.begin(), values.begin() + named, ", ");
  const size_t more = values.size() - named;
  return EscapeBytes(more == 0 ? names : absl::StrCat(names, " and ", more, " more"));
}

// The values of a cut with a `*` for the layer before it.
std::vector<std::string> PatternsOf(const StageCut& cut, int num_layers) {
  std::vector<std::string> patterns;
  patterns.reserve(cut.values.size());
  for (const std::string& value : cut.values) {
    patterns.push_back(FoldName(value, cut.layer, num_layers));
  }
  return patterns;
}

// Behind the last of the cuts from `first` that are at the same values of other layers, of as many
// bytes, with as much of the forward pass between neighbours.
size_t EndOfRun(const std::vector<StageCut>& cuts, size_t first, int num_layers) {
  constexpr double kRounding = 0.0005;  // of what is printed
  const std::vector<std::string> patterns = PatternsOf(cuts[first], num_layers);
  size_t end = first + 1;
  while (end < cuts.size() && cuts[end].bytes == cuts[first].bytes) {
    const double between = cuts[end].before - cuts[end - 1].before;
    const double first_between = cuts[first + 1].before - cuts[first].before;
    if (std::abs(between - first_between) >= kRounding) break;
    if (PatternsOf(cuts[end], num_layers) != patterns) break;
    ++end;
  }
  return end - first > 2 ? end : first + 1;
}

// Of the cuts of a run.
std::vector<std::string> RowOf(const std::vector<StageCut>& cuts, size_t first, size_t end,
                               int num_layers) {
  const StageCut& cut = cuts[first];
  if (end == first + 1) {
    return {absl::StrCat(first), BytesText(cut.bytes), ShareText(cut.before),
            ValuesText(cut.values)};
  }
  std::vector<int64_t> layers;
  for (size_t s = first; s < end; ++s) layers.push_back(cuts[s].layer);
  return {absl::StrCat(first, "-", end - 1), BytesText(cut.bytes),
          absl::StrCat(ShareText(cut.before), " to ", ShareText(cuts[end - 1].before), ", evenly"),
          absl::StrCat(ValuesText(PatternsOf(cut, num_layers)), " of layers ", RangesText(layers))};
}

}  // namespace

std::string PlacesText(const std::vector<CutPoint>& points, bool all) {
  std::vector<std::vector<std::string>> rows = {
      {"behind", "crosses per micro-batch", "forward before", ""}};
  for (const CutPoint& point : points) {
    if (!all && !point.narrow && !point.chosen) continue;
    rows.push_back({EscapeBytes(point.value), BytesText(point.bytes), ShareText(point.before),
                    point.chosen ? "cut" : ""});
  }
  return TableText(rows, {false, true, true, false});
}

std::string PlacesJson(const std::vector<CutPoint>& points) {
  JsonWriter json;
  json.BeginArray();
  for (const CutPoint& point : points) {
    json.NewLine().BeginObject().String("behind", point.value).Integer("bytes", point.bytes);
    json.Key("before").Number(point.before).Bool("narrow", point.narrow);
    json.Bool("cut", point.chosen).EndObject();
  }
  json.NewLine().EndArray();
  return std::move(json).Finish();
}

std::string CutsText(const Plan& plan, bool all) {
  const std::vector<StageCut> cuts = CutsOf(plan);
  if (cuts.empty()) return "";
  std::vector<std::vector<std::string>> rows = {
      {"cut behind stage", "sent per micro-batch", "forward before", "values"}};
  for (size_t first = 0; first < cuts.size();) {
    const size_t end = all ? first + 1 : EndOfRun(cuts, first, plan.model.num_layers());
    rows.push_back(RowOf(cuts, first, end, plan.model.num_layers()));
    first = end;
  }
  return TableText(rows, {true, true, true, false});
}

void WriteCuts(const Plan& plan, JsonWriter* json) {
  json->NewLine().Key("cuts").BeginArray();
  const std::vector<StageCut> cuts = CutsOf(plan);
  for (size_t s = 0; s < cuts.size(); ++s) {
    json->NewLine().BeginObject().Integer("behind_stage", static_cast<int64_t>(s));
    json->Key("values").BeginArray();
    for (const std::string& value : cuts[s].values) json->String(value);
    json->EndArray().Integer("bytes", cuts[s].bytes);
    json->Key("before").Number(cuts[s].before).EndObject();
  }
  json->EndArray();
}

}  // namespace mgc
