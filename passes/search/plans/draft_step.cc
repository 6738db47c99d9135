#include "passes/search/plans/draft_step.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

#include "passes/search/plans/draft_segments.h"

namespace mgc {
namespace {

StagedCall CallOf(int segment, size_t layer, int running = kAnyRunning) {
  return {segment, static_cast<int>(layer), {}, running};
}

class Drafter {
 public:
  Drafter(const DraftProfile& draft, const PlanSpread& spread, const Machine& machine)
      : spread_(spread),
        placement_(spread.checked.placement),
        segments_(draft, spread, machine),
        sums_(segments_.sums_in_turn()) {}

  DraftStep Run() {
    DraftStep draft;
    draft.mesh = segments_.mesh();
    draft.chunks.resize(spread_.parts->ranks.size());
    for (size_t s = 0; s < placement_.stages.size(); ++s) {
      const auto c = static_cast<size_t>(placement_.places[s].rank_class);
      draft.chunks[c].push_back(DraftChunk(s));
    }
    for (size_t c = 0; c < draft.chunks.size(); ++c) {
      if (segments_.gathers_ahead()) SetWaitsForCopies(&draft.chunks[c]);
      std::vector<size_t> layers;
      for (const StagedChunk& chunk : draft.chunks[c]) {
        const std::vector<size_t> more = spread_.LayersOf(static_cast<size_t>(chunk.stage));
        layers.insert(layers.end(), more.begin(), more.end());
      }
      draft.updates.push_back({{segments_.AddUpdate(c, layers), kNoLayer, {}, kAnyRunning}});
    }
    draft.segments = std::move(segments_).Take();
    return draft;
  }

 private:
  StagedChunk DraftChunk(size_t s) {
    const StageContent& content = placement_.stages[s];
    StagedChunk chunk;
    chunk.stage = static_cast<int>(s);
    chunk.first_layer = static_cast<int>(content.first_layer);
    chunk.num_layers = static_cast<int>(content.num_layers);
    chunk.has_embedding = content.has_embedding;
    chunk.has_head = content.has_head;
    chunk.frame_bytes = FrameBytes(s);
    std::vector<size_t> layers = spread_.LayersOf(s);
    for (const size_t layer : layers) {
      const int prepare = segments_.Of(layer).prepare;
      if (prepare >= 0) chunk.prepare.push_back(CallOf(prepare, layer));
    }
    chunk.forward = InTurns(layers, true);
    std::reverse(layers.begin(), layers.end());
    chunk.backward = InTurns(layers, false);
    AddLastBackward(&chunk);
    return chunk;
  }

  // Behind the last call of a layer its gradients are whole, or their pieces are.
  void AddLastBackward(StagedChunk* chunk) {
    std::map<int, size_t> last;  // by layer
    for (size_t i = 0; i < chunk->backward.size(); ++i) last[chunk->backward[i].layer] = i;
    int started = 0;
    for (size_t i = 0; i < chunk->backward.size(); ++i) {
      StagedCall call = chunk->backward[i];
      if (call.running != kAnyRunning) call.running += started;
      chunk->last_backward.push_back(call);
      const LayerSegments& segments = segments_.Of(static_cast<size_t>(call.layer));
      const int sums = sums_ ? segments.pieces : segments.reduce;
      if (last[call.layer] != i || sums < 0) continue;
      chunk->last_backward.push_back({sums, call.layer, {}, kAnyRunning});
      started += static_cast<int>(segments.sums.size());
    }
    if (chunk->last_backward.size() == chunk->backward.size()) chunk->last_backward.clear();
  }

  // A frame ends with the stream behind the last layer but one: what a stage hands to the next one
  // lies elsewhere.
  int64_t FrameBytes(size_t s) const {
    const bool ends_model = s + 1 == placement_.stages.size();
    const int64_t handed = ends_model ? 0 : spread_.profile.stream_bytes;
    return std::max<int64_t>(0, spread_.parts->stages[s].frame_bytes - handed);
  }

  // The next layer's parameters are gathered and the last one's gradients summed while a layer
  // computes; each waits for what is its own (passes/plan/stage/set_waits.h).
  std::vector<StagedCall> InTurns(const std::vector<size_t>& layers, bool forward) {
    std::vector<StagedCall> calls;
    int started = 0;
    std::vector<int> gathered(layers.size());  // starts up to a layer's gather, and its sum
    std::vector<int> summed(layers.size());
    const auto gather = [&](size_t i) {
      if (i >= layers.size() || segments_.Of(layers[i]).gather < 0) return;
      calls.push_back(CallOf(segments_.Of(layers[i]).gather, layers[i]));
      gathered[i] = ++started;
    };
    const auto collect = [&](size_t i) {
      if (summed[i] == 0) return;
      calls.push_back(CallOf(segments_.Of(layers[i]).collect, layers[i], started - summed[i]));
    };
    gather(0);
    for (size_t i = 0; i < layers.size(); ++i) {
      gather(i + 1);
      const LayerSegments& segments = segments_.Of(layers[i]);
      const int running = gathered[i] > 0 ? started - gathered[i] : kAnyRunning;
      calls.push_back(CallOf(forward ? segments.forward : segments.backward, layers[i], running));
      if (forward || !sums_) continue;
      if (segments.reduce >= 0) {
        calls.push_back(CallOf(segments.reduce, layers[i]));
        summed[i] = ++started;
      }
      if (i > 0) collect(i - 1);
    }
    if (!layers.empty()) collect(layers.size() - 1);
    return calls;
  }

  // All copies of a class are asked for before its first forward, which waits for them layer by
  // layer.
  void SetWaitsForCopies(std::vector<StagedChunk>* chunks) {
    int all = 0;
    for (const StagedChunk& chunk : *chunks) all += static_cast<int>(chunk.prepare.size());
    int made = 0;
    for (StagedChunk& chunk : *chunks) {
      for (StagedCall& call : chunk.forward) {
        if (segments_.Of(static_cast<size_t>(call.layer)).prepare < 0) continue;
        call.running = all - ++made;
      }
    }
  }

  const PlanSpread& spread_;
  const LayerPlacement& placement_;
  SegmentDrafter segments_;
  const bool sums_;
};

}  // namespace

DraftStep DraftStepOf(const DraftProfile& draft, const PlanSpread& spread, const Machine& machine) {
  return Drafter(draft, spread, machine).Run();
}

}  // namespace mgc
