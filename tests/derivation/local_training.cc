#include "tests/derivation/local_training.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "frontends/models.h"
#include "graph/base/random.h"
#include "graph/base/status.h"
#include "graph/ir/collective.h"
#include "graph/ir/op.h"
#include "graph/ir/step_gradients.h"
#include "graph/ir/step_names.h"
#include "passes/graph/differentiate.h"
#include "passes/graph/shard/partition.h"
#include "passes/graph/shard/shard.h"
#include "passes/graph/shard/strategy.h"
#include "passes/graph/simplify.h"

namespace mgc {
namespace {

constexpr int kMicroBatches = 2;
constexpr uint64_t kSeed = 7;

template <class T>
T Must(absl::StatusOr<T> result) {
  MGC_CHECK(result.ok()) << result.status().ToString();
  return *std::move(result);
}

HostTensor<double> Random(const TensorType& type, const std::string& name, double scale,
                          double shift) {
  std::vector<int64_t> shape;
  for (const Dim& dim : type.dims) shape.push_back(dim.size);
  HostTensor<double> tensor = HostTensor<double>::Make(shape, type.dtype == DType::kI64);
  const uint64_t stream = StreamOf(name);
  for (int64_t i = 0; i < tensor.size(); ++i) {
    const double uniform = RandomUniform(kSeed, stream, static_cast<uint64_t>(i));
    if (tensor.is_index) {
      tensor.index[i] = static_cast<int64_t>(uniform * shift);
    } else {
      tensor.real[i] = shift + scale * (uniform - 0.5);
    }
  }
  return tensor;
}

HostTensor<double> Scalar(double value) {
  HostTensor<double> tensor = HostTensor<double>::Make({}, false);
  tensor.real[0] = value;
  return tensor;
}

// Sets a value to what the doubles are in the evaluator's model.
template <class M>
void SetReals(ValueId value, const HostTensor<double>& reals, GraphEvaluator<M>* eval) {
  auto tensor = GraphEvaluator<M>::Tensor::Make(reals.shape, reals.is_index);
  tensor.index = reals.index;
  for (size_t i = 0; i < reals.real.size(); ++i) {
    tensor.real[i] = eval->model().Constant(reals.real[i]);
  }
  eval->Set(value, tensor);
}

template <class M>
void SetInputs(const TinyModel& model, int micro_batch, GraphEvaluator<M>* eval,
               const Graph& graph) {
  for (const GraphInput& input : graph.inputs()) {
    if (input.kind != InputKind::kData) continue;
    const Value& value = graph.value(input.value);
    const std::string name = absl::StrCat(value.name, micro_batch);
    const bool index = value.type.dtype == DType::kI64;
    HostTensor<double> data =
        Random(value.type, name, 1.0, index ? static_cast<double>(model.config.vocab) : 0.9);
    if (!index) data.real[1] = 0.0;  // a token that does not count
    SetReals(input.value, data, eval);
  }
}

template <class M>
void SetState(GraphEvaluator<M>* eval, const Graph& graph) {
  const std::map<std::string, double> scalars = {
      {"lr", 0.01},  {"decay", 0.1},       {"beta1", 0.9},        {"beta2", 0.99},
      {"eps", 1e-8}, {"correction1", 0.1}, {"correction2", 0.01}, {"max_norm", 0.05}};
  for (const GraphInput& input : graph.inputs()) {
    const Value& value = graph.value(input.value);
    if (input.kind == InputKind::kParam) {
      const bool norm =
          absl::StrContains(value.name, "norm") && !absl::EndsWith(value.name, "bias");
      SetReals(input.value, Random(value.type, value.name, 0.3, norm ? 1.0 : 0.0), eval);
    } else if (input.kind == InputKind::kScalar) {
      SetReals(input.value, Scalar(scalars.at(value.name)), eval);
    } else if (input.kind != InputKind::kData) {
      eval->SetZero(input.value);
    }
  }
}

template <class M>
std::map<std::string, HostTensor<typename M::Scalar>> RunStepOf(const TinyModel& model,
                                                                const Graph& local,
                                                                GraphEvaluator<M>* eval) {
  SetState(eval, local);
  const Phase kPrepare[] = {Phase::kPrepare};
  const Phase kPasses[] = {Phase::kForward, Phase::kBackward};
  const Phase kUpdate[] = {Phase::kUpdate};
  eval->Run(kPrepare, 0);
  for (int m = 0; m < kMicroBatches; ++m) {
    SetInputs(model, m, eval, local);
    eval->Run(kPasses, m * model.batch);
    eval->Assign(kPasses);
  }
  eval->Run(kUpdate, 0);
  std::map<std::string, HostTensor<typename M::Scalar>> values;
  const auto gradients = GradientsOf(local);
  for (const GraphOutput& output : local.outputs()) {
    if (output.kind == OutputKind::kReport) values[output.name] = eval->Whole(output.value);
    if (output.kind != OutputKind::kAssign) continue;
    const std::string& target = local.value(output.target).name;
    if (local.FindInput(output.target)->kind != InputKind::kParam) continue;
    values[target] = eval->Whole(output.value);
    values[GradName(target)] = eval->Whole(gradients.at(output.target));
  }
  return values;
}

}  // namespace

TinyModel TinyGpt() {
  TinyModel model;
  model.config = Must(LoadModelPreset("gpt2-tiny"));
  model.config.layers = 2;
  model.config.hidden = 16;
  model.config.heads = 4;
  model.config.kv_heads = 4;
  model.config.head_dim = 4;
  model.config.ffn = 24;
  model.config.vocab = 13;
  return model;
}

TinyModel TinyLlama() {
  TinyModel model;
  model.config = Must(LoadModelPreset("llama-tiny"));
  model.config.layers = 2;
  model.config.hidden = 16;
  model.config.heads = 8;
  model.config.kv_heads = 2;
  model.config.head_dim = 4;
  model.config.ffn = 24;
  model.config.vocab = 13;
  return model;
}

ParallelConfig ConfigOf(int64_t tp, int64_t dp, bool sequence_parallel, int64_t zero) {
  ParallelConfig config;
  config.tp = tp;
  config.world_size = tp * dp;
  config.sequence_parallel = sequence_parallel;
  config.zero = zero;
  return config;
}

Graph LocalGraph(const TinyModel& model, const ParallelConfig& parallel) {
  const Graph logical = Must(BuildModel(model.config, model.batch, model.seq));
  const Graph training = Simplify(Must(Differentiate(Simplify(logical))));
  const MeshStrategy bound = Must(BindStrategy(DefaultStrategy(), parallel, SizesOf(training)));
  return Partition(Must(Shard(training, bound.mesh, bound.strategy)).graph);
}

StepValues RunStep(const TinyModel& model, const Graph& local) {
  GraphEvaluator<DoubleModel> eval(local, DoubleModel(), kSeed);
  return {RunStepOf(model, local, &eval)};
}

ExactStepValues RunExactStep(const TinyModel& model, const Graph& local, uint64_t key) {
  GraphEvaluator<ResidueModel> eval(local, ResidueModel(key), kSeed);
  ExactStepValues step;
  step.values = RunStepOf(model, local, &eval);
  step.zero_denominators = eval.model().zero_denominators();
  return step;
}

double RelativeError(const HostTensor<double>& a, const HostTensor<double>& b) {
  MGC_CHECK(a.shape == b.shape) << "shapes differ";
  double difference = 0;
  double largest = 1e-300;
  for (size_t i = 0; i < a.real.size(); ++i) {
    difference = std::max(difference, std::fabs(a.real[i] - b.real[i]));
    largest = std::max(largest, std::fabs(a.real[i]));
  }
  return difference / largest;
}

std::map<std::string, int> CountCollectives(const Graph& local, Phase phase, int layer) {
  std::map<std::string, int> counts;
  for (const Node& node : local.nodes()) {
    if (!node.op->collective || node.phase != phase) continue;
    if (phase != Phase::kUpdate && node.layer != layer) continue;
    const Collective collective = CollectiveOf(local, node);
    if (!collective.MovesData()) continue;
    ++counts[absl::StrCat(NameOf(collective.kind), " ", node.attrs.Text("label"), " ",
                          local.mesh().GroupName(collective.axes.AsSet()))];
  }
  return counts;
}

}  // namespace mgc
