#include "runtime/load_program.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"

namespace mgc {
namespace {

using Key = std::tuple<int, int, int64_t>;  // kind, chunk, micro-batch

template <typename Ref>
Key KeyOf(const Ref& ref) {
  return {static_cast<int>(ref.kind), ref.chunk, ref.micro_batch};
}

class Loader {
 public:
  Loader(const ProgramContext& context, const Program& program)
      : context_(context), program_(program) {}

  LoadedProgram Run() {
    for (size_t i = 0; i < program_.transfers.size(); ++i) {
      transfers_.emplace(KeyOf(program_.transfers[i].ref), static_cast<int>(i));
    }
    for (const Action& action : program_.compute) LoadAction(action);
    for (const Transfer& transfer : program_.transfers) LoadTransfer(transfer);
    PlaceTransfers();
    return std::move(out_);
  }

 private:
  const std::vector<LoadedCall>& CallsOf(const ActionRef& ref) const {
    if (ref.kind == ActionKind::kUpdate) return context_.update;
    const LoadedChunk& chunk = context_.loaded[static_cast<size_t>(ref.chunk)];
    if (ref.kind == ActionKind::kForward) return chunk.forward;
    return ref.kind == ActionKind::kBackward ? chunk.backward : chunk.reduce;
  }

  void LoadAction(const Action& action) {
    LoadedAction loaded;
    loaded.action = &action;
    loaded.calls = &CallsOf(action.ref);
    const int index = static_cast<int>(out_.actions.size());
    actions_.emplace(KeyOf(action.ref), index);
    for (const TransferRef& ref : action.waits) {
      loaded.transfers_needed = std::max(loaded.transfers_needed, transfers_.at(KeyOf(ref)) + 1);
    }
    if (action.waits_for_reductions) loaded.collectives_needed = after_reductions_;
    first_collective_.push_back(num_collectives_);
    AddCollectives(*loaded.calls, index);
    if (action.ref.kind == ActionKind::kReduceGrad) after_reductions_ = num_collectives_;
    out_.actions.push_back(loaded);
  }

  void AddCollectives(const std::vector<LoadedCall>& calls, int action) {
    for (size_t c = 0; c < calls.size(); ++c) {
      for (size_t x = 0; x < calls[c].segment->exchanges.size(); ++x) {
        CommItem item;
        item.action = action;
        item.call = static_cast<int>(c);
        item.exchange = static_cast<int>(x);
        item.ordinal = num_collectives_++;
        out_.comm.push_back(item);
      }
    }
  }

  void LoadTransfer(const Transfer& transfer) {
    LoadedTransfer loaded;
    loaded.transfer = &transfer;
    const TransferKind kind = transfer.ref.kind;
    loaded.sends = kind == TransferKind::kSendForward || kind == TransferKind::kSendBackward;
    loaded.forward = kind == TransferKind::kSendForward || kind == TransferKind::kRecvForward;
    const int stage = context_.chunks[static_cast<size_t>(transfer.ref.chunk)].stage;
    loaded.stage = loaded.sends ? stage + (loaded.forward ? 1 : -1) : stage;
    std::vector<ActionRef> before = transfer.after;
    if (loaded.sends) {
      before.push_back({loaded.forward ? ActionKind::kForward : ActionKind::kBackward,
                        transfer.ref.chunk, transfer.ref.micro_batch});
    }
    // Earlier transfers that it comes after are over by then: communication keeps its order.
    for (const ActionRef& ref : before) {
      loaded.actions_needed = std::max(loaded.actions_needed, actions_.at(KeyOf(ref)) + 1);
    }
    out_.transfers.push_back(loaded);
  }

  // Merges the transfers into the collectives' order, each behind its anchor.
  void PlaceTransfers() {
    std::vector<CommItem> collectives;
    collectives.swap(out_.comm);
    size_t placed = 0;
    for (size_t t = 0; t < program_.transfers.size(); ++t) {
      const Transfer& transfer = program_.transfers[t];
      const int anchor = actions_.at(KeyOf(transfer.anchor));
      const int64_t position = first_collective_[static_cast<size_t>(anchor)] + transfer.issued;
      while (placed < collectives.size() && static_cast<int64_t>(placed) < position) {
        out_.comm.push_back(collectives[placed++]);
      }
      CommItem item;
      item.transfer = static_cast<int>(t);
      out_.comm.push_back(item);
    }
    out_.comm.insert(out_.comm.end(), collectives.begin() + static_cast<std::ptrdiff_t>(placed),
                     collectives.end());
  }

  const ProgramContext& context_;
  const Program& program_;
  LoadedProgram out_;
  absl::flat_hash_map<Key, int> actions_;
  absl::flat_hash_map<Key, int> transfers_;
  std::vector<int64_t> first_collective_;  // by action
  int64_t num_collectives_ = 0;
  int64_t after_reductions_ = 0;  // collectives up to the last reduction of gradients
};

}  // namespace

LoadedProgram LoadProgram(const ProgramContext& context, const Program& program) {
  return Loader(context, program).Run();
}

}  // namespace mgc
