#include "runtime/load_program.h"

#include <algorithm>
#include <tuple>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "graph/base/status.h"

namespace mgc {
namespace {

using Key = std::tuple<int, int, int64_t>;  // kind, chunk, micro-batch

Key KeyOf(const ActionRef& ref) {
  if (ref.kind == ActionKind::kUpdate) return {static_cast<int>(ref.kind), 0, 0};
  return {static_cast<int>(ref.kind), ref.chunk, ref.micro_batch};
}
Key KeyOf(const TransferRef& ref) {
  return {static_cast<int>(ref.kind), ref.chunk, ref.micro_batch};
}

absl::Status Invalid(absl::string_view text) { return absl::InvalidArgumentError(text); }

class Loader {
 public:
  Loader(const ProgramContext& context, const Program& program, LoadedProgram* out)
      : context_(context), program_(program), out_(out) {}

  absl::Status Run() {
    for (size_t i = 0; i < program_.transfers.size(); ++i) {
      const TransferRef& ref = program_.transfers[i].ref;
      MGC_RETURN_IF_ERROR(CheckPlace(ref.chunk, ref.micro_batch));
      if (!transfers_.emplace(KeyOf(ref), static_cast<int>(i)).second) {
        return Invalid(absl::StrCat(NameOf(ref, context_.chunks), " occurs twice"));
      }
    }
    for (const Action& action : program_.compute) {
      MGC_RETURN_IF_ERROR(Annotate(LoadAction(action), NameOfAction(action.ref)));
    }
    for (const Transfer& transfer : program_.transfers) {
      MGC_RETURN_IF_ERROR(Annotate(LoadTransfer(transfer), NameOf(transfer.ref, context_.chunks)));
    }
    return PlaceTransfers();
  }

 private:
  std::string NameOfAction(const ActionRef& ref) const {
    if (ref.kind != ActionKind::kUpdate && !CheckPlace(ref.chunk, ref.micro_batch).ok()) {
      return "an action";
    }
    return NameOf(ref, context_.chunks);
  }

