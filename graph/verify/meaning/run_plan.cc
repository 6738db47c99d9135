#include "graph/verify/meaning/run_plan.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/eval/eval.h"
#include "graph/verify/meaning/gradient_sums.h"
#include "graph/verify/meaning/run_collectives.h"
#include "graph/verify/meaning/run_state.h"

namespace mgc {
namespace {

// What a chunk sends: the slots behind `output` of its forward, or behind `grad_output` of its
// backward, by offset; of several the last. Empty when no call of the chunk has one.
std::map<int64_t, const Slot*> SlotsSent(const Plan& plan, const Chunk& chunk, bool forward) {
  const BaseKind base = forward ? BaseKind::kOutput : BaseKind::kGradOutput;
  std::map<int64_t, const Slot*> slots;
  for (const Call& call : forward ? chunk.forward : chunk.backward) {
    for (const Slot& slot : plan.segments[static_cast<size_t>(call.segment)].slots) {
      const Binding& binding = call.bindings[static_cast<size_t>(slot.formal)];
      if (binding.base == base) slots[binding.offset + slot.offset] = &slot;
    }
  }
  return slots;
}

class Runner : public StepVisitor {
 public:
  Runner(const PlanRun& run, Diagnostics* findings)
      : run_(run),
        plan_(run.small),
        sums_(run.eval ? std::vector<GradientSum>() : GradientSums(run.small)),
        scalars_(run.key),
        state_(run, findings),
        collectives_(scalars_, &state_) {}

  RunCounts Run() {
    FillParameters(&state_);
    const std::string stuck = WalkSteps(plan_, run_.eval, 1, this);
    if (!stuck.empty()) state_.Fail("meaning_v1", state_.ProgramName(), stuck);
    if (!state_.failed()) CompareResults(&state_);
    return {scalars_.calls(), scalars_.zero_denominators() - zeros_in_padding_};
  }

  void BeginStep(int c, int /*step*/) override {
    const PlanClass& held = plan_.classes[static_cast<size_t>(c)];
    for (const Range& range : ZeroedRanges(held, run_.eval)) state_.store(c).Zero(range);
    if (run_.eval) return;
    for (const GradientSum& sum : sums_) {
      if (sum.class_index == c) StartSum(sum);
    }
    for (const NamedAddress& scalar : held.scalars) {
      const ResidueTensor value = run_.inputs.Real(scalar.name, kScalarTile);
      state_.store(c).Write({scalar.address, scalar.address + SizeOf(DType::kF64)},
                            {&scalar.name, kNoLayer, &kScalarTile, &kWholeScalar},
                            Tiles(state_.ranks(c).size(), value));
    }
  }

  void Run(const InstrSite& site) override {
    if (state_.failed()) return;
    if (site.instr->kind == InstrKind::kLoad) {
      Load(site);
    } else if (site.instr->op->collective) {
      collectives_.RunLocal(site);
    } else {
      Compute(site);
    }
  }

  void Start(const InstrSite& site) override {
    if (!state_.failed()) collectives_.Start(site);
  }
  void Collective(absl::Span<const InstrSite> sites) override {
    if (!state_.failed()) collectives_.Complete(sites);
  }
  void Wait(const InstrSite& site) override {
    if (!state_.failed()) collectives_.Wait(site);
  }
  void Await(const InstrSite& site) override {
    if (!state_.failed()) collectives_.Await(site);
  }

  void Transfer(int from, const mgc::Transfer& send, int to,
                const mgc::Transfer& receive) override {
    if (state_.failed()) return;
    const PlanClass& c = plan_.classes[static_cast<size_t>(from)];
    const Chunk& chunk =
        (run_.eval ? c.eval_chunks : c.chunks)[static_cast<size_t>(send.ref.chunk)];
    const bool forward = send.ref.kind == TransferKind::kSendForward;
    const std::string place = absl::StrCat("class ", c.coordinate, ", ", chunk.stage,
                                           WordOf(send.ref.kind), send.ref.micro_batch);
    const std::map<int64_t, const Slot*> slots = SlotsSent(plan_, chunk, forward);
    if (slots.empty()) return state_.Fail("meaning_v2", place, "sends what no call makes");
    for (const auto& [offset, slot] : slots) {
      const TileView view = {&slot->name, kNoLayer, &slot->type, &slot->sharding};
      const Range sent = {send.address + offset, send.address + offset + slot->bytes};
      absl::StatusOr<const Tiles*> tiles = state_.store(from).Read(sent, view);
      if (!tiles.ok()) return state_.Fail(tiles.status(), place);
      Tiles moved = **tiles;
      const int64_t received = receive.address + offset;
      state_.store(to).Write({received, received + slot->bytes}, view, std::move(moved));
    }
  }

