#include "tools/views/comm.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "graph/base/json_writer.h"
#include "graph/base/units.h"
#include "graph/plan/instr_collective.h"
#include "passes/plan/time/predict_step.h"
#include "tools/views/format.h"

namespace mgc {
namespace {

// What tells entries apart, their place in the list aside.
auto KindOf(const CommEntry& entry) {
  return std::tie(entry.op, entry.group, entry.label, entry.payload_bytes);
}

// Collects the entries of one phase of one stage.
class Collector {
 public:
  Collector(const Plan& plan, int stage, std::string phase)
      : plan_(plan), stage_(stage), phase_(std::move(phase)) {}

  void Add(const std::vector<Call>& calls) {
    for (const Call& call : calls) Add(call);
  }

  void Add(const Call& call) {
    const Segment& segment = plan_.segments[static_cast<size_t>(call.segment)];
    absl::optional<int> layer;
    if (call.layer >= 0 && call.layer < plan_.model.num_layers()) layer = call.layer;
    for (const Instr& instr : segment.instrs) {
      if (instr.kind != InstrKind::kStart) continue;
      const InstrCollective collective = CollectiveOf(plan_.mesh, plan_.stages, segment, instr);
      AddOne({stage_, phase_, layer, std::string(NameOf(collective.kind())),
              plan_.mesh.GroupName(collective.axes()), collective.label, 1,
              collective.payload_bytes,
              RingWireBytes(collective.kind(), collective.payload_bytes, collective.ranks)});
    }
  }

  // The boundary tensors of the first micro-batch; all are alike.
  void AddTransfers(const PlanClass& plan_class, int chunk) {
    for (const Transfer& transfer : plan_class.train.transfers) {
      const TransferRef& ref = transfer.ref;
      if (ref.chunk != chunk || ref.micro_batch != 0) continue;
      const bool forward =
          ref.kind == TransferKind::kSendForward || ref.kind == TransferKind::kRecvForward;
      const bool send =
          ref.kind == TransferKind::kSendForward || ref.kind == TransferKind::kSendBackward;
      if (forward != (phase_ == "forward")) continue;
      AddOne({stage_, phase_, absl::nullopt, send ? "send" : "recv", "pp",
              forward ? "activation" : "gradient", 1, transfer.bytes, transfer.bytes});
    }
  }

  std::vector<CommEntry> Take() && { return std::move(entries_); }

 private:
  void AddOne(CommEntry entry) {
    const auto same =
        std::find_if(entries_.begin(), entries_.end(), [&entry](const CommEntry& other) {
          return other.layer == entry.layer && KindOf(other) == KindOf(entry);
        });
    if (same != entries_.end()) {
      ++same->count;
    } else {
      entries_.push_back(std::move(entry));
    }
  }

