// order_v1, v2, v5.

#include <algorithm>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "graph/verify/order/order_internal.h"

namespace mgc {
namespace {

// The end of what a merged list touches.
int64_t EndOf(const std::vector<Range>& ranges) { return ranges.empty() ? 0 : ranges.back().end; }

// Whether a merged list is a bundle of `bytes`: from its first byte to its last but for the room
// between values, each of which begins at the next multiple of the alignment.
bool IsBundle(const std::vector<Range>& ranges, int64_t bytes) {
  int64_t at = 0;
  for (const Range& range : ranges) {
    if (range.begin != AlignUp(at)) return false;
    at = range.end;
  }
  return !ranges.empty() && at == bytes;
}

// By chunk: what its forward touches, its backward, and both: a bundle that forward takes may have
// values that backward alone reads.
struct ChunkFootprints {
  Footprint forward;
  Footprint backward;
  Footprint both;

  const Footprint& Of(bool of_forward, bool taken) const {
    if (!of_forward) return backward;
    return taken ? both : forward;
  }
};

// A stage takes all of what another of its class leaves in place, as transfers do: nothing less,
// nothing in parts. (That both name one address is plan_c20.) Empty if so.
std::string WhatIsHandedOver(const StepTables& tables, const StepClass& walk, const ActionRef& ref,
                             const std::vector<ChunkFootprints>& footprints) {
  const absl::optional<ActionRef> next =
      NeighbourInPlace(tables.plan.stages, *walk.chunks, ref, true);
  if (!next.has_value()) return "";
  const bool forward = ref.kind == ActionKind::kForward;
  const std::vector<Range>& left = footprints[static_cast<size_t>(ref.chunk)]
                                       .Of(forward, false)
                                       .Of(forward ? BaseKind::kOutput : BaseKind::kGradOutput);
  const std::vector<Range>& taken = footprints[static_cast<size_t>(next->chunk)]
                                        .Of(forward, true)
                                        .Of(forward ? BaseKind::kInput : BaseKind::kGradInput);
  if (left.empty() && taken.empty()) return "";
  if (IsBundle(left, EndOf(left)) && IsBundle(taken, EndOf(left))) return "";
  return absl::StrCat(NameOf(ref, *walk.chunks), " leaves ", EndOf(left), " bytes in place, ",
                      NameOf(*next, *walk.chunks), " takes ", EndOf(taken));
}

// Whether a call only moves what its layer holds in turn with its neighbours: it takes nothing from
// them, leaves them nothing, and keeps nothing for backward.
bool OnlyTakesTurn(const Plan& plan, const Call& call) {
  const std::vector<Formal>& formals = plan.segments[static_cast<size_t>(call.segment)].formals;
  const auto in_turn = [](const Formal& formal) { return IsInTurn(formal.region); };
  return std::any_of(formals.begin(), formals.end(), in_turn) &&
         std::none_of(formals.begin(), formals.end(), [](const Formal& formal) {
           return IsBoundary(formal.region) || formal.region == Region::kFrame;
         });
}

// The calls that make the layers. One that only takes its turn is none, unless its layer has no
// other.
std::vector<Call> MakingLayers(const Plan& plan, const std::vector<Call>& calls) {
  absl::flat_hash_set<int> made;
  for (const Call& call : calls) {
    if (!OnlyTakesTurn(plan, call)) made.insert(call.layer);
  }
  std::vector<Call> making;
  for (const Call& call : calls) {
    if (!OnlyTakesTurn(plan, call) || made.insert(call.layer).second) making.push_back(call);
  }
  return making;
}

class ListCheck {
 public:
  ListCheck(const StepTables& tables, const Footprints& footprints, const StepClass& walk,
            Diagnostics* findings)
      : tables_(tables),
        footprints_(footprints),
        walk_(walk),
        place_(PlaceOf(tables, walk)),
        findings_(*findings) {}

  void Run() {
    const std::vector<Chunk>& chunks = *walk_.chunks;
    for (size_t k = 0; k < chunks.size(); ++k) {
      CheckLayers(chunks[k]);
      std::vector<Call> both = chunks[k].forward;
      both.insert(both.end(), chunks[k].backward.begin(), chunks[k].backward.end());
      touched_.push_back({footprints_.Of(chunks[k].forward), footprints_.Of(chunks[k].backward),
                          footprints_.Of(both)});
      CheckBases(chunks[k], touched_.back().forward, touched_.back().backward);
    }
    for (const StepAction& action : walk_.actions) {
      if (action.action->ref.kind == ActionKind::kUpdate) CheckBlocks(*action.calls, "the update");
    }
    for (const StepTransfer& transfer : walk_.transfers) CheckTransfer(*transfer.transfer);
    for (const StepAction& action : walk_.actions) {
      const ActionRef& ref = action.action->ref;
      const std::string wrong = WhatIsHandedOver(tables_, walk_, ref, touched_);
      if (!wrong.empty()) findings_.Add("order_v2", place_, wrong);
      CheckAction(*action.action);
    }
  }

