// memory_v1, v2.

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "graph/ir/model_layers.h"
#include "graph/verify/common/address_map.h"
#include "graph/verify/memory/memory_internal.h"

namespace mgc {
namespace {

std::string LayerName(int layer) {
  return layer == kEmbeddingLayer ? "the embedding" : absl::StrCat("layer ", layer);
}

class RegionCheck {
 public:
  RegionCheck(const StepTables& tables, const StepClass& walk, Diagnostics* findings)
      : tables_(tables),
        walk_(walk),
        place_(absl::StrCat("class ", walk.plan_class->coordinate,
                            tables.eval ? ", evaluation" : ", training")),
        findings_(*findings) {}

  void Run() {
    AddBlocks(false);
    AddBoundaries();
    CheckZeroed();
    AddBlocks(true);
    AddCalls();
    CheckScratch();
    RunActions();
  }

 private:
  using LiveRanges = AddressMap<std::string>;

  // An evaluation may use what only a training step's gradients have.
  void AddBlocks(bool grads) {
    if (tables_.eval && grads) return;
    for (NamedRange& block : BlockRanges(tables_.plan, *walk_.plan_class)) {
      if ((block.name[0] == 'g') != grads || block.range.begin >= block.range.end) continue;
      Add("memory_v1", std::move(block));
    }
  }

  void Add(absl::string_view label, NamedRange added) {
    if (const LiveRanges::Entry* other = live_.Find(added.range)) {
      findings_.Add(label, place_,
                    absl::StrCat(added.name, ", ", ToString(added.range), ", overlaps ",
                                 other->value, ", ", ToString(other->range)));
      return;
    }
    live_.Put(added.range, std::move(added.name));
  }

  // Only gradients and values of the step are zeroed.
  void CheckZeroed() {
    for (const Range& range : ZeroedRanges(*walk_.plan_class, tables_.eval)) {
      const LiveRanges::Entry* other = live_.Find(range);
      if (other == nullptr) continue;
      findings_.Add("memory_v1", place_,
                    absl::StrCat("every step zeroes ", ToString(range), ", which overlaps ",
                                 other->value, ", ", ToString(other->range)));
    }
  }

  // What calls keep for the step lies in the block that their formal names, or in none. No layer's
  // working copies are another's: a call would read what that one's parameters say.
  void AddCalls() {
    std::vector<Range> kept;
    std::map<std::string, std::vector<Range>> copies;
    std::map<int64_t, int64_t> in_blocks;
    for (const StepAction* action : ProjectedActions(tables_, walk_)) {
      const FixedRanges fixed = FixedRangesOf(tables_.plan, *action->calls);
      kept.insert(kept.end(), fixed.kept.begin(), fixed.kept.end());
      for (const auto& [owner, ranges] : fixed.copies) {
        std::vector<Range>& all = copies[owner];
        all.insert(all.end(), ranges.begin(), ranges.end());
      }
      for (const auto& [begin, end] : fixed.in_blocks) {
        in_blocks[begin] = std::max(in_blocks[begin], end);
      }
      const ActionRef& ref = action->action->ref;
      scratch_[{ref.kind, ref.kind == ActionKind::kUpdate ? 0 : ref.chunk}] = fixed.scratch;
    }
    for (const Range& range : Merged(std::move(kept))) {
      Add("memory_v1", {"a value of the step", range});
    }
    for (auto& [owner, ranges] : copies) {
      for (const Range& range : Merged(std::move(ranges))) {
        const bool is_number = absl::ascii_isdigit(static_cast<unsigned char>(owner[0]));
        const std::string of = is_number ? absl::StrCat("layer ", owner) : owner;
        Add("memory_v1", {absl::StrCat("working copies of ", of), range});
      }
    }
    CheckInBlocks(in_blocks);
  }

  // `in_blocks`: FixedRanges of all calls. Blocks that begin where another does are empty.
  void CheckInBlocks(const std::map<int64_t, int64_t>& in_blocks) {
    std::map<int64_t, NamedRange> blocks;
    for (NamedRange& block : BlockRanges(tables_.plan, *walk_.plan_class)) {
      NamedRange& largest = blocks.try_emplace(block.range.begin, block).first->second;
      if (block.range.end > largest.range.end) largest = std::move(block);
    }
    for (const auto& [begin, end] : in_blocks) {
      const auto block = blocks.find(begin);
      if (block == blocks.end() || end <= block->second.range.end) continue;
      findings_.Add("memory_v1", place_,
                    absl::StrCat(block->second.name, ", ", ToString(block->second.range),
                                 ", are used up to ", end));
    }
  }

  // Inboxes and outboxes of all micro-batches.
  void AddBoundaries() {
    std::vector<Range> boundaries = HandedOver(tables_, walk_);
    for (const StepTransfer& walk : walk_.transfers) {
      const Transfer& transfer = *walk.transfer;
      boundaries.push_back({transfer.address, transfer.address + transfer.bytes});
    }
    for (const Range& range : Merged(std::move(boundaries))) {
      Add("memory_v2", {"an inbox or outbox", range});
    }
  }

