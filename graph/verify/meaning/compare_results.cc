// What a run starts from, and what it must leave: the ends of graph/verify/meaning/run_state.h.

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "graph/eval/eval.h"
#include "graph/ir/optimizers.h"
#include "graph/ir/results.h"
#include "graph/verify/meaning/run_state.h"

namespace mgc {
namespace {

// States and the gradient are the owner's: laid out as its state.
enum class TensorOf : uint8_t { kParam, kState };

const Sharding& ShardingOf(const ParamEntry& entry, TensorOf of) {
  return of == TensorOf::kState ? entry.state_sharding : entry.sharding;
}

// A parameter as a class holds it for one layer.
struct HeldParam {
  int class_index;
  const HeldBlock& held;
  const ParamEntry& entry;  // at small sizes
  const ParamEntry& real;
  std::string name;

  // The memory of one of its tensors, at the plan's own sizes.
  Range RangeAt(int64_t begin, TensorOf of, const Mesh& real_mesh) const {
    const int64_t elements = LocalElements(real.type, ShardingOf(real, of), real_mesh);
    return {begin, begin + elements * SizeOf(real.type.dtype)};
  }
  const Sharding& sharding(TensorOf of) const { return ShardingOf(entry, of); }
  int64_t param() const { return held.param_base + entry.param_offset; }
  int64_t At(const ParamState& state) const { return held.state_base + state.offset; }
};

void ForEachParam(RunState* state, absl::FunctionRef<void(const HeldParam&)> fn) {
  const Plan& small = state->plan();
  const Plan& real = state->run().real;
  for (int c = 0; c < state->num_classes(); ++c) {
    for (const HeldBlock& held : small.classes[static_cast<size_t>(c)].blocks) {
      const size_t block = static_cast<size_t>(held.block);
      for (size_t e = 0; e < small.blocks[block].entries.size() && !state->failed(); ++e) {
        const ParamEntry& entry = small.blocks[block].entries[e];
        fn({c, held, entry, real.blocks[block].entries[e], NameForLayer(entry.name, held.layer)});
      }
    }
  }
}

void Fill(const HeldParam& param, const std::string& input, int64_t at, TensorOf of,
          RunState* state) {
  const Sharding& sharding = param.sharding(of);
  const ResidueTensor whole = state->run().inputs.Real(input, param.entry.type);
  Tiles tiles;
  for (int64_t rank : state->ranks(param.class_index)) {
    tiles.push_back(CutTile(whole, param.entry.type, sharding, state->plan().mesh, rank));
  }
  state->store(param.class_index)
      .Write(param.RangeAt(at, of, state->run().real.mesh),
             {&param.entry.name, param.held.layer, &param.entry.type, &sharding}, std::move(tiles));
}

std::string PlaceOf(const HeldParam& param, const RunState& state) {
  const PlanClass& c = state.plan().classes[static_cast<size_t>(param.class_index)];
  return absl::StrCat("class ", c.coordinate, ", parameter `", param.name, "`");
}

// What is wrong with one of a parameter's tensors, its label at the end; OK if nothing is.
absl::Status CompareTiles(const HeldParam& param, absl::string_view what,
                          const ResidueTensor& whole, int64_t at, TensorOf of, RunState* state) {
  const Sharding& sharding = param.sharding(of);
  const Mesh& mesh = state->plan().mesh;
  const int c = param.class_index;
  absl::StatusOr<const Tiles*> tiles =
      state->store(c).Read(param.RangeAt(at, of, state->run().real.mesh),
                           {&param.entry.name, param.held.layer, &param.entry.type, &sharding});
  if (!tiles.ok()) return tiles.status();
  if (whole.shape != SizesOf(param.entry.type)) {
    return absl::InvalidArgumentError(absl::StrCat("its ", what, " is of other sizes than ",
                                                   param.entry.type.ToString(), " [meaning_v4]"));
  }
  for (size_t r = 0; r < state->ranks(c).size(); ++r) {
    const int64_t rank = state->ranks(c)[r];
    if (CutTile(whole, param.entry.type, sharding, mesh, rank).real == (**tiles)[r].real) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("its ", what, " ", ToString(sharding, mesh),
                     state->run().eval ? " after an evaluation" : " after the step",
                     " is not that of a single device, ", "first on rank ", rank,
                     " of the shrunk mesh [meaning_v4]"));
  }
  return absl::OkStatus();
}

const UpdatedParam* ExpectedOf(const HeldParam& param, RunState* state) {
  const auto& params = state->run().expected.params;
  const auto found = params.find(param.name);
  if (found != params.end()) return &found->second;
  state->Fail("meaning_v4", "plan", absl::StrCat("the model has no parameter `", param.name, "`"));
  return nullptr;
}

// Of all gradients that differ the one nearest to the loss is named: there it began.
void CompareGradients(RunState* state) {
  absl::Status nearest;
  std::string place;
  int wrong = 0;
  ForEachParam(state, [&](const HeldParam& param) {
    const UpdatedParam* expected = ExpectedOf(param, state);
    const PlanClass& c = state->plan().classes[static_cast<size_t>(param.class_index)];
    const int64_t address = GradientAddress(state->plan(), c, param.held, param.entry);
    if (expected == nullptr || address < 0) return;
    const absl::Status compared =
        CompareTiles(param, "gradient", expected->gradient, address, TensorOf::kState, state);
    if (compared.ok()) return;
    nearest = compared;
    place = PlaceOf(param, *state);
    ++wrong;
  });
  if (wrong > 1) absl::StrAppend(&place, " (and ", wrong - 1, " nearer to the input)");
  if (wrong > 0) state->Fail(nearest, place);
}

// What an evaluation leaves as it was.
UpdatedParam StartOf(const HeldParam& param, const RunState& state) {
  const StepInputs& inputs = state.run().inputs;
  const TensorType& type = param.entry.type;
  UpdatedParam start;
  start.param = inputs.Real(param.name, type);
  for (const ParamState& state : param.entry.states) {
    start.states[state.name] = inputs.Real(StateName(param.name, state.name), type);
  }
  return start;
}

void CompareParam(const HeldParam& param, const UpdatedParam& expected, RunState* state) {
  absl::Status compared;
  for (const auto& [name, whole] : expected.states) {
    const ParamState* kept = FindState(param.entry, name);  // as its optimizer says: plan_c4
    compared.Update(kept == nullptr ? absl::InvalidArgumentError(absl::StrCat(
                                          "it does not keep its state ", name, " [meaning_v4]"))
                                    : CompareTiles(param, absl::StrCat("state ", name), whole,
                                                   param.At(*kept), TensorOf::kState, state));
  }
  compared.Update(
      CompareTiles(param, "value", expected.param, param.param(), TensorOf::kParam, state));
  if (!compared.ok()) state->Fail(compared, PlaceOf(param, *state));
}

Range RangeOf(const NamedAddress& number) {
  return {number.address, number.address + SizeOf(DType::kF64)};
}

// A number that all ranks of a class have; `what` says which.
void CompareNumber(int class_index, const NamedAddress& number, ResiduePair expected,
                   absl::string_view what, RunState* state) {
  const PlanClass& c = state->plan().classes[static_cast<size_t>(class_index)];
  const std::string place = absl::StrCat(state->ProgramName(), ", class ", c.coordinate);
  absl::StatusOr<const Tiles*> tiles =
      state->store(class_index)
          .Read(RangeOf(number), {&number.name, kNoLayer, &kScalarTile, &kWholeScalar});
  if (!tiles.ok()) return state->Fail(tiles.status(), place);
  for (const ResidueTensor& tile : **tiles) {
    if (tile.real[0] == expected) continue;
    return state->Fail(
        "meaning_v4", place,
        absl::StrCat("the ", what, " `", number.name, "` is not that of a single device"));
  }
}

void CompareReport(int class_index, const NamedAddress& report,
                   const std::map<std::string, ResiduePair>& expected, RunState* state) {
  const PlanClass& c = state->plan().classes[static_cast<size_t>(class_index)];
  const std::string place = absl::StrCat(state->ProgramName(), ", class ", c.coordinate);
  const auto found = expected.find(report.name);
  if (found == expected.end()) {
    return state->Fail("meaning_v4", place,
                       absl::StrCat("reports `", report.name, "`, which is no result of a step"));
  }
  CompareNumber(class_index, report, found->second, "reported", state);
}

// What a step leaves for the next is that of a single device on every rank; an evaluation leaves it
// as it was.
void CompareCarried(RunState* state) {
  const auto& expected = state->run().expected.carried;
  for (int c = 0; c < state->num_classes(); ++c) {
    for (const NamedAddress& carried : state->plan().classes[static_cast<size_t>(c)].carried) {
      const auto next = expected.find(carried.name);
      if (next == expected.end()) continue;  // placement_v18
      const ResiduePair start = state->run().inputs.Real(carried.name, kScalarTile).real[0];
      CompareNumber(c, carried, state->run().eval ? start : next->second, "carried", state);
    }
  }
}

void CompareReports(RunState* state) {
  const bool eval = state->run().eval;
  const auto& expected = eval ? state->run().expected.eval_reports : state->run().expected.reports;
  std::set<std::string> seen;
  for (int c = 0; c < state->num_classes(); ++c) {
    const PlanClass& held = state->plan().classes[static_cast<size_t>(c)];
    for (const NamedAddress& report : eval ? held.eval_reports : held.reports) {
      seen.insert(report.name);
      CompareReport(c, report, expected, state);
    }
  }
  for (const auto& [name, value] : expected) {
    if (seen.count(name) > 0) continue;
    state->Fail("meaning_v4", state->ProgramName(), absl::StrCat("no rank reports `", name, "`"));
  }
}

}  // namespace