 private:
  // Every layer of the stage once: upwards forward, downwards backward. A stage may have none.
  // Behind them one call of no layer may hand values on, and beside them stand those that only move
  // what layers hold in turn.
  void CheckLayers(const Chunk& chunk) {
    std::vector<int> layers;
    if (chunk.has_embedding) layers.push_back(kEmbeddingLayer);
    for (int i = 0; i < chunk.num_layers; ++i) layers.push_back(chunk.first_layer + i);
    if (chunk.has_head) layers.push_back(tables_.plan.model.num_layers());
    const std::string stage = absl::StrCat("stage ", chunk.stage);
    CheckCalls(chunk.forward, layers, stage + " forward");
    std::reverse(layers.begin(), layers.end());
    if (!tables_.eval && HasBackward(tables_.plan)) {
      CheckCalls(chunk.backward, layers, stage + " backward");
    }
    CheckOnce(chunk.prepare, layers, stage + " prepare");
    if (!chunk.last_backward.empty()) CheckLastBackward(chunk, layers);
  }

  // The last backward is the backward, with what starts reductions in between.
  void CheckLastBackward(const Chunk& chunk, const std::vector<int>& layers) {
    const std::string stage = absl::StrCat("stage ", chunk.stage);
    const std::vector<Call> reductions = ReductionsOf(chunk);
    const size_t done = chunk.last_backward.size() - reductions.size();
    if (done < chunk.backward.size()) {
      findings_.Add("order_v5", place_,
                    absl::StrCat(stage, " last backward: runs ", done, " of the ",
                                 chunk.backward.size(), " calls of its backward; ",
                                 NameOfLayer(chunk.backward[done].layer), " is due"));
    }
    CheckOnce(reductions, layers, stage + " reductions");
  }

  // Some layers of the stage, in any order, each once at most.
  void CheckOnce(const std::vector<Call>& calls, const std::vector<int>& layers,
                 const std::string& what) {
    absl::flat_hash_set<int> left(layers.begin(), layers.end());
    for (const Call& call : calls) {
      if (left.erase(call.layer) > 0) continue;
      findings_.Add("order_v1", place_,
                    absl::StrCat(what, ": runs ", NameOfLayer(call.layer),
                                 ", which the stage has not or has run"));
    }
    CheckBlocks(calls, what);
  }

  void CheckCalls(const std::vector<Call>& all, const std::vector<int>& layers,
                  const std::string& what) {
    const std::vector<Call> calls = MakingLayers(tables_.plan, all);
    const auto at = [](const auto& list, size_t i, const auto& name) {
      return i < list.size() ? name(list[i]) : std::string("nothing");
    };
    const bool hands_on = calls.size() == layers.size() + 1 && calls.back().layer == kNoLayer;
    for (size_t i = 0; i < std::max(calls.size() - (hands_on ? 1 : 0), layers.size()); ++i) {
      if (i < calls.size() && i < layers.size() && calls[i].layer == layers[i]) continue;
      const auto of_call = [](const Call& call) { return NameOfLayer(call.layer); };
      findings_.Add("order_v1", place_,
                    absl::StrCat(what, ": call ", i, " runs ", at(calls, i, of_call), "; ",
                                 at(layers, i, NameOfLayer), " is due"));
      break;
    }
    CheckBlocks(all, what);
  }

  // Formals of blocks are bound to those of the call's layer.
  void CheckBlocks(const std::vector<Call>& calls, const std::string& what) {
    for (const Call& call : calls) {
      const Segment& segment = tables_.plan.segments[static_cast<size_t>(call.segment)];
      for (size_t f = 1; f < segment.formals.size(); ++f) {
        const Formal& formal = segment.formals[f];
        if (!IsOfBlock(formal.region)) continue;
        const HeldBlock* held = FindHeld(tables_.plan, *walk_.plan_class, formal.block, call.layer);
        const int64_t base = held == nullptr ? -1 : BlockBase(*held, formal.region);
        const Binding& binding = call.bindings[f];
        if (binding.base == BaseKind::kAbsolute && binding.offset == base) continue;
        findings_.Add("order_v1", place_,
                      absl::StrCat(what, ": `", ToString(formal), "` of ", segment.name, " for ",
                                   NameOfLayer(call.layer), " is bound to ", binding.offset, "; ",
                                   base < 0 ? "the class holds no such block"
                                            : absl::StrCat("its block is at ", base)));
      }
    }
  }