  absl::Status CheckPlace(int chunk, int64_t micro_batch) const {
    if (chunk < 0 || chunk >= static_cast<int>(context_.chunks.size())) {
      return Invalid(absl::StrCat("there is no chunk ", chunk));
    }
    if (micro_batch < 0 || micro_batch >= context_.plan.num_micro_batches) {
      return Invalid(absl::StrCat("there is no micro-batch ", micro_batch));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<const std::vector<LoadedCall>*> CallsOf(const ActionRef& ref) const {
    if (ref.kind == ActionKind::kUpdate) return &context_.update;
    MGC_RETURN_IF_ERROR(CheckPlace(ref.chunk, ref.micro_batch));
    const LoadedChunk& chunk = context_.loaded[static_cast<size_t>(ref.chunk)];
    if (ref.kind == ActionKind::kForward) return &chunk.forward;
    if (ref.kind == ActionKind::kBackward) return &chunk.backward;
    if (ref.kind == ActionKind::kReduceGrad) return &chunk.reduce;
    return Invalid("is of no known kind");
  }

  absl::Status LoadAction(const Action& action) {
    LoadedAction loaded;
    loaded.action = &action;
    MGC_ASSIGN_OR_RETURN(loaded.calls, CallsOf(action.ref));
    const int index = static_cast<int>(out_->actions.size());
    if (!actions_.emplace(KeyOf(action.ref), index).second) return Invalid("occurs twice");
    for (const TransferRef& ref : action.waits) {
      const auto found = transfers_.find(KeyOf(ref));
      if (found == transfers_.end()) return Invalid("waits for a transfer that is not listed");
      loaded.transfers_needed = std::max(loaded.transfers_needed, found->second + 1);
    }
    if (action.waits_for_reductions) loaded.collectives_needed = after_reductions_;
    MGC_RETURN_IF_ERROR(CheckAddresses(action, *loaded.calls));
    first_collective_.push_back(num_collectives_);
    AddCollectives(*loaded.calls, index);
    if (action.ref.kind == ActionKind::kReduceGrad) after_reductions_ = num_collectives_;
    out_->actions.push_back(loaded);
    return absl::OkStatus();
  }

  void AddCollectives(const std::vector<LoadedCall>& calls, int action) {
    for (size_t c = 0; c < calls.size(); ++c) {
      for (size_t x = 0; x < calls[c].segment->exchanges.size(); ++x) {
        CommItem item;
        item.action = action;
        item.call = static_cast<int>(c);
        item.exchange = static_cast<int>(x);
        item.ordinal = num_collectives_++;
        out_->comm.push_back(item);
      }
    }
  }

  // Every formal that a call uses must lie in the arena, aligned, while the action runs.
  absl::Status CheckAddresses(const Action& action, const std::vector<LoadedCall>& calls) const {
    for (const int64_t base :
         {action.frame, action.input, action.output, action.grad_input, action.grad_output}) {
      MGC_RETURN_IF_ERROR(CheckRange(std::max<int64_t>(base, 0), 0));
    }
    for (const LoadedCall& call : calls) {
      const std::vector<int64_t>& ends = call.segment->formal_ends;
      for (size_t f = 0; f < ends.size(); ++f) {
        if (ends[f] == 0) continue;
        const Binding& binding = call.call->bindings[f];
        const bool has_base = AddressOf({binding.base, 0}, action) >= 0;
        if (!has_base || binding.offset < 0 || binding.offset > context_.plan_class.memory.peak) {
          return Invalid(absl::StrCat("formal `", call.segment->segment->formals[f], "` of `",
                                      call.segment->segment->name, "` has no address"));
        }
        MGC_RETURN_IF_ERROR(CheckRange(AddressOf(binding, action), ends[f]));
      }
    }
    return absl::OkStatus();
  }

  absl::Status CheckRange(int64_t begin, int64_t bytes) const {
    const int64_t end = context_.plan_class.memory.peak;
    if (begin < 0 || bytes < 0 || bytes > end || begin > end - bytes || begin % 8 != 0) {
      return Invalid(
          absl::StrCat("[", begin, ", +", bytes, ") does not lie in the arena of ", end, " bytes"));
    }
    return absl::OkStatus();
  }

  absl::Status LoadTransfer(const Transfer& transfer) {
    LoadedTransfer loaded;
    loaded.transfer = &transfer;
    const TransferKind kind = transfer.ref.kind;
    loaded.sends = kind == TransferKind::kSendForward || kind == TransferKind::kSendBackward;
    loaded.forward = kind == TransferKind::kSendForward || kind == TransferKind::kRecvForward;
    const int stage = context_.chunks[static_cast<size_t>(transfer.ref.chunk)].stage;
    loaded.stage = loaded.sends ? stage + (loaded.forward ? 1 : -1) : stage;
    MGC_RETURN_IF_ERROR(CheckRange(transfer.address, transfer.bytes));
    if (transfer.peer < 0 || transfer.peer >= static_cast<int>(context_.plan.classes.size()) ||
        transfer.peer == context_.plan_class.coordinate) {
      return Invalid(absl::StrCat("has no peer ", transfer.peer));
    }
    std::vector<ActionRef> before = transfer.after;
    if (loaded.sends) {
      before.push_back({loaded.forward ? ActionKind::kForward : ActionKind::kBackward,
                        transfer.ref.chunk, transfer.ref.micro_batch});
    }
    for (const ActionRef& ref : before) {
      const auto found = actions_.find(KeyOf(ref));
      if (found == actions_.end()) return Invalid("comes after an action that is not listed");
      loaded.actions_needed = std::max(loaded.actions_needed, found->second + 1);
    }
    // Earlier transfers are over by then: a rank's communication keeps its order.
    for (const TransferRef& ref : transfer.after_transfers) {
      const auto found = transfers_.find(KeyOf(ref));
      if (found == transfers_.end() || found->second >= static_cast<int>(out_->transfers.size())) {
        return Invalid("comes after a transfer that is not listed before it");
      }
    }
    out_->transfers.push_back(loaded);
    return absl::OkStatus();
  }

  // Merges the transfers into the collectives' order, each behind its anchor.
  absl::Status PlaceTransfers() {
    std::vector<CommItem> collectives;
    collectives.swap(out_->comm);
    size_t placed = 0;
    for (size_t t = 0; t < program_.transfers.size(); ++t) {
      const Transfer& transfer = program_.transfers[t];
      const auto anchor = actions_.find(KeyOf(transfer.anchor));
      if (anchor == actions_.end() || transfer.issued < 0) {
        return Invalid(absl::StrCat(NameOf(transfer.ref, context_.chunks), " has no anchor"));
      }
      const int64_t position = first_collective_[anchor->second] + transfer.issued;
      while (placed < collectives.size() && static_cast<int64_t>(placed) < position) {
        out_->comm.push_back(collectives[placed++]);
      }
      CommItem item;
      item.transfer = static_cast<int>(t);
      out_->comm.push_back(item);
    }
    out_->comm.insert(out_->comm.end(), collectives.begin() + placed, collectives.end());
    return absl::OkStatus();
  }

  const ProgramContext& context_;
  const Program& program_;
  LoadedProgram* out_;
  absl::flat_hash_map<Key, int> actions_;
  absl::flat_hash_map<Key, int> transfers_;
  std::vector<int64_t> first_collective_;  // by action
  int64_t num_collectives_ = 0;
  int64_t after_reductions_ = 0;  // collectives up to the last reduction of gradients
};

}  // namespace

absl::Status LoadProgram(const ProgramContext& context, const Program& program,
                         LoadedProgram* out) {
  return Loader(context, program, out).Run();
}

absl::Status MatchTransfers(const std::vector<const LoadedProgram*>& classes) {
  // forward, receiving stage, micro-batch -> the receiving class and its bytes
  absl::flat_hash_map<std::tuple<bool, int, int64_t>, const LoadedTransfer*> open;
  absl::flat_hash_map<const LoadedTransfer*, int> owner;
  int64_t sends = 0;
  for (size_t c = 0; c < classes.size(); ++c) {
    for (const LoadedTransfer& t : classes[c]->transfers) {
      owner[&t] = static_cast<int>(c);
      sends += t.sends ? 1 : 0;
      if (!t.sends) open[{t.forward, t.stage, t.transfer->ref.micro_batch}] = &t;
    }
  }
  if (sends != static_cast<int64_t>(open.size())) return Invalid("sends and receives differ");
  for (size_t c = 0; c < classes.size(); ++c) {
    for (const LoadedTransfer& t : classes[c]->transfers) {
      if (!t.sends) continue;
      const auto found = open.find({t.forward, t.stage, t.transfer->ref.micro_batch});
      if (found == open.end() || owner[found->second] != t.transfer->peer ||
          found->second->transfer->peer != static_cast<int>(c) ||
          found->second->transfer->bytes != t.transfer->bytes) {
        return Invalid(absl::StrCat("class ", c, " sends micro-batch ", t.transfer->ref.micro_batch,
                                    " to stage ", t.stage, ", which does not receive it so"));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace mgc
