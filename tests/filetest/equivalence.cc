#include "tests/filetest/equivalence.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/random.h"
#include "graph/eval/eval.h"
#include "graph/eval/models/residue_model.h"

namespace mgc {
namespace {

constexpr uint64_t kSeed = 20260722;
constexpr int64_t kIndices = 2;  // an index is below it: any table has two rows

using Evaluator = GraphEvaluator<ResidueModel>;
using Tensor = Evaluator::Tensor;

// What a sharded graph means: on one device its reshards change nothing.
Graph OnOneDevice(const Graph& sharded) {
  GraphBuilder builder(sharded.name(), Level::kTraining);
  builder.set_num_layers(sharded.num_layers());
  std::vector<ValueId> map(sharded.values().size(), kNone);
  const auto mapped = [&](ValueId id) {
    return id == kNone ? kNone : map[static_cast<size_t>(id)];
  };
  for (const GraphInput& input : sharded.inputs()) {
    const Value& value = sharded.value(input.value);
    map[static_cast<size_t>(input.value)] =
        builder.AddInput(value.name, value.type, input.kind, input.attrs);
  }
  for (Node node : sharded.nodes()) {
    std::vector<Value> results;
    for (ValueId& id : node.inputs) id = mapped(id);
    for (ValueId id : node.outputs) {
      results.push_back(sharded.value(id));
      results.back().sharding.reset();
      results.back().primal = mapped(results.back().primal);
    }
    const std::vector<ValueId> old = node.outputs;
    const NodeId made = builder.AppendRaw(std::move(node), std::move(results));
    for (size_t i = 0; i < old.size(); ++i) {
      map[static_cast<size_t>(old[i])] = builder.graph().node(made).outputs[i];
    }
  }
  for (GraphOutput output : sharded.outputs()) {
    output.value = mapped(output.value);
    output.target = mapped(output.target);
    builder.AddOutput(std::move(output));
  }
  return std::move(builder).Finish();
}

Tensor RandomTensor(const Value& value, const ResidueModel& model) {
  std::vector<int64_t> sizes;
  for (const Dim& dim : value.type.dims) sizes.push_back(dim.size);
  Tensor tensor = Tensor::Make(sizes, value.type.dtype == DType::kI64, model.Size(0));
  const uint64_t stream = StreamOf(value.name);
  for (int64_t i = 0; i < tensor.size(); ++i) {
    const double uniform = RandomUniform(kSeed, stream, static_cast<uint64_t>(i));
    const auto at = static_cast<size_t>(i);
    if (tensor.is_index) {
      tensor.index[at] = static_cast<int64_t>(uniform * kIndices);
    } else {
      tensor.real[at] = model.Constant(uniform);
    }
  }
  return tensor;
}

// Outputs by what they are for: `report "loss"`, `assign "w"`.
std::map<std::string, Tensor> OutputsOf(const Graph& source) {
  const Graph graph = source.level() == Level::kSharded ? OnOneDevice(source) : source;
  Evaluator eval(graph, ResidueModel(kSeed), kSeed);
  for (const GraphInput& input : graph.inputs()) {
    if (input.kind == InputKind::kAccumulator) {
      eval.SetZero(input.value);
    } else {
      eval.Set(input.value, RandomTensor(graph.value(input.value), eval.model()));
    }
  }
  constexpr Phase kMicroBatch[] = {Phase::kForward, Phase::kBackward};
  eval.Run({Phase::kPrepare}, 0);
  eval.Run(kMicroBatch, 0);
  eval.Assign(kMicroBatch);
  eval.Run({Phase::kUpdate}, 0);
  std::map<std::string, Tensor> outputs;
  for (const GraphOutput& output : graph.outputs()) {
    const std::string& name =
        output.kind == OutputKind::kAssign ? graph.value(output.target).name : output.name;
    outputs.emplace(absl::StrCat(NameOf(output.kind), " \"", name, "\""), eval.Whole(output.value));
  }
  return outputs;
}

std::string Difference(const Tensor& before, const Tensor& after) {
  if (before.shape != after.shape || before.is_index != after.is_index) return "another type";
  for (int64_t i = 0; i < before.size(); ++i) {
    const auto at = static_cast<size_t>(i);
    const bool same =
        before.is_index ? before.index[at] == after.index[at] : before.real[at] == after.real[at];
    if (!same) return absl::StrCat("another element ", i, " of ", before.size());
  }
  return "";
}

}  // namespace

absl::Status CheckEquivalent(const Graph& before, const Graph& after) {
  const std::map<std::string, Tensor> results = OutputsOf(after);
  for (const auto& [name, tensor] : OutputsOf(before)) {
    const auto result = results.find(name);
    const std::string difference =
        result == results.end() ? "no such output" : Difference(tensor, result->second);
    if (difference.empty()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("not equivalent: ", name, ": ", difference, " (seed ", kSeed, ")"));
  }
  return absl::OkStatus();
}

}  // namespace mgc
