#include "graph/plan/fewer_micro_batches.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"

namespace mgc {
namespace {

using Key = std::tuple<int, int, int64_t>;  // kind, chunk, micro-batch

template <class Ref>
Key KeyOf(const Ref& ref) {
  return {static_cast<int>(ref.kind), ref.chunk, ref.micro_batch};
}
Key KeyOfAction(const ActionRef& ref) {
  if (ref.kind == ActionKind::kUpdate) return {static_cast<int>(ref.kind), 0, 0};
  return KeyOf(ref);
}

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
      position_[KeyOfAction(program_.compute[i].ref)] = static_cast<int>(i);
    }
    for (const Transfer& transfer : program_.transfers) transfers_[KeyOf(transfer.ref)] = &transfer;
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

  static void Merge(const Needs& more, Needs* needs) {
    needs->action = std::max(needs->action, more.action);
    for (const TransferRef& ref : more.transfers) {
      const auto same = [&](const TransferRef& known) { return KeyOf(known) == KeyOf(ref); };
      if (std::any_of(needs->transfers.begin(), needs->transfers.end(), same)) continue;
      needs->transfers.push_back(ref);
    }
  }

  // What is over when the action is: the last kept action up to it, and what those left out since
  // have waited for.
  Needs NeedsOf(const ActionRef& ref) const {
    const auto it = position_.find(KeyOfAction(ref));
    if (it == position_.end() || static_cast<size_t>(it->second) >= at_action_.size()) return {};
    return at_action_[static_cast<size_t>(it->second)];
  }

  // Along chains of transfers that are left out, however long, without recursion.
  Needs NeedsOf(const TransferRef& ref) {
    if (IsKept(ref.micro_batch)) return {-1, {ref}};
    std::vector<TransferRef> open = {ref};
    while (!open.empty()) {
      const TransferRef now = open.back();
      const auto found = transfers_.find(KeyOf(now));
      bool ready = true;
      if (found != transfers_.end() && seen_.insert(KeyOf(now)).second) {
        for (const TransferRef& before : found->second->after_transfers) {
          if (IsKept(before.micro_batch) || seen_.contains(KeyOf(before))) continue;
          open.push_back(before);
          ready = false;
        }
      }
      if (!ready) continue;
      open.pop_back();
      if (found == transfers_.end() || left_out_.contains(KeyOf(now))) continue;
      left_out_[KeyOf(now)] = NeedsBefore(*found->second);
    }
    return left_out_[KeyOf(ref)];
  }

  // What a transfer itself waits for.
  Needs NeedsBefore(const Transfer& transfer) {
    Needs needs;
    for (const ActionRef& ref : transfer.after) Merge(NeedsOf(ref), &needs);
    for (const TransferRef& ref : transfer.after_transfers) Merge(NeedsOf(ref), &needs);
    const TransferKind kind = transfer.ref.kind;
    const ActionRef forward{ActionKind::kForward, transfer.ref.chunk, transfer.ref.micro_batch};
    const ActionRef backward{ActionKind::kBackward, transfer.ref.chunk, transfer.ref.micro_batch};
    if (kind == TransferKind::kSendForward) Merge(NeedsOf(forward), &needs);
    if (kind == TransferKind::kSendBackward) Merge(NeedsOf(backward), &needs);
    return needs;
  }

  void AddAction(const Action& action) {
    Needs& now = now_;
    for (const TransferRef& ref : action.waits) Merge(NeedsOf(ref), &now);
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
      if (KeyOf(ref) != KeyOf(transfer.ref)) made.after_transfers.push_back(Renumbered(ref));
    }
    MoveAnchor(&made);
    out_.transfers.push_back(std::move(made));
  }

  const Action& ActionAt(int position) const {
    return program_.compute[static_cast<size_t>(position)];
  }

  // A transfer stands behind its anchor and behind all that are listed before it, kept or not.
  void Advance(const Transfer& transfer) {
    const auto it = position_.find(KeyOfAction(transfer.anchor));
    const size_t at = it == position_.end() ? 0 : static_cast<size_t>(it->second);
    reached_ = std::max(reached_, {at, transfer.issued});
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
  absl::flat_hash_map<Key, int> position_;  // in the compute list
  absl::flat_hash_map<Key, const Transfer*> transfers_;
  std::pair<size_t, int> reached_;  // position of an anchor and what it has issued
  Needs now_;                       // behind the last action looked at
  std::vector<Needs> at_action_;    // by position in the compute list
  absl::flat_hash_map<Key, Needs> left_out_;
  absl::flat_hash_set<Key> seen_;  // transfers left out, found or being looked for
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
