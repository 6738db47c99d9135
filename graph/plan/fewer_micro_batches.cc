#include "graph/plan/fewer_micro_batches.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/plan/plan_refs.h"

namespace mgc {
namespace {

// What must be over: the kept action at this position of the compute list and all before it, and
// these kept transfers.
struct Needs {
  int action = -1;
  std::vector<TransferRef> transfers;
};

class Projection {
 public:
  Projection(const Program& program, const std::vector<int64_t>& kept)
      : program_(program), kept_(kept) {}

  Program Run() {
    for (size_t i = 0; i < program_.compute.size(); ++i) {
      index_.Add(program_.compute[i].ref, static_cast<int>(i));
    }
    for (size_t i = 0; i < program_.transfers.size(); ++i) {
      index_.Add(program_.transfers[i].ref, static_cast<int>(i));
    }
    left_out_.resize(program_.transfers.size());
    known_.resize(program_.transfers.size(), Known::kNothing);
    for (const Action& action : program_.compute) AddAction(action);
    for (const Transfer& transfer : program_.transfers) AddTransfer(transfer);
    return std::move(out_);
  }

 private:
  bool IsKept(int64_t micro_batch) const {
    return std::binary_search(kept_.begin(), kept_.end(), micro_batch);
  }
  bool IsKept(const ActionRef& ref) const {
    return !IsOfMicroBatch(ref.kind) || IsKept(ref.micro_batch);
  }
  int64_t Renumbered(int64_t micro_batch) const {
    return std::lower_bound(kept_.begin(), kept_.end(), micro_batch) - kept_.begin();
  }
  TransferRef Renumbered(TransferRef ref) const {
    ref.micro_batch = Renumbered(ref.micro_batch);
    return ref;
  }
  ActionRef Renumbered(ActionRef ref) const {
    if (IsOfMicroBatch(ref.kind)) ref.micro_batch = Renumbered(ref.micro_batch);
    return ref;
  }

  static void AddOnce(const TransferRef& ref, Needs* needs) {
    const auto same = [&](const TransferRef& known) { return SameRef(known, ref); };
    if (std::none_of(needs->transfers.begin(), needs->transfers.end(), same)) {
      needs->transfers.push_back(ref);
    }
  }
  static void Merge(const Needs& more, Needs* needs) {
    needs->action = std::max(needs->action, more.action);
    for (const TransferRef& ref : more.transfers) AddOnce(ref, needs);
  }

  // Adds what is over when the action is: the last kept action up to it, and what those left out
  // since have waited for.
  void AddNeeds(const ActionRef& ref, Needs* needs) const {
    const int at = index_.Find(ref);
    if (at >= 0 && static_cast<size_t>(at) < at_action_.size()) {
      Merge(at_action_[static_cast<size_t>(at)], needs);
    }
  }

  // The same of a transfer: itself, or what one that is left out waits for.
  void AddNeeds(const TransferRef& ref, Needs* needs) {
    if (IsKept(ref.micro_batch)) return AddOnce(ref, needs);
    const int at = index_.Find(ref);
    if (at < 0) return;
    if (known_[static_cast<size_t>(at)] != Known::kAll) LeaveOut(static_cast<size_t>(at));
    Merge(left_out_[static_cast<size_t>(at)], needs);
  }

  // Along chains of transfers that are left out, however long, without recursion.
  void LeaveOut(size_t transfer) {
    std::vector<size_t> open = {transfer};
    while (!open.empty()) {
      const size_t now = open.back();
      const size_t held = open.size();
      if (known_[now] == Known::kNothing) {
        known_[now] = Known::kLookedFor;
        for (const TransferRef& before : program_.transfers[now].after_transfers) {
          const int at = IsKept(before.micro_batch) ? -1 : index_.Find(before);
          if (at >= 0 && known_[static_cast<size_t>(at)] == Known::kNothing) {
            open.push_back(static_cast<size_t>(at));
          }
        }
      }
      if (open.size() > held) continue;
      open.pop_back();
      if (known_[now] == Known::kAll) continue;
      left_out_[now] = NeedsBefore(program_.transfers[now]);
      known_[now] = Known::kAll;
    }
  }

