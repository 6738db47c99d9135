#include "passes/allocate.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "graph/base/status.h"
#include "passes/formals.h"
#include "passes/layout.h"

namespace mgc {
namespace {

// First-fit in the given order of placement.
std::vector<int64_t> PackInOrder(const std::vector<Interval>& intervals,
                                 const std::vector<int>& order, int64_t* total) {
  std::vector<int64_t> offsets(intervals.size(), -1);
  *total = 0;
  for (int i : order) {
    const Interval& mine = intervals[i];
    std::vector<std::pair<int64_t, int64_t>> taken;
    for (size_t j = 0; j < intervals.size(); ++j) {
      const Interval& other = intervals[j];
      if (offsets[j] < 0 || other.end < mine.begin || mine.end < other.begin) continue;
      taken.emplace_back(offsets[j], offsets[j] + other.bytes);
    }
    std::sort(taken.begin(), taken.end());
    int64_t at = 0;
    for (const auto& [begin, end] : taken) {
      if (begin - at >= mine.bytes) break;
      at = std::max(at, end);
    }
    offsets[i] = at;
    *total = std::max(*total, at + mine.bytes);
  }
  return offsets;
}

// Lifetimes of a segment's transient slots, in instruction numbers. What a collective reads or
// writes is busy until it is waited for.
void PackTransients(Segment* segment) {
  std::vector<Interval> lives(segment->slots.size(), Interval{-1, -1, 0});
  std::vector<int> wait_at(static_cast<size_t>(segment->num_collectives),
                           static_cast<int>(segment->instrs.size()));
  for (size_t i = 0; i < segment->instrs.size(); ++i) {
    const Instr& instr = segment->instrs[i];
    if (instr.kind == InstrKind::kWait) wait_at[instr.collective] = static_cast<int>(i);
  }
  for (size_t i = 0; i < segment->instrs.size(); ++i) {
    const Instr& instr = segment->instrs[i];
    const int end =
        instr.kind == InstrKind::kStart ? wait_at[instr.collective] : static_cast<int>(i);
    const auto touch = [&](int slot) {
      Interval& life = lives[slot];
      if (life.begin < 0) life.begin = static_cast<int>(i);
      life.end = std::max(life.end, end);
    };
    for (int slot : instr.inputs) touch(slot);
    for (int slot : instr.outputs) touch(slot);
  }
  std::vector<Interval> transients;
  std::vector<int> slots;
  for (size_t s = 0; s < segment->slots.size(); ++s) {
    if (segment->slots[s].formal != 0 || lives[s].begin < 0) continue;
    lives[s].bytes = AlignUp(segment->slots[s].bytes);
    transients.push_back(lives[s]);
    slots.push_back(static_cast<int>(s));
  }
  const std::vector<int64_t> offsets = PackIntervals(transients, &segment->transient_bytes);
  for (size_t i = 0; i < slots.size(); ++i) segment->slots[slots[i]].offset = offsets[i];
}

// A free list over addresses that only grows its end.
class FirstFit {
 public:
  int64_t Take(int64_t bytes) {
    auto gap = gaps_.begin();
    while (gap->second - gap->first < bytes) ++gap;
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
  Ranges gaps_ = {{0, INT64_MAX}};  // no two touch
  int64_t peak_ = 0;
};

// Frame addresses relative to the frames' region; returns its size.
int64_t PlaceFrames(const std::vector<Chunk>& chunks, bool backward, Program* program) {
  FirstFit frames;
  std::map<std::pair<int, int64_t>, int64_t> open;
  for (Action& action : program->compute) {
    const auto key = std::make_pair(action.ref.chunk, action.ref.micro_batch);
    if (action.ref.kind == ActionKind::kForward) {
      const int64_t bytes = std::max(chunks[action.ref.chunk].frame_bytes, kSlotAlignment);
      action.frame = frames.Take(bytes);
      open[key] = action.frame;
      if (!backward) frames.Free(action.frame);
    } else if (action.ref.kind == ActionKind::kBackward) {
      action.frame = open.at(key);
      frames.Free(action.frame);
    }
  }
  return frames.peak();
}

class ClassAllocator {
 public:
  ClassAllocator(const Plan& plan, int pool, PlanClass* made)
      : plan_(plan), pool_(pool), made_(made) {}

