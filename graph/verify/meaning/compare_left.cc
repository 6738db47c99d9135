// Tensors that a step of a model that is asked leaves (graph/ir/results.h): its results, and what
// it keeps for the next step.

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/eval/eval.h"
#include "graph/ir/results.h"
#include "graph/verify/meaning/run_state.h"

namespace mgc {
namespace {

// One of a class, at small and at the plan's own sizes.
struct LeftTensor {
  int class_index = 0;
  const NamedTensor& tensor;
  const NamedTensor& real;
  int layer = kNoLayer;
  int64_t base = 0;  // of its address

  std::string name() const { return NameForLayer(tensor.name, layer); }
  TileView view() const { return {&tensor.name, layer, &tensor.type, &tensor.sharding}; }
};

Range RangeOf(const LeftTensor& left, const RunState& state) {
  const NamedTensor& real = left.real;
  const int64_t elements = LocalElements(real.type, real.sharding, state.run().real.mesh);
  const int64_t begin = left.base + real.address;
  return {begin, begin + elements * SizeOf(real.type.dtype)};
}

// All that is kept for the next step.
std::vector<LeftTensor> KeptOf(const RunState& state) {
  const Plan& small = state.plan();
  const Plan& real = state.run().real;
  std::vector<LeftTensor> all;
  for (int c = 0; c < state.num_classes(); ++c) {
    for (const HeldBlock& held : small.classes[static_cast<size_t>(c)].blocks) {
      const size_t block = static_cast<size_t>(held.block);
      for (size_t k = 0; k < small.blocks[block].kept.size(); ++k) {
        all.push_back({c, small.blocks[block].kept[k], real.blocks[block].kept[k], held.layer,
                       held.state_base});
      }
    }
  }
  return all;
}

std::vector<LeftTensor> ResultsOf(const RunState& state) {
  std::vector<LeftTensor> all;
  for (int c = 0; c < state.num_classes(); ++c) {
    const size_t index = static_cast<size_t>(c);
    const std::vector<NamedTensor>& results = state.plan().classes[index].results;
    for (size_t i = 0; i < results.size(); ++i) {
      all.push_back({c, results[i], state.run().real.classes[index].results[i]});
    }
  }
  return all;
}

// What the model leaves under each name: its values.
using LeftValues = std::map<std::string, ValueId>;

LeftValues ResultsOfModel(const Graph& model) {
  LeftValues values;
  for (const GraphOutput* result : mgc::ResultsOf(model)) values[result->name] = result->value;
  return values;
}

LeftValues KeptOfModel(const Graph& model) {
  LeftValues values;
  for (const GraphOutput& output : model.outputs()) {
    if (output.kind != OutputKind::kAssign) continue;
    values[model.value(output.target).name] = output.value;
  }
  return values;
}

// Each once, and each that of a single device.
void Compare(const std::vector<LeftTensor>& all, const LeftValues& expected, absl::string_view what,
             RunState* state) {
  const Graph& model = state->plan().model;
  std::map<std::string, int> listed;
  for (const LeftTensor& left : all) {
    if (state->failed()) return;
    const std::string name = left.name();
    const PlanClass& c = state->plan().classes[static_cast<size_t>(left.class_index)];
    const std::string place = absl::StrCat("class ", c.coordinate, ", ", what, " `", name, "`");
    const auto value = expected.find(name);
    if (value == expected.end() ||
        SizesOf(model.type(value->second)) != SizesOf(left.tensor.type)) {
      return state->Fail("meaning_v4", place, "is nothing that the model leaves");
    }
    ++listed[name];
    absl::StatusOr<const Tiles*> tiles =
        state->store(left.class_index).Read(RangeOf(left, *state), left.view());
    if (!tiles.ok()) return state->Fail(tiles.status(), place);
    const ResidueTensor& whole =
        state->run().expected.values[0].at(model.value(value->second).name);
    for (size_t r = 0; r < state->ranks(left.class_index).size(); ++r) {
      const ResidueTensor tile = CutTile(whole, left.tensor.type, left.tensor.sharding,
                                         state->plan().mesh, state->ranks(left.class_index)[r]);
      if (tile.real == (**tiles)[r].real) continue;
      return state->Fail("meaning_v4", place, "is not that of a single device");
    }
  }
  for (const auto& [name, value] : expected) {
    if (listed[name] == 1) continue;
    state->Fail(
        "meaning_v4", "plan",
        absl::StrCat(listed[name], " classes have the ", what, " `", name, "`, and not one"));
  }
}

}  // namespace

void FillKept(RunState* state) {
  for (const LeftTensor& kept : KeptOf(*state)) {
    const ResidueTensor whole = state->run().inputs.Real(kept.name(), kept.tensor.type);
    Tiles tiles;
    for (int64_t rank : state->ranks(kept.class_index)) {
      tiles.push_back(
          CutTile(whole, kept.tensor.type, kept.tensor.sharding, state->plan().mesh, rank));
    }
    state->store(kept.class_index).Write(RangeOf(kept, *state), kept.view(), std::move(tiles));
  }
}

void CompareLeft(RunState* state) {
  if (!IsAsked(state->plan().model)) return;
  Compare(ResultsOf(*state), ResultsOfModel(state->plan().model), "result", state);
  Compare(KeptOf(*state), KeptOfModel(state->plan().model), "kept", state);
}

}  // namespace mgc
