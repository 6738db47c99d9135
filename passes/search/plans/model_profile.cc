#include "passes/search/plans/model_profile.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/types/optional.h"
#include "graph/base/status.h"
#include "passes/plan/forms/plan_forms.h"
#include "passes/plan/place_transients.h"
#include "passes/plan/time/cost.h"

namespace mgc {
namespace {

struct Played {
  int64_t ns = 0;        // until all is done
  int64_t queue_ns = 0;  // the communication queue is busy
  int64_t compute_ns = 0;
  int64_t transient_bytes = 0;
  int64_t workspace_bytes = 0;
};

// A segment alone, both queues free when it begins.
Played Play(const std::vector<TimedStep>& steps, size_t collectives) {
  Played played;
  int64_t queue_free = 0;
  std::vector<int64_t> done(collectives, 0);
  for (const TimedStep& step : steps) {
    const auto c = static_cast<size_t>(step.collective);
    switch (step.kind) {
      case TimedStep::kRun:
        played.ns = Later(played.ns, step.ns);
        played.compute_ns = Later(played.compute_ns, step.ns);
        break;
      case TimedStep::kStart:
        queue_free = Later(std::max(queue_free, played.ns), step.ns);
        done[c] = queue_free;
        played.queue_ns = Later(played.queue_ns, step.ns);
        break;
      case TimedStep::kWait:
        played.ns = std::max(played.ns, done[c]);
        break;
      case TimedStep::kAwait:
        break;
    }
  }
  return played;
}

// Reads a staged plan of one stage.
class Profiler {
 public:
  Profiler(const StagedPlan& staged, const Machine& machine)
      : staged_(staged),
        costs_{staged.mesh, machine, staged.stages},
        class_(staged.classes.front()),
        chunk_(class_.train.chunks.front()) {}

  ModelProfile Run() {
    profile_.has_embedding = chunk_.has_embedding;
    profile_.has_head = chunk_.has_head;
    const int count =
        chunk_.num_layers + (chunk_.has_embedding ? 1 : 0) + (chunk_.has_head ? 1 : 0);
    profile_.layers.resize(static_cast<size_t>(std::max(count, 1)));
    for (const StagedCall& call : chunk_.forward)
      AddCall(call, &LayerProfile::forward_ns, &LayerProfile::forward_queue_ns);
    for (const StagedCall& call : chunk_.backward)
      AddCall(call, &LayerProfile::backward_ns, &LayerProfile::backward_queue_ns);
    for (const StagedCall& call : class_.train.update) AddUpdate(call);
    profile_.stream_bytes = AlignUp(StreamBytes(staged_.segments, class_));
    AddFrames();
    AddBlocks();
    for (const StagedCall& call : chunk_.prepare) AddCopies(call);
    return std::move(profile_);
  }

 private:
  LayerProfile& Of(int layer) { return profile_.layers[profile_.PlaceOf(layer)]; }
  const Segment& SegmentOf(const StagedCall& call) const {
    return staged_.segments[static_cast<size_t>(call.segment)];
  }
  Played PlayCall(const StagedCall& call) {
    const auto found = played_.find(call.segment);
    if (found != played_.end()) return found->second;
    Segment segment = SegmentOf(call);
    Played played =
        Play(TimeSegment(costs_, segment, 0), static_cast<size_t>(segment.num_collectives));
    PlaceTransients(&segment);
    played.transient_bytes = segment.transient_bytes;
    played.workspace_bytes = WorkspaceBound(segment, staged_.mesh, costs_.machine.host);
    return played_.emplace(call.segment, played).first->second;
  }

  void AddCall(const StagedCall& call, int64_t LayerProfile::*phase_ns,
               int64_t LayerProfile::*queue_ns) {
    const Played played = PlayCall(call);
    LayerProfile of_call;
    of_call.*phase_ns = played.ns;
    of_call.compute_ns = played.compute_ns;
    of_call.*queue_ns = played.queue_ns;
    of_call.transient_bytes = played.transient_bytes;
    of_call.workspace_bytes = played.workspace_bytes;
    Of(call.layer) += of_call;
  }
  void AddUpdate(const StagedCall& call) {
    LayerProfile& layer = Of(call.layer);
    layer.update_ns = Later(layer.update_ns, PlayCall(call).compute_ns);
  }

  // A layer's part of the frame ends behind the stream that it leaves there, the last one's with
  // the frame.
  void AddFrames() {
    int64_t begin = 0;
    for (const StagedCall& call : chunk_.forward) {
      int64_t end = &call == &chunk_.forward.back() ? chunk_.frame_bytes : begin;
      for (size_t f = 0; f < call.bindings.size(); ++f) {
        const Formal& formal = SegmentOf(call).formals[f];
        const StagedBinding& binding = call.bindings[f];
        if (binding.base == StagedBase::kFrame && formal.region == Region::kOutput) {
          end = binding.offset + profile_.stream_bytes;
        }
      }
      Of(call.layer).frame_bytes += end - begin;
      begin = end;
    }
  }