  // Which addresses of an action its calls may use.
  void CheckBases(const Chunk& chunk, const Footprint& forward, const Footprint& backward) {
    const int last = static_cast<int>(tables_.plan.stages.size()) - 1;
    const auto refuse = [&](bool used, absl::string_view what) {
      if (!used) return;
      findings_.Add("order_v2", place_, absl::StrCat("stage ", chunk.stage, " ", what));
    };
    const auto uses = [](const Footprint& footprint, BaseKind base) {
      return !footprint.Of(base).empty();
    };
    refuse(uses(forward, BaseKind::kGradInput) || uses(forward, BaseKind::kGradOutput),
           "forward uses addresses of gradients");
    refuse(uses(backward, BaseKind::kOutput), "backward uses the forward's outbox");
    if (chunk.stage == 0) {
      refuse(uses(forward, BaseKind::kInput) || uses(backward, BaseKind::kInput),
             "reads an input that nobody sends");
      refuse(uses(backward, BaseKind::kGradOutput), "writes a gradient that nobody receives");
    }
    if (chunk.stage == last) {
      refuse(uses(forward, BaseKind::kOutput), "writes an output that nobody receives");
      refuse(uses(backward, BaseKind::kGradInput), "reads a gradient that nobody sends");
    }
  }

  // A transfer takes all of what its action writes or reads, from where it does.
  void CheckTransfer(const Transfer& transfer) {
    const TransferRef& ref = transfer.ref;
    const bool forward = IsForward(ref.kind);
    const bool send = IsSend(ref.kind);
    const int index = walk_.IndexOf(ActionRef{
        forward ? ActionKind::kForward : ActionKind::kBackward, ref.chunk, ref.micro_batch});
    if (index < 0) return;
    const Action& action = *walk_.actions[static_cast<size_t>(index)].action;
    const BaseKind base = forward ? (send ? BaseKind::kOutput : BaseKind::kInput)
                                  : (send ? BaseKind::kGradOutput : BaseKind::kGradInput);
    const Footprint& footprint =
        touched_[static_cast<size_t>(ref.chunk)].Of(forward, /*taken=*/!send);
    const std::string name = NameOf(ref, *walk_.chunks);
    const std::string user = NameOf(action.ref, *walk_.chunks);
    if (BaseOf(base, action) != transfer.address) {
      findings_.Add("order_v2", place_,
                    absl::StrCat(name, " is at ", transfer.address, ", ", user,
                                 send ? " writes at " : " reads at ", BaseOf(base, action)));
    }
    if (!IsBundle(footprint.Of(base), transfer.bytes)) {
      findings_.Add("order_v2", place_,
                    absl::StrCat(name, " moves ", transfer.bytes, " bytes, ", user,
                                 send ? " writes " : " reads ", footprint.End(base)));
    }
  }

  // Backward finds input and frame where forward has left them.
  void CheckAction(const Action& action) {
    const ActionRef& ref = action.ref;
    if (ref.kind != ActionKind::kBackward) return;
    const int index = walk_.IndexOf(ActionRef{ActionKind::kForward, ref.chunk, ref.micro_batch});
    if (index < 0) return;
    const Action& forward = *walk_.actions[static_cast<size_t>(index)].action;
    const Footprint& footprint = touched_[static_cast<size_t>(ref.chunk)].backward;
    for (const auto& [base, name] :
         {std::make_pair(BaseKind::kFrame, "frame"), std::make_pair(BaseKind::kInput, "input")}) {
      if (footprint.Of(base).empty() || BaseOf(base, action) == BaseOf(base, forward)) continue;
      findings_.Add("order_v2", place_,
                    absl::StrCat(NameOf(ref, *walk_.chunks), " reads its ", name, " at ",
                                 BaseOf(base, action), ", ", NameOf(forward.ref, *walk_.chunks),
                                 " has it at ", BaseOf(base, forward)));
    }
  }

  const StepTables& tables_;
  const Footprints& footprints_;
  const StepClass& walk_;
  const std::string place_;
  Diagnostics& findings_;
  std::vector<ChunkFootprints> touched_;  // by chunk
};

}  // namespace

void CheckLists(const StepTables& tables, const Footprints& footprints, Diagnostics* findings) {
  for (const StepClass& walk : tables.classes) {
    ListCheck(tables, footprints, walk, findings).Run();
  }
}

}  // namespace mgc
