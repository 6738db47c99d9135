#include "runtime/run/testing/chain_plan.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/run/testing/chain_places.h"

namespace mgc {
namespace {

ParamBlock MakeBlock(const ChainPlaces& l) {
  ParamEntry entry;
  entry.name = "layers.*.w";
  entry.type = l.weight;
  entry.sharding = entry.state_sharding = Sharding::Whole(1);
  entry.init = {{"init", std::string("normal")}, {"std", 0.5}};
  entry.gradient_base.region = Region::kGrads;
  entry.states = {{"m", 0}, {"v", 0}};
  ParamBlock block;
  block.name = "layer";
  block.entries.push_back(std::move(entry));
  block.param_bytes = block.grad_bytes = block.state_bytes = l.vector;
  return block;
}

// Nothing but its number of layers: nobody proves the chain.
Graph ModelOf(const ChainPlaces& l) {
  GraphBuilder builder("chain");
  builder.set_num_layers(l.o.pp);
  return std::move(builder).Finish();
}

Binding At(int64_t address) { return {BaseKind::kAbsolute, address}; }

// Without tensor parallelism the second scratch tile holds a gradient term and the loss' numbers.
int64_t LastScratch(const ChainPlaces& l, int stage) {
  return std::max<int64_t>(l.o.seq * 4, stage == l.o.pp - 1 ? 24 : 0);
}

// The highest byte any slot really uses: the last tile of the scratch, without its padding.
int64_t PeakOf(const ChainPlaces& l, int stage) {
  const int64_t used = l.o.rows / l.o.dp * l.o.seq * 4;
  if (stage == 0) return l.scratch_at + 2 * l.tile + used;
  return l.scratch_at + l.tile + (l.o.tp > 1 ? std::max(used, l.o.seq * 4) : LastScratch(l, stage));
}

PlanClass MakeClass(const ChainPlaces& l, int stage) {
  const bool first = stage == 0;
  const bool last = stage == l.o.pp - 1;
  const Binding scratch = At(l.scratch_at);
  const Binding globals = At(0);
  const Binding input = {first ? BaseKind::kFrame : BaseKind::kInput, 0};
  const Binding output = last ? Binding{BaseKind::kFrame, l.tile} : Binding{BaseKind::kOutput, 0};
  const Binding dy = last ? output : Binding{BaseKind::kGradOutput, 0};
  const Binding dx = first ? At(l.scratch_at + 2 * l.tile) : Binding{BaseKind::kGradInput, 0};
  PlanClass c;
  c.coordinate = stage;
  c.blocks = {{0, stage, true, l.param_at, l.grad_at, 0}};
  Chunk chunk;
  chunk.stage = stage;
  chunk.first_layer = stage;
  chunk.num_layers = 1;
  chunk.has_embedding = first;
  chunk.has_head = last;
  chunk.frame_bytes = 2 * l.tile;
  if (first) chunk.forward.push_back({kFeed, stage, {scratch, input}});
  chunk.forward.push_back({kForward, stage, {scratch, At(l.param_at), input, output}});
  if (last) chunk.forward.push_back({kLoss, stage, {scratch, output, globals}});
  c.eval_chunks = {chunk};
  chunk.backward.push_back(
      {kBackward, stage, {scratch, At(l.param_at), At(l.grad_at), input, dy, dx}});
  chunk.last_backward = chunk.backward;
  chunk.last_backward.push_back({kReduce, stage, {scratch, At(l.grad_at)}});
  c.chunks = {chunk};
  c.update.push_back({kStep, stage, {scratch, At(l.param_at), At(l.grad_at), globals}, 0});
  if (last) {
    c.update.push_back({kPayLoss, kNoLayer, {scratch, globals}});
    c.eval_update.push_back({kPayLoss, kNoLayer, {scratch, globals}});
    c.eval_reports = {{"loss", 3 * kSlotAlignment}, {"tokens", 4 * kSlotAlignment}};
    c.reports = c.eval_reports;
    c.reports.push_back({"grad_factor", 5 * kSlotAlignment});
  }
  c.zeroed = {{0, 2 * kSlotAlignment}, {l.grad_at, l.grad_at + l.vector}};
  c.eval_zeroed = {c.zeroed[0]};
  c.scalars = {{"lr", 2 * kSlotAlignment}};
  c.memory.peak = AlignUp(PeakOf(l, stage));
  return c;
}

// Fills the classes' programs.
class ProgramMaker {
 public:
  ProgramMaker(const ChainPlaces& places, Plan* plan) : l_(places), plan_(*plan) {}

  // Runs all classes' lists in turns; a transfer takes its place in the one order right behind its
  // producer, at the receiver behind whatever that has run by then.
  void MakePrograms(bool eval) {
    std::vector<std::vector<ActionRef>> orders;
    orders.reserve(static_cast<size_t>(l_.o.pp));
    for (int stage = 0; stage < l_.o.pp; ++stage) orders.push_back(OrderOf(stage, eval));
    std::vector<size_t> next(orders.size(), 0);
    received_.clear();
    bool progress = true;
    while (progress) {
      progress = false;
      for (int stage = 0; stage < l_.o.pp; ++stage) {
        size_t& at = next[static_cast<size_t>(stage)];
        if (at == orders[stage].size()) continue;
        const Action action = MakeAction(stage, orders[stage][at]);
        if (!Arrived(stage, action)) continue;
        ++at;
        progress = true;
        ProgramOf(stage, eval).compute.push_back(action);
        Send(stage, action.ref, orders, eval);
      }
    }
    for (int stage = 0; stage < l_.o.pp; ++stage) {
      Program& program = ProgramOf(stage, eval);
      Action action;
      action.ref = {ActionKind::kUpdate, 0, 0};
      program.compute.push_back(action);
    }
  }