  void AddBlocks() {
    for (const StagedBlock& held : class_.blocks) {
      const ParamBlock& block = staged_.blocks[static_cast<size_t>(held.block)];
      LayerProfile& layer = Of(held.layer);
      layer.param_bytes += block.param_bytes;
      layer.grad_bytes += block.grad_bytes;
      layer.state_bytes += block.state_bytes;
      layer.trained = layer.grad_bytes > 0 ? 1 : 0;
    }
  }

  void AddCopies(const StagedCall& call) {
    const Segment& segment = SegmentOf(call);
    for (const Slot& slot : segment.slots) {
      const Formal& formal = segment.formals[static_cast<size_t>(slot.formal)];
      if (formal.region == Region::kCopies) Of(call.layer).copy_bytes += slot.bytes;
    }
  }

  const StagedPlan& staged_;
  const CostModel costs_;
  const StagedClass& class_;
  const StagedChunk& chunk_;
  std::map<int, Played> played_;  // by segment
  ModelProfile profile_;
};

}  // namespace

LayerProfile& LayerProfile::operator+=(const LayerProfile& other) {
  forward_ns = Later(forward_ns, other.forward_ns);
  backward_ns = Later(backward_ns, other.backward_ns);
  compute_ns = Later(compute_ns, other.compute_ns);
  forward_queue_ns = Later(forward_queue_ns, other.forward_queue_ns);
  backward_queue_ns = Later(backward_queue_ns, other.backward_queue_ns);
  update_ns = Later(update_ns, other.update_ns);
  frame_bytes += other.frame_bytes;
  param_bytes += other.param_bytes;
  grad_bytes += other.grad_bytes;
  state_bytes += other.state_bytes;
  copy_bytes += other.copy_bytes;
  trained += other.trained;
  transient_bytes = std::max(transient_bytes, other.transient_bytes);
  workspace_bytes = std::max(workspace_bytes, other.workspace_bytes);
  return *this;
}

size_t ModelProfile::PlaceOf(int layer) const {
  const auto last = static_cast<int>(layers.size()) - 1;
  const int first = has_embedding ? kEmbeddingLayer : 0;
  return static_cast<size_t>(layer == kNoLayer ? last : std::clamp(layer - first, 0, last));
}

ParallelConfig ProfiledConfig(ParallelConfig config) {
  config.pp = 1;
  config.vp = 1;
  config.schedule = ScheduleKind::kOneFOneB;
  config.group_size = 0;
  config.zero = 0;
  config.zero_group = 0;
  config.reshard_after_forward = true;
  config.gradient_sums = DType::kF32;
  config.layout = LayoutFlags();
  config.world_size = config.tp * config.cp;
  config.global_batch_size = config.micro_batch_size;
  config.order = kDefaultAxisOrder;
  config.allow_replicated = true;
  return config;
}

absl::StatusOr<StagedPlan> StageModel(ModelCompiler& model, CompileOptions options) {
  absl::optional<StagedPlan> staged;
  options.evaluation = false;
  options.run.check = false;
  options.run.after_pass = [&staged](const FinishedPass& pass) {
    if (LevelOf(pass.form) != PassLevel::kStaged) return true;
    staged = std::get<StagedPlan>(pass.form);
    return false;
  };
  const absl::Status status = model.Compile(options).status();
  if (!staged.has_value()) return status;
  return *std::move(staged);
}

ModelProfile ProfileOf(const StagedPlan& staged, const Machine& machine) {
  return Profiler(staged, machine).Run();
}

absl::StatusOr<ModelProfile> ProfileModel(ModelCompiler& model, CompileOptions options) {
  LayerMap kept(0);
  options.kept = &kept;
  MGC_ASSIGN_OR_RETURN(const StagedPlan staged, StageModel(model, options));
  const ModelProfile few = ProfileOf(staged, options.machine);
  // A graph that names no layers has one.
  if (!kept.folds()) return few;
  ModelProfile profile = few;
  profile.layers.clear();
  if (few.has_embedding) profile.layers.push_back(few.layers.front());
  for (int layer = 0; layer < kept.num_layers(); ++layer) {
    profile.layers.push_back(few.layers[few.PlaceOf(kept.KeptFor(layer))]);
  }
  if (few.has_head) profile.layers.push_back(few.layers.back());
  return profile;
}

}  // namespace mgc