  const Plan& plan_;
  int stage_;
  std::string phase_;
  std::vector<CommEntry> entries_;
};

bool Holds(const Chunk& chunk, int layer, int num_layers) {
  if (layer == kEmbeddingLayer) return chunk.has_embedding;
  if (layer == num_layers) return chunk.has_head;
  return chunk.first_layer <= layer && layer < chunk.first_layer + chunk.num_layers;
}

// The chunk that holds the parameters which a call of the update serves; the first one for what
// serves all of the rank (loss, norm).
size_t ChunkOf(const Call& call, const std::vector<Chunk>& chunks, int num_layers) {
  const auto holder = [&](int layer) {
    const auto holds = [&](const Chunk& chunk) { return Holds(chunk, layer, num_layers); };
    return static_cast<size_t>(std::find_if(chunks.begin(), chunks.end(), holds) - chunks.begin());
  };
  size_t index = holder(call.layer);
  // A tied embedding without an embedding is the head's copy.
  if (index == chunks.size() && call.layer == kEmbeddingLayer) index = holder(num_layers);
  return index == chunks.size() ? 0 : index;
}

void AddChunk(const Plan& plan, const PlanClass& plan_class, size_t index,
              std::vector<CommEntry>* entries) {
  const Chunk& chunk = plan_class.chunks[index];
  const auto append = [entries](Collector collector) {
    for (CommEntry& entry : std::move(collector).Take()) entries->push_back(std::move(entry));
  };
  Collector prepare(plan, chunk.stage, "prepare");
  prepare.Add(chunk.prepare);
  append(std::move(prepare));
  Collector forward(plan, chunk.stage, "forward");
  forward.Add(chunk.forward);
  forward.AddTransfers(plan_class, static_cast<int>(index));
  append(std::move(forward));
  Collector backward(plan, chunk.stage, "backward");
  backward.Add(chunk.backward);
  backward.AddTransfers(plan_class, static_cast<int>(index));
  append(std::move(backward));
  Collector update(plan, chunk.stage, "update");
  update.Add(ReductionsOf(chunk));
  for (const Call& call : plan_class.update) {
    if (ChunkOf(call, plan_class.chunks, plan.model.num_layers()) == index) update.Add(call);
  }
  append(std::move(update));
}

bool Contains(const std::vector<int64_t>& numbers, int64_t number) {
  return std::find(numbers.begin(), numbers.end(), number) != numbers.end();
}

// Phases in the order of a step.
size_t PhaseIndex(const std::string& phase) {
  constexpr std::array<absl::string_view, 4> kPhases = {"prepare", "forward", "backward", "update"};
  const auto* const at = std::find(kPhases.begin(), kPhases.end(), phase);
  return static_cast<size_t>(at - kPhases.begin());
}

// Entries of neighbouring layers that differ in nothing but the layer.
struct LayerRun {
  CommEntry entry;
  absl::optional<int> last_layer;
};

std::vector<LayerRun> JoinLayers(const std::vector<CommEntry>& entries) {
  std::vector<LayerRun> runs;
  for (const CommEntry& entry : entries) {
    const auto joins = [&entry](const LayerRun& run) {
      const bool neighbours = entry.layer.has_value() && run.last_layer.has_value() &&
                              std::abs(*run.last_layer - *entry.layer) == 1;
      return neighbours && run.entry.stage == entry.stage && run.entry.phase == entry.phase &&
             run.entry.count == entry.count && KindOf(run.entry) == KindOf(entry);
    };
    const auto run = std::find_if(runs.begin(), runs.end(), joins);
    if (run != runs.end()) {
      run->last_layer = entry.layer;
    } else {
      runs.push_back({entry, entry.layer});
    }
  }
  return runs;
}

std::string WhereText(const LayerRun& run) {
  if (!run.last_layer.has_value()) return "";
  const int low = std::min(*run.entry.layer, *run.last_layer);
  const int high = std::max(*run.entry.layer, *run.last_layer);
  return low == high ? absl::StrCat("layer ", low) : absl::StrCat("layers ", low, "-", high);
}

// Entries of any stages and layers that differ in nothing but these.
struct FoldedEntry {
  CommEntry entry;  // of the first
  std::vector<int64_t> stages;
  std::vector<int64_t> layers;
};

void AddOnce(int64_t number, std::vector<int64_t>* numbers) {
  if (!Contains(*numbers, number)) numbers->push_back(number);
}

// By phase; within one as the first stage that has an entry executes it. A layer is in one entry
// once, so that with the layers of each stage everything can be told again.
std::vector<FoldedEntry> FoldEntries(const std::vector<CommEntry>& entries) {
  std::vector<FoldedEntry> folds;
  for (const CommEntry& entry : entries) {
    const int64_t layer = entry.layer.value_or(-1);
    const auto same = std::find_if(folds.begin(), folds.end(), [&](const FoldedEntry& fold) {
      return fold.entry.phase == entry.phase && fold.entry.count == entry.count &&
             fold.entry.layer.has_value() == entry.layer.has_value() &&
             KindOf(fold.entry) == KindOf(entry) && !Contains(fold.layers, layer);
    });
    FoldedEntry& fold =
        same != folds.end() ? *same : folds.emplace_back(FoldedEntry{entry, {}, {}});
    AddOnce(entry.stage, &fold.stages);
    if (entry.layer.has_value()) fold.layers.push_back(layer);
  }
  std::stable_sort(folds.begin(), folds.end(), [](const FoldedEntry& a, const FoldedEntry& b) {
    return PhaseIndex(a.entry.phase) < PhaseIndex(b.entry.phase);
  });
  for (FoldedEntry& fold : folds) std::sort(fold.layers.begin(), fold.layers.end());
  return folds;
}

std::string WhereText(const FoldedEntry& fold) {
  if (fold.layers.empty()) return "";
  return absl::StrCat(fold.layers.size() == 1 ? "layer " : "layers ", RangesText(fold.layers));
}

// What a rank of each stage sends in a step.
NumberedLines Totals(const Plan& plan, const std::vector<CommEntry>& entries) {
  std::map<int, int64_t> sent;
  for (const CommEntry& entry : entries) {
    const int64_t times = entry.count * TimesInStep(plan, entry);
    sent[entry.stage] += entry.op == "recv" ? 0 : times * entry.wire_bytes;
  }
  NumberedLines lines;
  for (const auto& [stage, bytes] : sent) {
    lines.push_back({stage, absl::StrCat(BytesText(bytes), " sent by each rank in a step")});
  }
  return lines;
}

// How long compute waits for collectives, and over which axes.
std::string ExposedText(const Mesh& mesh, const CollectiveTime& time) {
  std::vector<std::string> parts;
  parts.reserve(time.exposed.size());
  for (const auto& [axes, ns] : time.exposed) {
    parts.push_back(absl::StrCat(mesh.GroupName(axes), " ", DurationText(ns)));
  }
  const std::string all = DurationText(time.ExposedNs());
  return parts.empty() ? all : absl::StrCat(all, " (", absl::StrJoin(parts, ", "), ")");
}

// What collectives take of the step as it is predicted, by class.
std::string TimesText(const Plan& plan, bool all) {
  const absl::StatusOr<SimulatedStep> step = PredictStep(plan);
  if (!step.ok()) return absl::StrCat("no times: ", step.status().message(), "\n");
  NumberedLines lines;
  for (size_t c = 0; c < step->collectives.size(); ++c) {
    const CollectiveTime& time = step->collectives[c];
    lines.push_back({static_cast<int64_t>(c),
                     absl::StrCat("collectives run for ", DurationText(time.all_ns), " of ",
                                  DurationText(step->makespan_ns), "; compute waits for them ",
                                  ExposedText(plan.mesh, time), "; ",
                                  DurationText(time.hideable_ns), " could run beside compute")});
  }
  return LinesText("pp", "pp", lines, all);
}

void WriteTimes(const Plan& plan, JsonWriter* json) {
  const absl::StatusOr<SimulatedStep> step = PredictStep(plan);
  if (!step.ok()) return;
  json->Key("classes").BeginArray();
  for (size_t c = 0; c < step->collectives.size(); ++c) {
    const CollectiveTime& time = step->collectives[c];
    json->NewLine().BeginObject().Integer("pp", static_cast<int64_t>(c));
    json->Integer("collective_ns", time.all_ns).Integer("exposed_ns", time.ExposedNs());
    json->Integer("hideable_ns", time.hideable_ns).EndObject();
  }
  json->NewLine().EndArray();
}

}  // namespace

bool IsTransfer(const CommEntry& entry) { return entry.op == "send" || entry.op == "recv"; }

int64_t TimesInStep(const Plan& plan, const CommEntry& entry) {
  const bool once = entry.phase == "prepare" || entry.phase == "update";
  return once ? 1 : plan.num_micro_batches;
}

std::vector<CommEntry> CommEntries(const Plan& plan) {
  std::vector<CommEntry> entries;
  for (const PlanClass& plan_class : plan.classes) {
    for (size_t i = 0; i < plan_class.chunks.size(); ++i) {
      AddChunk(plan, plan_class, i, &entries);
    }
  }
  std::stable_sort(entries.begin(), entries.end(),
                   [](const CommEntry& a, const CommEntry& b) { return a.stage < b.stage; });
  return entries;
}

std::string CommJson(const Plan& plan) {
  JsonWriter json;
  json.BeginObject().Key("entries").BeginArray();
  for (const CommEntry& entry : CommEntries(plan)) {
    json.NewLine().BeginObject().Integer("stage", entry.stage).String("phase", entry.phase);
    json.Key("layer");
    entry.layer.has_value() ? json.Integer(*entry.layer) : json.Null();
    json.String("op", entry.op).String("group", entry.group).String("label", entry.label);
    json.Integer("count", entry.count).Integer("payload_bytes", entry.payload_bytes);
    json.Integer("wire_bytes", entry.wire_bytes).EndObject();
  }
  json.NewLine().EndArray();
  WriteTimes(plan, &json);
  json.EndObject();
  return std::move(json).Finish();
}

std::string CommText(const Plan& plan, bool all) {
  const std::vector<CommEntry> entries = CommEntries(plan);
  std::vector<std::vector<std::string>> rows = {
      {"stage", "phase", "where", "op", "group", "label", "count", "payload", "on the wire"}};
  const auto add = [&rows](std::string stages, std::string where, const CommEntry& entry) {
    rows.push_back({std::move(stages), entry.phase, std::move(where), entry.op, entry.group,
                    entry.label, absl::StrCat(entry.count), BytesText(entry.payload_bytes),
                    BytesText(entry.wire_bytes)});
  };
  if (all) {
    for (const LayerRun& run : JoinLayers(entries)) {
      add(absl::StrCat(run.entry.stage), WhereText(run), run.entry);
    }
  } else {
    for (const FoldedEntry& fold : FoldEntries(entries)) {
      add(RangesText(fold.stages), WhereText(fold), fold.entry);
    }
  }
  return absl::StrCat(
      TableText(rows, {true, false, false, false, false, false, true, true, true}),
      "Counts of a rank, a layer and a micro-batch; those of the update are per step.\n",
      LinesText("stage", "stages", Totals(plan, entries), all), TimesText(plan, all));
}

}  // namespace mgc
