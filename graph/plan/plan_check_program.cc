#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "graph/plan/plan_check_internal.h"
#include "graph/plan/plan_fold.h"
#include "graph/plan/plan_refs.h"

namespace mgc {
namespace {

// How far behind each kind of base the calls of a list reach.
struct Reach {
  int64_t of[6] = {-1, -1, -1, -1, -1, -1};  // by BaseKind; -1: not used
};

Reach ReachOf(const Plan& plan, const std::vector<Call>& calls) {
  Reach reach;
  for (const Call& call : calls) {
    const Segment& segment = plan.segments[static_cast<size_t>(call.segment)];
    const std::vector<int64_t> ends = FormalEnds(segment);
    for (size_t f = 0; f < ends.size(); ++f) {
      int64_t& end = reach.of[static_cast<int>(call.bindings[f].base)];
      end = std::max(end, call.bindings[f].offset + ends[f]);
    }
  }
  return reach;
}

// By chunk and list (ListsOf); then of the update, whose bases are all absolute.
std::vector<Reach> ReachesOf(const Plan& plan, const std::vector<Chunk>& chunks) {
  std::vector<Reach> reaches;
  for (const Chunk& chunk : chunks) {
    for (const auto* calls : ListsOf(chunk)) {
      reaches.push_back(ReachOf(plan, *calls));
    }
  }
  reaches.emplace_back();
  return reaches;
}

// Whether an action takes what a neighbouring stage leaves: forward may take what backward alone
// reads.
bool Takes(const std::vector<Reach>& reaches, const ActionRef& ref) {
  const BaseKind base = ref.kind == ActionKind::kForward ? BaseKind::kInput : BaseKind::kGradInput;
  const size_t first = static_cast<size_t>(ref.chunk) * kNumChunkLists;
  return std::any_of(reaches.begin() + first, reaches.begin() + first + kNumChunkLists,
                     [&](const Reach& reach) { return reach.of[static_cast<int>(base)] >= 0; });
}

constexpr char kNeverMade[] = " never makes its working copies";
constexpr char kNoCopies[] = " makes working copies, of which it has none";

// The program of one class.
class ProgramCheck {
 public:
  ProgramCheck(const Plan& plan, const PlanClass& rank_class, bool eval, Diagnostics* violations)
      : plan_(plan),
        rank_class_(rank_class),
        chunks_(eval ? rank_class.eval_chunks : rank_class.chunks),
        program_(eval ? rank_class.eval : rank_class.train),
        eval_(eval),
        check_(absl::StrCat("class ", rank_class.coordinate), violations) {}

  // False when later checks cannot rely on the lists.
  bool Run(PlanExtent extent) {
    if (!AddToIndex(program_.compute) || !AddToIndex(program_.transfers)) return false;
    const size_t before = check_.num_violations();
    CheckOrder();
    if (extent == PlanExtent::kActions) return check_.num_violations() == before;
    reaches_ = ReachesOf(plan_, chunks_);
    for (const Action& action : program_.compute) CheckAction(action);
    for (size_t i = 0; i < program_.transfers.size(); ++i) CheckTransfer(i);
    return check_.num_violations() == before;
  }

  const Transfer* Find(const TransferRef& ref) const {
    const int place = index_.Find(ref);
    return place < 0 ? nullptr : &program_.transfers[static_cast<size_t>(place)];
  }
  const Program& program() const { return program_; }
  PlaceCheck& check() { return check_; }

  template <typename Ref>
  std::string Name(const Ref& ref) const {
    return NameOf(ref, chunks_);
  }
  int StageOf(const TransferRef& ref) const {
    return chunks_[static_cast<size_t>(ref.chunk)].stage;
  }

 private:
  template <typename Entry>
  bool AddToIndex(const std::vector<Entry>& list) {
    for (size_t i = 0; i < list.size(); ++i) {
      const auto& ref = list[i].ref;
      if (!Exists(ref)) return false;
      if (!index_.Add(ref, static_cast<int>(i))) {
        return check_.Fail("plan_c11", Name(ref), " occurs twice");
      }
    }
    return true;
  }

  template <typename Ref>
  bool Exists(const Ref& ref) {
    return check_.Require(IsIndex(ref.chunk, chunks_) && ref.micro_batch >= 0 &&
                              ref.micro_batch < plan_.num_micro_batches,
                          "plan_c6", "names micro-batch ", ref.micro_batch, " of ",
                          plan_.num_micro_batches, " or chunk ", ref.chunk, " of ", chunks_.size());
  }