  // What a transfer itself waits for.
  Needs NeedsBefore(const Transfer& transfer) {
    Needs needs;
    for (const ActionRef& ref : transfer.after) AddNeeds(ref, &needs);
    for (const TransferRef& ref : transfer.after_transfers) AddNeeds(ref, &needs);
    if (IsSend(transfer.ref.kind)) AddNeeds(SenderOf(transfer.ref), &needs);
    return needs;
  }

  void AddAction(const Action& action) {
    Needs& now = now_;
    for (const TransferRef& ref : action.waits) AddNeeds(ref, &now);
    if (IsKept(action.ref)) {
      Action made = action;
      made.ref = Renumbered(action.ref);
      made.waits.clear();
      for (const TransferRef& ref : now.transfers) made.waits.push_back(Renumbered(ref));
      out_.compute.push_back(std::move(made));
      now = {static_cast<int>(at_action_.size()), {}};
    }
    at_action_.push_back(now);
  }

  void AddTransfer(const Transfer& transfer) {
    Advance(transfer);
    if (!IsKept(transfer.ref.micro_batch)) return;
    const Needs needs = NeedsBefore(transfer);
    Transfer made = transfer;
    made.ref = Renumbered(transfer.ref);
    made.after.clear();
    made.after_transfers.clear();
    if (needs.action >= 0) made.after.push_back(Renumbered(ActionAt(needs.action).ref));
    for (const TransferRef& ref : needs.transfers) {
      if (!SameRef(ref, transfer.ref)) made.after_transfers.push_back(Renumbered(ref));
    }
    MoveAnchor(&made);
    out_.transfers.push_back(std::move(made));
  }

  const Action& ActionAt(int position) const {
    return program_.compute[static_cast<size_t>(position)];
  }

  // A transfer stands behind its anchor and behind all that are listed before it, kept or not.
  void Advance(const Transfer& transfer) {
    const int at = std::max(index_.Find(transfer.anchor), 0);
    reached_ = std::max(reached_, {static_cast<size_t>(at), transfer.issued});
  }

  // Behind an action that is left out: at the beginning of the next that is not.
  void MoveAnchor(Transfer* made) const {
    size_t at = reached_.first;
    made->issued = IsKept(program_.compute[at].ref) ? reached_.second : 0;
    while (at + 1 < program_.compute.size() && !IsKept(program_.compute[at].ref)) ++at;
    made->anchor = Renumbered(program_.compute[at].ref);
  }

  const Program& program_;
  const std::vector<int64_t>& kept_;
  Program out_;
  ProgramIndex index_;
  std::pair<size_t, int> reached_;  // position of an anchor and what it has issued
  Needs now_;                       // behind the last action looked at
  std::vector<Needs> at_action_;    // by position in the compute list
  // By position in the list of transfers, of those left out: what is known, and what they wait for.
  enum class Known : uint8_t { kNothing, kLookedFor, kAll };
  std::vector<Known> known_;
  std::vector<Needs> left_out_;
};

}  // namespace

Program ProjectMicroBatches(const Program& program, const std::vector<int64_t>& kept) {
  return Projection(program, kept).Run();
}

Plan WithFewerMicroBatches(const Plan& plan, int64_t micro_batches) {
  std::vector<int64_t> kept(static_cast<size_t>(micro_batches));
  std::iota(kept.begin(), kept.end(), plan.num_micro_batches - micro_batches);
  Plan made = plan;
  made.verifier = 0;
  made.num_micro_batches = micro_batches;
  made.global_batch_size = plan.global_batch_size / plan.num_micro_batches * micro_batches;
  for (auto& [flag, value] : made.options) {
    if (flag == "--global-batch-size") value = absl::StrCat(made.global_batch_size);
  }
  for (PlanClass& c : made.classes) {
    c.train = ProjectMicroBatches(c.train, kept);
    c.eval = ProjectMicroBatches(c.eval, kept);
  }
  return made;
}

}  // namespace mgc
