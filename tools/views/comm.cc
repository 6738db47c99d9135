#include "tools/views/comm.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
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

// What a rank of each stage sends in a step.
std::string TotalsText(const Plan& plan, const std::vector<CommEntry>& entries) {
  std::map<int, int64_t> sent;
  for (const CommEntry& entry : entries) {
    const bool once = entry.phase == "prepare" || entry.phase == "update";
    const int64_t times = once ? 1 : plan.num_micro_batches;
    sent[entry.stage] += entry.op == "recv" ? 0 : entry.count * times * entry.wire_bytes;
  }
  std::string text;
  for (const auto& [stage, bytes] : sent) {
    absl::StrAppend(&text, "stage ", stage, ": ", BytesText(bytes),
                    " sent by each rank in a step\n");
  }
  return text;
}

// What collectives take of the step as it is predicted, by class.
std::string TimesText(const Plan& plan) {
  const absl::StatusOr<SimulatedStep> step = PredictStep(plan);
  if (!step.ok()) return absl::StrCat("no times: ", step.status().message(), "\n");
  std::string text;
  for (size_t c = 0; c < step->collectives.size(); ++c) {
    const CollectiveTime& time = step->collectives[c];
    absl::StrAppend(&text, "pp ", c, ": collectives run for ", DurationText(time.all_ns), " of ",
                    DurationText(step->makespan_ns), "; compute waits for them ",
                    DurationText(time.exposed_ns), "; ", DurationText(time.hideable_ns),
                    " could run beside compute\n");
  }
  return text;
}

void WriteTimes(const Plan& plan, JsonWriter* json) {
  const absl::StatusOr<SimulatedStep> step = PredictStep(plan);
  if (!step.ok()) return;
  json->Key("classes").BeginArray();
  for (size_t c = 0; c < step->collectives.size(); ++c) {
    const CollectiveTime& time = step->collectives[c];
    json->NewLine().BeginObject().Integer("pp", static_cast<int64_t>(c));
    json->Integer("collective_ns", time.all_ns).Integer("exposed_ns", time.exposed_ns);
    json->Integer("hideable_ns", time.hideable_ns).EndObject();
  }
  json->NewLine().EndArray();
}

}  // namespace

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

std::string CommText(const Plan& plan) {
  const std::vector<CommEntry> entries = CommEntries(plan);
  std::vector<std::vector<std::string>> rows = {
      {"stage", "phase", "where", "op", "group", "label", "count", "payload", "on the wire"}};
  for (const LayerRun& run : JoinLayers(entries)) {
    const CommEntry& entry = run.entry;
    rows.push_back({absl::StrCat(entry.stage), entry.phase, WhereText(run), entry.op, entry.group,
                    entry.label, absl::StrCat(entry.count), BytesText(entry.payload_bytes),
                    BytesText(entry.wire_bytes)});
  }
  return absl::StrCat(
      TableText(rows, {true, false, false, false, false, false, true, true, true}),
      "Counts of a rank, a layer and a micro-batch; those of the update are per step.\n",
      TotalsText(plan, entries), TimesText(plan));
}

}  // namespace mgc
