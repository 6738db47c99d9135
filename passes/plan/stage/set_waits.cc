#include "passes/plan/stage/set_waits.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>

#include "graph/ir/model_layers.h"
#include "graph/plan/instr_collective.h"
#include "passes/plan/stage/value_places.h"

namespace mgc {
namespace {

class WaitSetter {
 public:
  WaitSetter(const SegmentFolder& folder, int num_layers)
      : folder_(folder), num_layers_(num_layers) {}

  void Run(std::vector<StagedChunk>* chunks) {
    for (const StagedChunk& chunk : *chunks) {
      for (const StagedCall& call : chunk.prepare) {
        const int64_t starts = BackgroundStartsOf(folder_, call);
        prepared_ += starts;
        if (starts > 0) copies_[BlockOfLayer(call.layer, num_layers_)] = prepared_;
      }
    }
    for (StagedChunk& chunk : *chunks) {
      const int64_t after_forward = SetOf(0, &chunk.forward);
      // The last micro-batch has one of them, and its first backward may be its last.
      SetOf(after_forward, &chunk.backward);
      SetOf(after_forward, &chunk.last_backward);
    }
  }

 private:
  // Of a list; `awaited`: collectives of `prepare` that are waited for before it. Returns them
  // behind it.
  int64_t SetOf(int64_t awaited, std::vector<StagedCall>* calls) const {
    int64_t started = 0;              // in this list, in the background
    int64_t awaited_here = 0;         // of them
    std::map<int, int64_t> of_layer;  // starts up to the latest of a layer's
    for (StagedCall& call : *calls) {
      const int64_t copies = CopiesReadBy(call);
      const auto own = of_layer.find(call.layer);
      const int64_t here = WorksInTurn(call) && own != of_layer.end() ? own->second : 0;
      int64_t running = kAnyRunning;
      if (copies > awaited) running = prepared_ + started - copies;
      if (here > awaited_here) {
        const int64_t after = started - here;
        running = running == kAnyRunning ? after : std::min(running, after);
      }
      call.running = static_cast<int>(running);
      awaited = std::max(awaited, copies);
      awaited_here = std::max(awaited_here, here);
      const int64_t starts = BackgroundStartsOf(folder_, call);
      started += starts;
      if (starts > 0) of_layer[call.layer] = started;
    }
    return awaited;
  }

  // Of the collectives of `prepare`, those up to the last that makes what the call reads.
  int64_t CopiesReadBy(const StagedCall& call) const {
    int64_t needed = 0;
    for (const Formal& formal : folder_.segment(call.segment).formals) {
      if (formal.region != Region::kCopies) continue;
      const std::string own = BlockOfLayer(call.layer, num_layers_);
      const auto found = copies_.find(formal.block.empty() ? own : formal.block);
      if (found != copies_.end()) needed = std::max(needed, found->second);
    }
    return needed;
  }

  bool WorksInTurn(const StagedCall& call) const {
    const std::vector<Formal>& formals = folder_.segment(call.segment).formals;
    return std::any_of(formals.begin(), formals.end(),
                       [](const Formal& formal) { return IsInTurn(formal.region); });
  }

  const SegmentFolder& folder_;
  const int num_layers_;
  int64_t prepared_ = 0;                   // collectives that all `prepare` lists start
  std::map<std::string, int64_t> copies_;  // by BlockOfLayer: up to those of its copies
};

}  // namespace

int64_t BackgroundStartsOf(const SegmentFolder& folder, const StagedCall& call) {
  const std::vector<bool> waited_for = WaitedFor(folder.segment(call.segment));
  return std::count(waited_for.begin(), waited_for.end(), false);
}

void SetWaits(const SegmentFolder& folder, int num_layers, std::vector<StagedChunk>* chunks) {
  WaitSetter(folder, num_layers).Run(chunks);
}

}  // namespace mgc