  void Run() {
    LayBlocks();
    const int64_t stream = StreamBytes();
    links_ = Region(2 * stream, &made_->memory.boundaries);
    const int64_t train_frames = PlaceFrames(made_->chunks, true, &made_->train);
    const int64_t eval_frames = PlaceFrames(made_->eval_chunks, false, &made_->eval);
    const int64_t eval_bytes = AlignUp(eval_frames) + TransientBytes(true);
    frames_ = Region(std::max(train_frames, eval_bytes), &made_->memory.frames);
    boundaries_ = Region(pool_ * stream, &made_->memory.boundaries);
    stream_ = stream;
    // An evaluation keeps nothing for a backward: its transients lie where training has frames.
    eval_transient_ = frames_ + AlignUp(eval_frames);
    transient_ = Region(TransientBytes(false), &made_->memory.transient);
    BindAll();
    Shift(&made_->train);
    Shift(&made_->eval);
    made_->memory.peak = end_;
    ForEachCall([this](Call* call, bool) {
      int64_t& workspace = made_->memory.workspace;
      workspace = std::max(workspace, plan_.segments[call->segment].workspace_bytes);
    });
  }

 private:
  // The next region of the arena; its size is added to a purpose.
  int64_t Region(int64_t bytes, int64_t* purpose) {
    const int64_t begin = end_;
    end_ += AlignUp(bytes);
    *purpose += AlignUp(bytes);
    return begin;
  }

  void LayBlocks() {
    MemoryUse& memory = made_->memory;
    eval_globals_ = Region(made_->eval_global_bytes, &memory.transient);
    globals_ = Region(made_->global_bytes, &memory.transient);
    const int64_t grads = end_;
    for (HeldBlock& held : made_->blocks) {
      held.grad_base = Region(plan_.blocks[held.block].grad_bytes, &memory.grads);
    }
    made_->zeroed[0] = {globals_, globals_ + made_->zeroed[0].end};
    made_->zeroed[1] = {eval_globals_, eval_globals_ + made_->zeroed[1].end};
    made_->zeroed.push_back({grads, end_});
    for (HeldBlock& held : made_->blocks) {
      held.param_base = Region(plan_.blocks[held.block].param_bytes, &memory.params);
    }
    for (HeldBlock& held : made_->blocks) {
      held.state_base = Region(plan_.blocks[held.block].state_bytes, &memory.states);
    }
    for (NamedAddress& scalar : made_->scalars) scalar.address += globals_;
    for (NamedAddress& report : made_->reports) report.address += globals_;
    for (NamedAddress& report : made_->eval_reports) report.address += eval_globals_;
  }

  template <class Fn>
  void ForEachCall(const Fn& fn) {
    for (Chunk& chunk : made_->chunks) {
      for (Call& call : chunk.forward) fn(&call, false);
      for (Call& call : chunk.backward) fn(&call, false);
      for (Call& call : chunk.reduce) fn(&call, false);
    }
    for (Call& call : made_->update) fn(&call, false);
    for (Chunk& chunk : made_->eval_chunks) {
      for (Call& call : chunk.forward) fn(&call, true);
    }
    for (Call& call : made_->eval_update) fn(&call, true);
  }

  int64_t StreamBytes() {
    int64_t bytes = 0;
    ForEachCall([&](Call* call, bool) {
      const Segment& segment = plan_.segments[call->segment];
      for (const Slot& slot : segment.slots) {
        const std::string& formal = segment.formals[slot.formal];
        const bool boundary = formal == kInputFormal || formal == kOutputFormal ||
                              formal == kGradInputFormal || formal == kGradOutputFormal;
        if (boundary) bytes = std::max(bytes, AlignUp(slot.bytes));
      }
    });
    return bytes;
  }

  int64_t TransientBytes(bool of_eval) {
    int64_t bytes = 0;
    ForEachCall([&](Call* call, bool eval) {
      if (eval != of_eval) return;
      bytes = std::max(bytes, plan_.segments[call->segment].transient_bytes);
    });
    return bytes;
  }

  void BindAll() {
    ForEachCall([&](Call* call, bool eval) {
      const Segment& segment = plan_.segments[call->segment];
      for (size_t f = 0; f < segment.formals.size(); ++f) {
        Binding& binding = call->bindings[f];
        if (binding.base != BaseKind::kAbsolute) continue;
        binding.offset += BaseOf(segment.formals[f], call->layer, eval);
      }
    });
  }