 private:
  Program& ProgramOf(int stage, bool eval) {
    PlanClass& c = plan_.classes[static_cast<size_t>(stage)];
    return eval ? c.eval : c.train;
  }

  // One class' actions in 1F1B order (or forward only), without the update.
  std::vector<ActionRef> OrderOf(int stage, bool eval) const {
    std::vector<ActionRef> order;
    const int64_t warm =
        eval ? l_.o.micro_batches : std::min<int64_t>(l_.o.pp - 1 - stage, l_.o.micro_batches);
    for (int64_t m = 0; m < warm; ++m) order.push_back({ActionKind::kForward, 0, m});
    for (int64_t m = 0; !eval && m < l_.o.micro_batches; ++m) {
      if (m + warm < l_.o.micro_batches) order.push_back({ActionKind::kForward, 0, m + warm});
      order.push_back({ActionKind::kBackward, 0, m});
    }
    return order;
  }

  int64_t SlotAt(int channel, int64_t m) const {
    return l_.slots_at + (int64_t{channel} * l_.depth + m % l_.depth) * l_.tile;
  }

  Action MakeAction(int stage, const ActionRef& ref) const {
    const int64_t m = ref.micro_batch;
    const bool forward = ref.kind == ActionKind::kForward;
    Action action;
    action.ref = ref;
    action.frame = l_.frames_at + m * 2 * l_.tile;
    action.input = SlotAt(0, m);
    action.output = SlotAt(1, m);
    action.grad_output = SlotAt(2, m);
    action.grad_input = SlotAt(3, m);
    const bool receives = forward ? stage > 0 : stage < l_.o.pp - 1;
    const bool sends = forward ? stage < l_.o.pp - 1 : stage > 0;
    const auto recv = forward ? TransferKind::kRecvForward : TransferKind::kRecvBackward;
    const auto send = forward ? TransferKind::kSendForward : TransferKind::kSendBackward;
    if (receives) action.waits.push_back({recv, 0, m});
    if (sends && m >= l_.depth) action.waits.push_back({send, 0, m - l_.depth});
    return action;
  }

  bool Arrived(int stage, const Action& action) const {
    for (const TransferRef& wait : action.waits) {
      const bool recv =
          wait.kind == TransferKind::kRecvForward || wait.kind == TransferKind::kRecvBackward;
      const std::string key = absl::StrCat(stage, WordOf(wait.kind), wait.micro_batch);
      if (recv && std::count(received_.begin(), received_.end(), key) == 0) return false;
    }
    return true;
  }

  void Send(int stage, const ActionRef& ref, const std::vector<std::vector<ActionRef>>& orders,
            bool eval) {
    const bool forward = ref.kind == ActionKind::kForward;
    const int peer = stage + (forward ? 1 : -1);
    if (peer < 0 || peer >= l_.o.pp) return;
    const int64_t m = ref.micro_batch;
    Transfer send;
    send.ref = {forward ? TransferKind::kSendForward : TransferKind::kSendBackward, 0, m};
    send.bytes = l_.o.rows / l_.o.dp * l_.o.seq * 4;
    send.address = SlotAt(forward ? 1 : 3, m);
    send.peer = peer;
    send.anchor = ref;
    send.issued = forward && l_.o.tp > 1 ? 1 : 0;
    ProgramOf(stage, eval).transfers.push_back(send);
    Transfer recv = send;
    recv.ref.kind = forward ? TransferKind::kRecvForward : TransferKind::kRecvBackward;
    recv.address = SlotAt(forward ? 0 : 2, m);
    recv.peer = stage;
    const std::vector<Action>& ran = ProgramOf(peer, eval).compute;
    recv.anchor = ran.empty() ? orders[peer][0] : ran.back().ref;
    recv.issued = !ran.empty() && recv.anchor.kind == ActionKind::kForward && l_.o.tp > 1 ? 1 : 0;
    const ActionKind reader = eval ? ActionKind::kForward : ActionKind::kBackward;
    if (m >= l_.depth) recv.after.push_back({reader, 0, m - l_.depth});
    ProgramOf(peer, eval).transfers.push_back(recv);
    received_.push_back(absl::StrCat(peer, WordOf(recv.ref.kind), m));
  }

  const ChainPlaces& l_;
  Plan& plan_;
  std::vector<std::string> received_;
};

}  // namespace

Plan ChainPlan(const ChainOptions& options) {
  const ChainPlaces places(options);
  Plan plan;
  plan.name = "chain";
  plan.mesh = places.mesh;
  plan.machine = MachinePresets()[0];
  plan.micro_batch_size = options.rows / options.dp;
  plan.num_micro_batches = options.micro_batches;
  plan.global_batch_size = options.rows * options.micro_batches;
  plan.seq_length = options.seq;
  plan.vocab = 257;
  plan.model = ModelOf(places);
  plan.segments = ChainSegments(places);
  for (int stage = 0; stage < options.pp; ++stage) plan.stages.push_back({stage, 0});
  plan.blocks = {MakeBlock(places)};
  int64_t workspace = 0;
  for (Segment& segment : plan.segments) {
    segment.workspace_bytes = WorkspaceBound(segment, plan.mesh, plan.machine.host);
    workspace = std::max(workspace, segment.workspace_bytes);
  }
  for (int stage = 0; stage < options.pp; ++stage) {
    plan.classes.push_back(MakeClass(places, stage));
    plan.classes.back().memory.workspace = workspace;
  }
  ProgramMaker programs(places, &plan);
  programs.MakePrograms(false);
  programs.MakePrograms(true);
  return plan;
}

}  // namespace mgc