  // Of every chunk the working copies, then forward and backward of every micro-batch once,
  // ascending; the update last.
  void CheckOrder() {
    std::vector<int64_t> forward(chunks_.size(), 0);
    std::vector<int64_t> backward(chunks_.size(), 0);
    std::vector<bool> prepared(chunks_.size(), false);
    for (size_t i = 0; i < program_.compute.size(); ++i) {
      const ActionRef& ref = program_.compute[i].ref;
      const size_t chunk = static_cast<size_t>(ref.chunk);
      bool in_order = !eval_;
      if (ref.kind == ActionKind::kPrepare) {
        in_order = forward[chunk] == 0 && ref.micro_batch == 0;
        prepared[chunk] = true;
      } else if (ref.kind == ActionKind::kForward) {
        in_order = ref.micro_batch == forward[chunk]++;
      } else if (ref.kind == ActionKind::kBackward) {
        in_order &= ref.micro_batch == backward[chunk]++ && ref.micro_batch < forward[chunk];
      } else {
        in_order = i + 1 == program_.compute.size();
      }
      if (!in_order) check_.Fail("plan_c11", Name(ref), " is out of order");
    }
    for (size_t k = 0; k < chunks_.size(); ++k) {
      check_.Require(
          forward[k] == plan_.num_micro_batches &&
              backward[k] == (eval_ || !HasBackward(plan_) ? 0 : plan_.num_micro_batches),
          "plan_c11", eval_ ? "evaluation" : "training", " runs stage ", chunks_[k].stage,
          " forward ", forward[k], " and backward ", backward[k], " times for ",
          plan_.num_micro_batches, " micro-batches");
      check_.Require(prepared[k] != chunks_[k].prepare.empty(), "plan_c11", "stage ",
                     chunks_[k].stage, prepared[k] ? kNoCopies : kNeverMade);
    }
    check_.Require(
        !program_.compute.empty() && program_.compute.back().ref.kind == ActionKind::kUpdate,
        "plan_c11", "the update is missing");
  }

  void CheckAction(const Action& action) {
    const Reach& reach = ReachOfAction(action.ref);
    const auto addresses = AddressesOf(&action);  // those of all bases but kAbsolute, in order
    for (size_t i = 0; i < addresses.size(); ++i) {
      const int64_t address = *addresses[i];
      const int64_t end = reach.of[i + 1];
      const bool sound = address == -1
                             ? end <= 0
                             : IsSize(address) && address % kSlotAlignment == 0 &&
                                   address + std::max<int64_t>(end, 0) <= rank_class_.memory.peak;
      if (!sound) {
        check_.Fail("plan_c10", Name(action.ref), " uses ", end, " bytes at ", address,
                    " of an arena of ", rank_class_.memory.peak);
      }
    }
    for (const TransferRef& ref : action.waits) RequireListed(ref, action.ref);
    CheckReceived(action);
  }

  const Reach& ReachOfAction(const ActionRef& ref) const {
    if (ref.kind == ActionKind::kUpdate) return reaches_.back();
    const size_t chunk = static_cast<size_t>(ref.chunk);
    return reaches_[chunk * kNumChunkLists + ListOf(chunks_[chunk], ref, plan_.num_micro_batches)];
  }

  // Whether a stage of this class hands over to the action; it does so earlier, at one address.
  bool CheckHandedOver(const Action& action) {
    const absl::optional<ActionRef> from =
        NeighbourInPlace(plan_.stages, chunks_, action.ref, false);
    if (!from.has_value()) return false;
    const int at = index_.Find(*from);
    if (at < 0) return true;  // missing: plan_c11
    const Action& giver = program_.compute[static_cast<size_t>(at)];
    if (index_.Find(action.ref) < at) {
      check_.Fail("plan_c11", Name(action.ref), " comes before ", Name(*from),
                  ", which hands over to it");
    }
    const bool forward = action.ref.kind == ActionKind::kForward;
    const int64_t left = forward ? giver.output : giver.grad_output;
    const int64_t taken = forward ? action.input : action.grad_input;
    if (left != taken) {
      check_.Fail("plan_c20", Name(action.ref), " takes at ", taken, " what ", Name(*from),
                  " leaves at ", left);
    }
    return true;
  }

  // What comes from another class is waited for.
  void CheckReceived(const Action& action) {
    if (!IsOfMicroBatch(action.ref.kind)) return;
    const bool forward = action.ref.kind == ActionKind::kForward;
    const int stage = chunks_[static_cast<size_t>(action.ref.chunk)].stage;
    if (stage == (forward ? 0 : static_cast<int>(plan_.stages.size()) - 1)) return;
    if (!Takes(reaches_, action.ref) || CheckHandedOver(action)) return;
    const TransferRef needed{forward ? TransferKind::kRecvForward : TransferKind::kRecvBackward,
                             action.ref.chunk, action.ref.micro_batch};
    const bool waits = std::any_of(action.waits.begin(), action.waits.end(),
                                   [&](const TransferRef& ref) { return SameRef(ref, needed); });
    if (!waits) {
      check_.Fail("plan_c12", Name(action.ref), " does not wait for ", Name(needed));
    }
  }

