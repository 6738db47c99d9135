#include "passes/plan/allocate.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "passes/plan/value_places.h"

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

// Frames of a program's actions, by action: relative to the frames' region, -1 where there is none.
struct Frames {
  std::vector<int64_t> at;
  int64_t bytes = 0;  // size of the region
};

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

BaseKind BaseKindOf(StagedBase base) {
  switch (base) {
    case StagedBase::kRegion:
      break;
    case StagedBase::kFrame:
      return BaseKind::kFrame;
    case StagedBase::kInput:
      return BaseKind::kInput;
    case StagedBase::kOutput:
      return BaseKind::kOutput;
    case StagedBase::kGradInput:
      return BaseKind::kGradInput;
    case StagedBase::kGradOutput:
      return BaseKind::kGradOutput;
  }
  return BaseKind::kAbsolute;
}

std::vector<NamedAddress> AddressesOf(const std::vector<NamedOffset>& offsets, int64_t base) {
  std::vector<NamedAddress> addresses;
  addresses.reserve(offsets.size());
  for (const NamedOffset& named : offsets) {
    addresses.push_back({named.name, base + named.offset});
  }
  return addresses;
}

// Lays out the arena of one class and gives everything in it its address.
class ClassAllocator {
 public:
  // Takes segments and blocks from `plan`.
  ClassAllocator(const Plan& plan, const StagedClass& staged, const OrderedClass& ordered,
                 PlanClass* made)
      : plan_(plan), staged_(staged), ordered_(ordered), made_(made) {}