 private:
  void StartSum(const GradientSum& sum) {
    Tiles shares;
    for (int64_t rank : state_.ranks(sum.class_index)) {
      shares.push_back(ShareOfSum(run_.inputs, sum, plan_.mesh, rank));
    }
    state_.store(sum.class_index)
        .Write(sum.range, {&sum.slot->name, sum.layer, &sum.slot->type, &sum.slot->sharding},
               std::move(shares));
  }

  void Load(const InstrSite& site) {
    const int index = site.instr->outputs[0];
    const Slot& slot = SlotOf(site, index);
    const std::string name = site.instr->attrs.Text("name");
    const ResidueTensor* data = run_.inputs.Data(name, site.action->ref.micro_batch);
    if (data == nullptr || data->shape != SizesOf(slot.type) ||
        data->is_index != (slot.type.dtype == DType::kI64)) {
      return state_.Fail("meaning_v3", state_.PlaceOf(site),
                         absl::StrCat("loads `", name, "` as ", slot.type.ToString(),
                                      ", which the model does not have so"));
    }
    Tiles tiles;
    for (int64_t rank : state_.ranks(site.class_index)) {
      tiles.push_back(CutTile(*data, slot.type, slot.sharding, plan_.mesh, rank));
    }
    state_.Write(site, index, std::move(tiles));
  }

  void Compute(const InstrSite& site) {
    std::vector<const Tiles*> operands;
    for (int slot : site.instr->inputs) {
      operands.push_back(state_.Read(site, slot));
      if (operands.back() == nullptr) return;
    }
    const BoundInstr& bound = state_.bound().Of(site);
    const Attrs named = bound.names_layer ? state_.bound().AttrsFor(site) : Attrs();
    const Attrs& attrs = bound.names_layer ? named : site.instr->attrs;
    const size_t ranks = state_.ranks(site.class_index).size();
    std::vector<Tiles> results(site.instr->outputs.size(), Tiles(ranks));
    for (size_t r = 0; r < ranks; ++r) {
      EvalContext<ResidueModel> context{scalars_,  attrs, bound.rule, bound.pieces[r],
                                        kStepSeed, {},    {}};
      MoveToMicroBatch(site, bound, &context.pieces);
      for (const Tiles* tiles : operands) context.inputs.push_back(&(*tiles)[r]);
      for (size_t o = 0; o < results.size(); ++o) {
        results[o][r] = ResidueTensor::Make(bound.shapes[o], bound.is_index[o]);
        context.outputs.push_back(&results[o][r]);
      }
      const int64_t zeros = scalars_.zero_denominators();
      site.instr->op->eval(context);
      if (IsPadded(context.pieces)) zeros_in_padding_ += scalars_.zero_denominators() - zeros;
    }
    for (size_t o = 0; o < results.size() && !state_.failed(); ++o) {
      state_.Write(site, site.instr->outputs[o], std::move(results[o]));
    }
  }

  // Whether a rank has room beyond its piece of some factor. What lies there is zero, and so are
  // denominators; what follows from them is cleared.
  static bool IsPadded(const std::vector<DimPiece>& pieces) {
    return std::any_of(pieces.begin(), pieces.end(),
                       [](const DimPiece& piece) { return piece.valid < piece.room; });
  }

  // Samples are counted over the step.
  static void MoveToMicroBatch(const InstrSite& site, const BoundInstr& bound,
                               std::vector<DimPiece>* pieces) {
    for (int f : bound.batch_factors) {
      const size_t factor = static_cast<size_t>(f);
      (*pieces)[factor].begin += site.action->ref.micro_batch * bound.rule.factors[factor].size;
    }
  }

  const PlanRun& run_;
  const Plan& plan_;
  const std::vector<GradientSum> sums_;
  const ResidueModel scalars_;
  int64_t zeros_in_padding_ = 0;  // denominators
  RunState state_;
  CollectiveRuns collectives_;
};

}  // namespace

RunCounts RunPlan(const PlanRun& run, Diagnostics* findings) { return Runner(run, findings).Run(); }

}  // namespace mgc