  template <typename Ref, typename By>
  bool RequireListed(const Ref& ref, const By& by) {
    if (!Exists(ref)) return false;
    return index_.Find(ref) >= 0 ||
           check_.Fail("plan_c6", Name(by), " names ", Name(ref), ", which is not listed");
  }

  void CheckTransfer(size_t index) {
    const Transfer& transfer = program_.transfers[index];
    const int64_t peak = rank_class_.memory.peak;
    if (!IsSize(transfer.address) || !IsSize(transfer.bytes) ||
        transfer.address % kSlotAlignment != 0 || transfer.address + transfer.bytes > peak) {
      check_.Fail("plan_c10", Name(transfer.ref), " moves ", transfer.bytes, " bytes at ",
                  transfer.address, " of an arena of ", peak);
    }
    if (!IsIndex(transfer.peer, plan_.classes) || transfer.peer == rank_class_.coordinate) {
      check_.Fail("plan_c12", Name(transfer.ref), " has class ", transfer.peer, " as its peer");
    }
    if (transfer.issued < 0) {
      check_.Fail("plan_c6", Name(transfer.ref), " stands behind ", transfer.issued,
                  " collectives");
    }
    RequireListed(transfer.anchor, transfer.ref);
    for (const ActionRef& ref : transfer.after) RequireListed(ref, transfer.ref);
    for (const TransferRef& ref : transfer.after_transfers) {
      if (!RequireListed(ref, transfer.ref)) continue;
      if (static_cast<size_t>(index_.Find(ref)) >= index) {
        check_.Fail("plan_c6", Name(transfer.ref), " comes after ", Name(ref),
                    ", which is listed behind it");
      }
    }
  }

  const Plan& plan_;
  const PlanClass& rank_class_;
  const std::vector<Chunk>& chunks_;
  const Program& program_;
  const bool eval_;
  PlaceCheck check_;
  std::vector<Reach> reaches_;  // by chunk and kind
  ProgramIndex index_;
};

// Every send of a stage is received by the next one (forward) or the one before (backward), and
// nothing else is received.
void MatchTransfers(const Plan& plan, std::vector<ProgramCheck>* classes) {
  const std::vector<StagePlace>& stages = plan.stages;
  for (int c = 0; c < static_cast<int>(classes->size()); ++c) {
    ProgramCheck& mine = (*classes)[static_cast<size_t>(c)];
    for (const Transfer& transfer : mine.program().transfers) {
      const int stage = OtherStage(transfer.ref.kind, mine.StageOf(transfer.ref));
      const Transfer* match = nullptr;
      if (IsIndex(stage, stages) &&
          stages[static_cast<size_t>(stage)].rank_class == transfer.peer) {
        match = (*classes)[static_cast<size_t>(transfer.peer)].Find(
            {OtherEnd(transfer.ref.kind), stages[static_cast<size_t>(stage)].chunk,
             transfer.ref.micro_batch});
      }
      if (match == nullptr || match->peer != c || match->bytes != transfer.bytes) {
        mine.check().Fail("plan_c12", mine.Name(transfer.ref), " of ", transfer.bytes,
                          " bytes has no counterpart in class ", transfer.peer);
      }
    }
  }
}

void CheckNoEvaluation(const Plan& plan, Diagnostics* violations) {
  for (const PlanClass& rank_class : plan.classes) {
    if (rank_class.eval.compute.empty() && rank_class.eval.transfers.empty()) continue;
    violations->Add("plan_c11", absl::StrCat("class ", rank_class.coordinate),
                    "has an evaluation, and the model is asked for its results alone");
  }
}

}  // namespace

void CheckPrograms(const Plan& plan, PlanExtent extent, Diagnostics* violations) {
  for (const bool eval : {false, true}) {
    if (eval && !HasEvaluation(plan)) {
      CheckNoEvaluation(plan, violations);
      continue;
    }
    std::vector<ProgramCheck> classes;
    classes.reserve(plan.classes.size());
    bool sound = true;
    for (const PlanClass& rank_class : plan.classes) {
      classes.emplace_back(plan, rank_class, eval, violations);
      sound &= classes.back().Run(extent);
    }
    if (sound) MatchTransfers(plan, &classes);
  }
}

}  // namespace mgc