  void Run() {
    made_->coordinate = staged_.coordinate;
    LayBlocks();
    stream_ = StreamBytes();
    links_ = Region(2 * stream_, &made_->memory.boundaries);
    const Frames train = PlaceFrames(staged_.train.chunks, true, ordered_.train);
    const Frames eval = PlaceFrames(staged_.eval.chunks, false, ordered_.eval);
    const int64_t eval_bytes = AlignUp(eval.bytes) + TransientBytes(staged_.eval);
    frames_ = Region(std::max(train.bytes, eval_bytes), &made_->memory.frames);
    boundaries_ = Region(ordered_.pool * stream_, &made_->memory.boundaries);
    // An evaluation keeps nothing for a backward: its transients lie where training has frames.
    eval_transient_ = frames_ + AlignUp(eval.bytes);
    transient_ = Region(TransientBytes(staged_.train), &made_->memory.transient);
    made_->chunks = Bound(staged_.train.chunks, false);
    made_->update = Bound(staged_.train.update, false);
    made_->eval_chunks = Bound(staged_.eval.chunks, true);
    made_->eval_update = Bound(staged_.eval.update, true);
    made_->train = Placed(ordered_.train, train);
    made_->eval = Placed(ordered_.eval, eval);
    made_->memory.peak = end_;
    ForEachCall([this](const StagedCall& call) {
      int64_t& workspace = made_->memory.workspace;
      workspace = std::max(workspace, plan_.segments[call.segment].workspace_bytes);
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
    for (const StagedBlock& held : staged_.blocks) {
      made_->blocks.push_back({held.block, held.layer, held.owner, 0, 0, 0});
    }
    eval_globals_ = Region(staged_.eval.global_bytes, &memory.transient);
    globals_ = Region(staged_.train.global_bytes, &memory.transient);
    const int64_t grads = end_;
    for (HeldBlock& held : made_->blocks) {
      held.grad_base = Region(plan_.blocks[held.block].grad_bytes, &memory.grads);
    }
    made_->zeroed = {{globals_, globals_ + staged_.train.zeroed_global_bytes},
                     {eval_globals_, eval_globals_ + staged_.eval.zeroed_global_bytes},
                     {grads, end_}};
    for (HeldBlock& held : made_->blocks) {
      held.param_base = Region(plan_.blocks[held.block].param_bytes, &memory.params);
    }
    for (HeldBlock& held : made_->blocks) {
      held.state_base = Region(plan_.blocks[held.block].state_bytes, &memory.states);
    }
    made_->global_bytes = staged_.train.global_bytes;
    made_->eval_global_bytes = staged_.eval.global_bytes;
    made_->scalars = AddressesOf(staged_.train.scalars, globals_);
    made_->reports = AddressesOf(staged_.train.reports, globals_);
    made_->eval_reports = AddressesOf(staged_.eval.reports, eval_globals_);
  }

  template <class Fn>
  static void ForEachCall(const StagedStep& step, const Fn& fn) {
    for (const StagedChunk& chunk : step.chunks) {
      for (const auto* calls : {&chunk.forward, &chunk.backward, &chunk.reduce}) {
        for (const StagedCall& call : *calls) fn(call);
      }
    }
    for (const StagedCall& call : step.update) fn(call);
  }
  template <class Fn>
  void ForEachCall(const Fn& fn) const {
    ForEachCall(staged_.train, fn);
    ForEachCall(staged_.eval, fn);
  }

  int64_t StreamBytes() const {
    int64_t bytes = 0;
    ForEachCall([&](const StagedCall& call) {
      const Segment& segment = plan_.segments[call.segment];
      for (const Slot& slot : segment.slots) {
        const bool boundary = IsBoundary(segment.formals[slot.formal].region);
        if (boundary) bytes = std::max(bytes, AlignUp(slot.bytes));
      }
    });
    return bytes;
  }

  int64_t TransientBytes(const StagedStep& step) const {
    int64_t bytes = 0;
    ForEachCall(step, [&](const StagedCall& call) {
      bytes = std::max(bytes, plan_.segments[call.segment].transient_bytes);
    });
    return bytes;
  }

  std::vector<Chunk> Bound(const std::vector<StagedChunk>& staged, bool eval) const {
    std::vector<Chunk> chunks;
    for (const StagedChunk& from : staged) {
      Chunk chunk;
      chunk.stage = from.stage;
      chunk.first_layer = from.first_layer;
      chunk.num_layers = from.num_layers;
      chunk.has_embedding = from.has_embedding;
      chunk.has_head = from.has_head;
      chunk.forward = Bound(from.forward, eval);
      chunk.backward = Bound(from.backward, eval);
      chunk.reduce = Bound(from.reduce, eval);
      chunk.frame_bytes = from.frame_bytes;
      chunks.push_back(std::move(chunk));
    }
    return chunks;
  }

  std::vector<Call> Bound(const std::vector<StagedCall>& staged, bool eval) const {
    std::vector<Call> calls;
    for (const StagedCall& from : staged) {
      const std::vector<Formal>& formals = plan_.segments[from.segment].formals;
      Call call{from.segment, from.layer, {}};
      for (size_t f = 0; f < from.bindings.size(); ++f) {
        const auto [base, offset] = from.bindings[f];
        call.bindings.push_back({BaseKindOf(base), offset});
        if (base != StagedBase::kRegion) continue;
        call.bindings[f].offset += BaseAt(formals[f], from.layer, eval);
      }
      calls.push_back(std::move(call));
    }
    return calls;
  }

  int64_t BaseAt(const Formal& formal, int layer, bool eval) const {
    switch (formal.region) {
      case Region::kTransient:
        return eval ? eval_transient_ : transient_;
      case Region::kGlobals:
        return eval ? eval_globals_ : globals_;
      case Region::kNorm:
        return globals_;
      case Region::kParams:
      case Region::kGrads:
      case Region::kStates: {
        const HeldBlock* held = FindHeld(plan_, *made_, formal.block, layer);
        MGC_CHECK(held != nullptr) << "class " << made_->coordinate << " holds no block for "
                                   << ToString(formal) << " of layer " << layer;
        return BlockBase(*held, formal.region);
      }
      case Region::kGradInput:
      case Region::kGradOutput:
        return links_;
      case Region::kFrame:
      case Region::kInput:
      case Region::kOutput:
        break;
    }
    MGC_CHECK(false) << ToString(formal) << " has no fixed address";
    return 0;
  }

  int64_t SlotAddress(int64_t slot) const { return slot < 0 ? -1 : boundaries_ + slot * stream_; }

  Program Placed(const OrderedProgram& ordered, const Frames& frames) const {
    Program program;
    for (size_t i = 0; i < ordered.compute.size(); ++i) {
      const OrderedAction& from = ordered.compute[i];
      const int64_t frame = frames.at[i] < 0 ? -1 : frames_ + frames.at[i];
      program.compute.push_back({from.ref, frame, SlotAddress(from.input), SlotAddress(from.output),
                                 SlotAddress(from.grad_input), SlotAddress(from.grad_output),
                                 from.waits, from.waits_for_reductions});
    }
    for (const OrderedTransfer& from : ordered.transfers) {
      program.transfers.push_back({from.ref, SlotAddress(from.slot), from.bytes, from.peer,
                                   from.anchor, from.issued, from.after, from.after_transfers});
    }
    return program;
  }

  const Plan& plan_;
  const StagedClass& staged_;
  const OrderedClass& ordered_;
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

Plan Allocate(OrderedPlan ordered) {
  Plan plan;
  plan.mesh = ordered.staged.mesh;
  plan.segments = std::move(ordered.staged.segments);
  plan.blocks = std::move(ordered.staged.blocks);
  plan.predicted_step_ns = ordered.predicted_step_ns;
  plan.notes = std::move(ordered.staged.notes);
  plan.stages = std::move(ordered.staged.stages);
  for (Segment& segment : plan.segments) {
    PackTransients(&segment);
    segment.workspace_bytes = WorkspaceBound(segment, plan.mesh);
  }
  plan.classes.resize(ordered.classes.size());
  for (size_t c = 0; c < plan.classes.size(); ++c) {
    ClassAllocator(plan, ordered.staged.classes[c], ordered.classes[c], &plan.classes[c]).Run();
  }
  return plan;
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