  int64_t BaseOf(absl::string_view formal, int layer, bool eval) const {
    if (formal == kTransientFormal) return eval ? eval_transient_ : transient_;
    if (formal == kNormFormal) return globals_;
    if (formal == kGlobalFormal) return eval ? eval_globals_ : globals_;
    if (formal == kGradInputFormal || formal == kGradOutputFormal) return links_;
    if (formal == kParamFormal) return Held("", layer).param_base;
    if (formal == kGradFormal) return Held("", layer).grad_base;
    if (formal == kStateFormal) return Held("", layer).state_base;
    if (formal == kTiedParamFormal) return Held("tied", kNoLayer).param_base;
    if (formal == kTiedGradFormal) return Held("tied", kNoLayer).grad_base;
    if (formal == kTiedStateFormal) return Held("tied", kNoLayer).state_base;
    MGC_CHECK(absl::ConsumePrefix(&formal, "grads:")) << "unknown formal " << formal;
    return Held(formal, kNoLayer).grad_base;
  }

  // The block of a layer (`name` empty), or of a name.
  const HeldBlock& Held(absl::string_view name, int layer) const {
    for (const HeldBlock& held : made_->blocks) {
      const std::string& block = plan_.blocks[held.block].name;
      if (name.empty() ? held.layer == layer && block != "tied" : block == name) return held;
    }
    MGC_CHECK(false) << "class " << made_->coordinate << " holds no block " << name << " of layer "
                     << layer;
    return made_->blocks[0];
  }

  // From slot numbers and region offsets to addresses.
  void Shift(Program* program) {
    for (Action& action : program->compute) {
      if (action.frame >= 0) action.frame += frames_;
      for (int64_t* slot :
           {&action.input, &action.output, &action.grad_input, &action.grad_output}) {
        if (*slot >= 0) *slot = boundaries_ + *slot * stream_;
      }
    }
    for (Transfer& transfer : program->transfers) {
      transfer.address = boundaries_ + transfer.address * stream_;
    }
  }

  const Plan& plan_;
  const int pool_;
  PlanClass* made_;
  int64_t end_ = 0;
  int64_t globals_ = 0;
  int64_t eval_globals_ = 0;
  int64_t links_ = 0;
  int64_t frames_ = 0;
  int64_t boundaries_ = 0;
  int64_t transient_ = 0;
  int64_t eval_transient_ = 0;
  int64_t stream_ = 0;
};

}  // namespace

std::vector<int64_t> PackIntervals(const std::vector<Interval>& intervals, int64_t* total) {
  std::vector<int> by_begin(intervals.size());
  std::iota(by_begin.begin(), by_begin.end(), 0);
  std::vector<int> by_size = by_begin;
  std::stable_sort(by_begin.begin(), by_begin.end(),
                   [&](int a, int b) { return intervals[a].begin < intervals[b].begin; });
  std::stable_sort(by_size.begin(), by_size.end(),
                   [&](int a, int b) { return intervals[a].bytes > intervals[b].bytes; });
  int64_t other_total;
  std::vector<int64_t> offsets = PackInOrder(intervals, by_begin, total);
  std::vector<int64_t> other = PackInOrder(intervals, by_size, &other_total);
  if (other_total >= *total) return offsets;
  *total = other_total;
  return other;
}

void Allocate(const std::vector<int>& pools, Plan* plan) {
  for (Segment& segment : plan->segments) {
    PackTransients(&segment);
    segment.workspace_bytes = WorkspaceBound(segment, plan->mesh);
  }
  for (size_t c = 0; c < plan->classes.size(); ++c) {
    ClassAllocator(*plan, pools[c], &plan->classes[c]).Run();
  }
}

absl::Status CheckFits(const Plan& plan) {
  std::string errors;
  for (const PlanClass& c : plan.classes) {
    const int64_t needed = c.memory.peak + c.memory.workspace;
    if (needed <= plan.machine.memory) continue;
    absl::StrAppend(&errors, errors.empty() ? "" : "\n", "error: pipeline rank ", c.coordinate,
                    " needs ", needed, " bytes, a device of ", plan.machine.name, " has ",
                    plan.machine.memory,
                    " [R8]; more --tp, --pp, --zero 1 or --recompute full need less");
  }
  return errors.empty() ? absl::OkStatus() : absl::InvalidArgumentError(errors);
}

}  // namespace mgc