  void CheckScratch() {
    for (const auto& [key, ranges] : scratch_) {
      for (const Range& range : ranges) {
        const LiveRanges::Entry* other = live_.Find(range);
        if (other == nullptr) continue;
        findings_.Add("memory_v2", place_,
                      absl::StrCat("scratch of ", LetterOf(key.first), " of chunk ", key.second,
                                   ", ", ToString(range), ", overlaps ", other->value, ", ",
                                   ToString(other->range)));
      }
    }
  }

  // Frames from forward to backward, in the order of computation.
  void RunActions() {
    for (const StepAction& walk : walk_.actions) {
      const Action& action = *walk.action;
      const ActionRef& ref = action.ref;
      const std::string name = NameOf(ref, *walk_.chunks);
      Range frame;
      if (ref.kind == ActionKind::kForward && action.frame >= 0) {
        const Chunk& chunk = (*walk_.chunks)[static_cast<size_t>(ref.chunk)];
        frame = {action.frame, action.frame + chunk.frame_bytes};
        if (chunk.frame_bytes > 0) Add("memory_v2", {absl::StrCat("the frame of ", name), frame});
      }
      const bool update = ref.kind == ActionKind::kUpdate;
      for (const Range& range : scratch_[{ref.kind, update ? 0 : ref.chunk}]) {
        const LiveRanges::Entry* other = live_.Find(range);
        if (other == nullptr || other->value.compare(0, 9, "the frame") != 0) continue;
        findings_.Add("memory_v2", place_,
                      absl::StrCat("scratch of ", name, ", ", ToString(range), ", overlaps ",
                                   other->value, ", ", ToString(other->range)));
      }
      EndFrame(action, frame);
    }
  }

  void EndFrame(const Action& action, const Range& frame) {
    const ActionRef& ref = action.ref;
    if (ref.kind == ActionKind::kForward && frame.begin < frame.end) {
      if (tables_.eval) {
        Remove(frame);
      } else {
        frames_[{ref.chunk, ref.micro_batch}] = frame;
      }
    }
    if (ref.kind != ActionKind::kBackward) return;
    const auto it = frames_.find({ref.chunk, ref.micro_batch});
    if (it == frames_.end()) return;
    Remove(it->second);
    frames_.erase(it);
  }

  // Where it has been added: not when it overlapped another.
  void Remove(const Range& frame) {
    const LiveRanges::Entry* found = live_.Find(frame);
    if (found != nullptr && Equal(found->range, frame)) live_.Erase(frame);
  }

  const StepTables& tables_;
  const StepClass& walk_;
  const std::string place_;
  Diagnostics& findings_;
  LiveRanges live_;                                                   // names of what is in use now
  std::map<std::pair<ActionKind, int>, std::vector<Range>> scratch_;  // by kind and chunk
  std::map<std::pair<int, int64_t>, Range> frames_;                   // by chunk and micro-batch
};

}  // namespace

std::vector<NamedRange> BlockRanges(const Plan& plan, const PlanClass& plan_class) {
  std::vector<NamedRange> ranges;
  for (const HeldBlock& held : plan_class.blocks) {
    const ParamBlock& block = plan.blocks[static_cast<size_t>(held.block)];
    const std::string of = absl::StrCat(" of ", block.name, ", ", LayerName(held.layer));
    ranges.push_back(
        {absl::StrCat("params", of), {held.param_base, held.param_base + block.param_bytes}});
    ranges.push_back(
        {absl::StrCat("grads", of), {held.grad_base, held.grad_base + block.grad_bytes}});
    ranges.push_back(
        {absl::StrCat("states", of), {held.state_base, held.state_base + block.state_bytes}});
  }
  return ranges;
}

bool IsScratch(const Segment& segment, size_t formal) {
  return formal == 0 || IsBoundary(segment.formals[formal].region);
}

FixedRanges FixedRangesOf(const Plan& plan, const std::vector<Call>& calls) {
  FixedRanges fixed;
  const int layers = plan.model.num_layers();
  for (const Call& call : calls) {
    const Segment& segment = plan.segments[static_cast<size_t>(call.segment)];
    for (const Instr& instr : segment.instrs) {
      for (const std::vector<int>* list : {&instr.inputs, &instr.outputs}) {
        for (int number : *list) {
          const Slot& slot = segment.slots[static_cast<size_t>(number)];
          const size_t formal = static_cast<size_t>(slot.formal);
          const Binding& binding = call.bindings[formal];
          if (binding.base != BaseKind::kAbsolute) continue;
          const int64_t begin = binding.offset + slot.offset;
          if (IsOfBlock(segment.formals[formal].region)) {
            int64_t& end = fixed.in_blocks[binding.offset];
            end = std::max(end, begin + slot.bytes);
            continue;
          }
          const Range range = {begin, begin + slot.bytes};
          const std::string& block = segment.formals[formal].block;
          if (segment.formals[formal].region == Region::kCopies) {
            fixed.copies[block.empty() ? BlockOfLayer(call.layer, layers) : block].push_back(range);
          } else {
            (IsScratch(segment, formal) ? fixed.scratch : fixed.kept).push_back(range);
          }
        }
      }
    }
  }
  fixed.kept = Merged(std::move(fixed.kept));
  fixed.scratch = Merged(std::move(fixed.scratch));
  return fixed;
}

void CheckRegions(const StepTables& tables, Diagnostics* findings) {
  for (const StepClass& walk : tables.classes) RegionCheck(tables, walk, findings).Run();
}

}  // namespace mgc