void FillParameters(RunState* state) {
  ForEachParam(state, [&](const HeldParam& param) {
    Fill(param, param.name, param.param(), TensorOf::kParam, state);
    for (const ParamState& kept : param.entry.states) {
      Fill(param, StateName(param.name, kept.name), param.At(kept), TensorOf::kState, state);
    }
  });
  for (int c = 0; c < state->num_classes(); ++c) {
    for (const NamedAddress& carried : state->plan().classes[static_cast<size_t>(c)].carried) {
      const ResidueTensor value = state->run().inputs.Real(carried.name, kScalarTile);
      state->store(c).Write(RangeOf(carried),
                            {&carried.name, kNoLayer, &kScalarTile, &kWholeScalar},
                            Tiles(state->ranks(c).size(), value));
    }
  }
  FillKept(state);
}

void CompareResults(RunState* state) {
  CompareCarried(state);
  if (!state->run().eval) CompareLeft(state);
  if (state->run().eval || IsAsked(state->plan().model)) {
    CompareReports(state);
    ForEachParam(
        state, [&](const HeldParam& param) { CompareParam(param, StartOf(param, *state), state); });
    return;
  }
  CompareGradients(state);
  CompareReports(state);
  std::set<std::string> owned;
  ForEachParam(state, [&](const HeldParam& param) {
    if (param.held.owner) owned.insert(param.name);
    const UpdatedParam* expected = ExpectedOf(param, state);
    if (expected != nullptr) CompareParam(param, *expected, state);
  });
  for (const auto& [name, updated] : state->run().expected.params) {
    if (owned.count(name) > 0) continue;
    state->Fail("meaning_v4", "plan", absl::StrCat("no class owns parameter `", name, "`"));
  }
}

}  // namespace mgc
