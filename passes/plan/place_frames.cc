#include "passes/plan/place_frames.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "graph/plan/plan_check.h"

namespace mgc {
namespace {

// kMaxPlanBytes of room, from which bytes are taken and given back.
class FirstFit {
 public:
  // -1 where no gap has the room.
  int64_t Take(int64_t bytes) {
    const auto gap = std::find_if(gaps_.begin(), gaps_.end(), [bytes](const auto& free) {
      return free.second - free.first >= bytes;
    });
    if (gap == gaps_.end()) return -1;
    const auto [at, end] = *gap;
    gaps_.erase(gap);
    if (at + bytes < end) gaps_.emplace(at + bytes, end);
    taken_.emplace(at, at + bytes);
    peak_ = std::max(peak_, at + bytes);
    return at;
  }
  // Nothing happens where nothing is taken.
  void Free(int64_t at) {
    const auto taken = taken_.find(at);
    if (taken == taken_.end()) return;
    auto gap = gaps_.emplace(at, taken->second).first;
    taken_.erase(taken);
    if (gap != gaps_.begin() && std::prev(gap)->second == at) JoinNext(--gap);
    if (std::next(gap) != gaps_.end() && std::next(gap)->first == gap->second) JoinNext(gap);
  }
  int64_t peak() const { return peak_; }

 private:
  using Ranges = std::map<int64_t, int64_t>;  // begin -> end
  void JoinNext(Ranges::iterator gap) {
    gap->second = std::next(gap)->second;
    gaps_.erase(std::next(gap));
  }

  Ranges taken_;
  Ranges gaps_ = {{0, kMaxPlanBytes}};  // no two touch
  int64_t peak_ = 0;
};

}  // namespace

Frames PlaceFrames(const std::vector<StagedChunk>& chunks, bool backward,
                   const OrderedProgram& program) {
  FirstFit fit;
  Frames frames;
  std::map<std::pair<int, int64_t>, int64_t> open;
  for (const OrderedAction& action : program.compute) {
    const auto key = std::make_pair(action.ref.chunk, action.ref.micro_batch);
    int64_t frame = -1;
    if (action.ref.kind == ActionKind::kForward) {
      frame = fit.Take(std::max(chunks[action.ref.chunk].frame_bytes, kSlotAlignment));
      if (frame < 0) return {{}, kMaxPlanBytes + 1};
      open[key] = frame;
      if (!backward) fit.Free(frame);
    } else if (action.ref.kind == ActionKind::kBackward) {
      frame = open.at(key);
      fit.Free(frame);
    }
    frames.at.push_back(frame);
  }
  frames.bytes = fit.peak();
  return frames;
}

}  // namespace mgc
