#include "passes/search/plans/draft_segments.h"

#include <algorithm>
#include <string>

#include "absl/status/statusor.h"
#include "graph/base/status.h"
#include "passes/plan/time/ring_time.h"

namespace mgc {
namespace {

constexpr double kNsPerSecond = 1e9;

int64_t ToNs(double seconds) {
  return static_cast<int64_t>(std::min(seconds * kNsPerSecond, static_cast<double>(kMaxNs)));
}

// How the ranks of a configuration hold the model: with ZeRO's groups, and axes split as those of
// the profile are.
Mesh MeshOf(const Mesh& profiled, const PlanSpread& spread) {
  const ParallelConfig& config = spread.config;
  const int64_t dp = spread.checked.dp;
  absl::StatusOr<Mesh> mesh = Mesh::FromOrder(
      config.order, {{"tp", config.tp}, {"cp", config.cp}, {"dp", dp}, {"pp", config.pp}});
  if (mesh.ok() && spread.near > 1 && spread.near < dp) {
    mesh = mesh->Split("dp", {dp / spread.near, spread.near});
  }
  for (const char* axis : {"tp", "cp"}) {
    std::vector<int64_t> sizes;
    for (const AxisId part : profiled.Find(axis)) {
      sizes.push_back(profiled.size(part));
    }
    if (mesh.ok() && sizes.size() > 1) mesh = mesh->Split(axis, sizes);
  }
  MGC_CHECK(mesh.ok()) << mesh.status().message();  // CheckConfig has passed it
  return *std::move(mesh);
}

AxisSet AxesOf(const Mesh& mesh, const std::vector<std::string>& names) {
  AxisSet axes;
  for (const std::string& name : names) axes |= mesh.Find(name).AsSet();
  return axes;
}

}  // namespace

SegmentDrafter::SegmentDrafter(const DraftProfile& draft, const PlanSpread& spread,
                               const Machine& machine)
    : draft_(draft),
      spread_(spread),
      machine_(machine),
      mesh_(MeshOf(draft.mesh, spread)),
      costs_{mesh_, machine, spread.checked.placement.places} {
  const bool in_groups = mesh_.FindAtomic("dp.1") >= 0;
  near_ = AxesOf(mesh_, {"cp", in_groups ? "dp.1" : "dp"});
  far_ = AxesOf(mesh_, {in_groups ? "dp.0" : ""});
  is_cut_ = !near_.empty();
}

int SegmentDrafter::Add(std::vector<TimedStep> steps) {
  segments_.push_back(std::move(steps));
  return static_cast<int>(segments_.size()) - 1;
}

int64_t SegmentDrafter::OpsNs(int64_t ops, int64_t work_ns) const {
  return Later(ToNs(static_cast<double>(ops) * machine_.op_overhead), work_ns / spread_.shares);
}

int64_t SegmentDrafter::PassNs(int64_t bytes) const {
  return ToNs(static_cast<double>(bytes) / machine_.BytesPerSecond());
}

TimedStep SegmentDrafter::Start(AxisSet axes, CollectiveKind kind, int64_t bytes,
                                bool background) const {
  return {TimedStep::kStart, CollectiveNs(costs_, {axes, kind, bytes}, 0), 0, background, axes};
}

const LayerSegments& SegmentDrafter::Of(size_t layer) {
  const LayerDraft& of = draft_.layers[layer];
  const auto [known, is_new] = known_.try_emplace(of.calls.get());
  if (!is_new) return known->second;
  LayerSegments& made = known->second;
  const std::vector<LayerProfile>& layers = spread_.profile.layers;
  const LayerCalls& calls = *of.calls;
  made.forward = Add(Retimed(ForwardOf(calls, spread_)));
  made.backward = Add(Retimed(BackwardOf(calls, spread_)));
  const bool is_end = HasTied() && (layer == 0 || layer + 1 == layers.size());
  AddCopies(of, &made);
  AddSums(layers[layer], calls, is_end ? TiedBytes() : 0, &made);
  return made;
}

AxisSet SegmentDrafter::InMesh(AxisSet of_profile) const {
  AxisSet axes;
  for (const AxisId axis : of_profile) {
    axes |= mesh_.Find(draft_.mesh.name(axis)).AsSet();
  }
  return axes;
}

// Groups of the whole mesh may lie otherwise in machines than those of the profile's.
std::vector<TimedStep> SegmentDrafter::Retimed(const LayerSteps& of) const {
  std::vector<TimedStep> steps = of.steps;
  for (TimedStep& step : steps) {
    if (step.kind != TimedStep::kStart && step.kind != TimedStep::kWait) continue;
    GroupExchange exchange = of.exchanges[static_cast<size_t>(step.collective)];
    exchange.axes = step.axes = InMesh(exchange.axes);
    if (step.kind == TimedStep::kStart) step.ns = CollectiveNs(costs_, exchange, 0);
  }
  return steps;
}

void SegmentDrafter::AddCopies(const LayerDraft& of, LayerSegments* made) {
  std::vector<TimedStep> prepare;
  if (of.casts > 0) prepare.push_back({TimedStep::kRun, OpsNs(of.casts, of.casts_ns)});
  if (spread_.config.zero > 0 && is_cut_ && of.gathered_bytes > 0) {
    const TimedStep gather = Start(near_, CollectiveKind::kAllGather, of.gathered_bytes, true);
    if (gathers_in_turn()) {
      made->gather = Add({gather});
    } else {
      prepare.push_back(gather);
    }
  }
  if (!prepare.empty()) made->prepare = Add(std::move(prepare));
}

void SegmentDrafter::AddSums(const LayerProfile& of, const LayerCalls& calls, int64_t tied,
                             LayerSegments* made) {
  const bool in_pieces = spread_.config.zero > 0 && is_cut_;
  std::vector<TimedStep> steps;
  int64_t bytes = spread_.SummedBytes(of) - (sums_in_turn() ? 0 : tied);
  int64_t far_pieces = (spread_.SummedBytes(of) - tied) / spread_.shares;
  for (const GroupExchange& sum : calls.gradients) {
    const AxisSet axes = InMesh(sum.axes);
    if (in_pieces) {
      const int64_t pieces = sum.payload_bytes / spread_.shares;
      made->sums.push_back(Start(axes | far_, sum.kind, pieces, false));
      far_pieces -= pieces;
    } else {
      bytes -= sum.payload_bytes;
      steps.push_back(Start(axes | near_, sum.kind, sum.payload_bytes, true));
    }
  }
  if (is_cut_ && bytes > 0) {
    const auto kind = in_pieces ? CollectiveKind::kReduceScatter : CollectiveKind::kAllReduce;
    steps.push_back(Start(near_, kind, bytes, true));
  }
  if (!far_.empty() && far_pieces > 0) {
    made->sums.push_back(Start(far_, CollectiveKind::kAllReduce, far_pieces, false));
  }
  if (!steps.empty()) made->reduce = AddStarts(std::move(steps));
  if (!sums_in_turn()) return;
  if (made->reduce >= 0) {
    const auto params = static_cast<int64_t>(calls.params.size());
    // A sum reads two pieces and writes one.
    made->collect = Add({{TimedStep::kRun, OpsNs(params, PassNs(3 * of.grad_bytes))}});
  }
  if (!made->sums.empty()) made->pieces = AddStarts(made->sums);
}

// In the background.
int SegmentDrafter::AddStarts(std::vector<TimedStep> starts) {
  for (size_t i = 0; i < starts.size(); ++i) {
    starts[i].collective = static_cast<int>(i);
    starts[i].background = true;
  }
  return Add(std::move(starts));
}

int SegmentDrafter::AddUpdate(size_t rank, const std::vector<size_t>& layers) {
  std::vector<TimedStep> steps = {{TimedStep::kAwait}};
  int collectives = 0;
  const auto add = [&](TimedStep start) {
    if (start.axes.empty()) return;
    start.collective = collectives++;
    steps.push_back(start);
    steps.push_back({TimedStep::kWait, 0, start.collective, false, start.axes});
  };
  const auto add_number = [&](AxisSet axes) {
    add(Start(axes, CollectiveKind::kAllReduce, sizeof(double), false));
  };
  add_number(near_ | far_ | AxesOf(mesh_, {"pp"}));
  const bool has_tied = HasTied() && (rank == 0 || rank + 1 == spread_.parts->ranks.size());
  if (has_tied) {
    for (const TimedStep& sum : TiedSums()) add(sum);
  }
  for (const size_t layer : layers) {
    if (sums_in_turn()) break;
    for (const TimedStep& sum : Of(layer).sums) add(sum);
  }
  add_number(mesh_.AllAxes());
  LayerDraft all;
  for (const size_t layer : layers) all += draft_.layers[layer];
  int64_t ns = OpsNs(all.update_ops, all.update_ns);
  if (has_tied && rank > 0) {  // both ends step what they have in common
    const LayerDraft& embedding = draft_.layers.front();
    const double share = static_cast<double>(TiedBytes()) /
                         static_cast<double>(spread_.profile.layers.front().param_bytes);
    const int64_t whole = OpsNs(embedding.update_ops, embedding.update_ns);
    ns = Later(ns, static_cast<int64_t>(share * static_cast<double>(whole)));
  }
  steps.push_back({TimedStep::kRun, ns});
  return Add(std::move(steps));
}

bool SegmentDrafter::HasTied() const {
  const ModelProfile& profile = spread_.profile;
  return draft_.tied.elements > 0 && profile.has_embedding && profile.has_head;
}

int64_t SegmentDrafter::TiedBytes() const {
  return draft_.tied.elements * draft_.tied.element_bytes;
}

// Of what embedding and head have in common: between the two ends of the pipeline, then over ranks
// that hold other data, where that has not been done in turn.
std::vector<TimedStep> SegmentDrafter::TiedSums() const {
  std::vector<TimedStep> sums;
  const int64_t pieces = TiedBytes() / spread_.shares;
  if (spread_.config.pp > 1) {
    const int64_t ends[] = {0, (spread_.config.pp - 1) * spread_.pp_stride};
    const int64_t bytes = sums_in_turn() ? pieces : TiedBytes();
    const int64_t ns = ToNs(CollectiveSeconds(machine_, ends, CollectiveKind::kAllReduce, bytes));
    sums.push_back({TimedStep::kStart, ns, 0, false, AxesOf(mesh_, {"pp"})});
  }
  if (is_cut_ && !sums_in_turn()) {
    const bool in_pieces = spread_.config.zero > 0;
    const auto kind = in_pieces ? CollectiveKind::kReduceScatter : CollectiveKind::kAllReduce;
    sums.push_back(Start(near_, kind, TiedBytes(), false));
  }
  if (!far_.empty()) sums.push_back(Start(far_, CollectiveKind::kAllReduce, pieces, false));
  return sums;
}

}  // namespace mgc
