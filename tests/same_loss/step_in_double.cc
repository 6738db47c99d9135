#include "tests/same_loss/step_in_double.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "graph/base/status.h"
#include "graph/eval/eval.h"
#include "graph/eval/models/scalar.h"
#include "graph/ir/step_gradients.h"
#include "graph/ir/step_names.h"
#include "graph/plan/data_input.h"
#include "passes/graph/differentiate.h"
#include "tests/same_loss/train_samples.h"

namespace mgc {
namespace {

using Evaluator = GraphEvaluator<DoubleModel>;
using Values = HostTensor<double>;

// The values of samples [first, first + batch) of an input.
Values ValuesOf(const Samples& samples, int64_t first, int64_t batch) {
  std::vector<int64_t> shape = samples.shape;
  const int64_t row = NumElements(shape) / shape[0];
  shape[0] = batch;
  auto values = Values::Make(shape, !samples.indices.empty());
  for (int64_t i = 0; i < batch * row; ++i) {
    const auto from = static_cast<size_t>(first * row + i);
    const auto to = static_cast<size_t>(i);
    if (values.is_index) values.index[to] = samples.indices[from];
    if (!values.is_index) values.real[to] = double{samples.reals[from]};
  }
  return values;
}

// Parameters, no moments, a step that changes nothing.
absl::Status SetState(const Graph& graph, const Tensors& parameters, Evaluator* evaluator) {
  for (const GraphInput& input : graph.inputs()) {
    if (input.kind == InputKind::kData) continue;
    const std::string& name = graph.value(input.value).name;
    evaluator->SetZero(input.value);
    if (input.kind == InputKind::kScalar) {
      auto one = Values::Make({}, false);
      one.real[0] = 1;
      evaluator->Set(input.value, one);
    }
    if (input.kind != InputKind::kParam) continue;
    const auto found = parameters.find(name);
    if (found == parameters.end()) return absl::NotFoundError(absl::StrCat("no parameter ", name));
    auto values = Values::Make(SizesOf(graph.type(input.value)), false);
    values.real.assign(found->second.begin(), found->second.end());
    evaluator->Set(input.value, values);
  }
  return absl::OkStatus();
}

double ReportOf(const Graph& graph, const Evaluator& evaluator, absl::string_view name) {
  for (const GraphOutput& output : graph.outputs()) {
    if (output.kind != OutputKind::kReport || output.name != name) continue;
    return evaluator.Whole(output.value).real[0];
  }
  return NAN;
}

constexpr double kTimes = 4;  // as far off as one rank many may be

double SquaredDistance(const std::vector<double>& exact, const std::vector<float>& found) {
  double squares = 0;
  for (size_t i = 0; i < exact.size(); ++i) {
    squares += std::pow(exact[i] - double{found[i]}, 2);
  }
  return squares;
}

double Distance(double found, double exact) {
  return found == exact ? 0 : std::fabs(found - exact) / std::fabs(exact);
}

// Gradients that cancel are compared with the norm of all.
bool Cancels(const StepInDouble& exact, const std::vector<double>& gradient,
             const std::vector<float>& found) {
  return LargestDifference(gradient, found) < 1e-6 * exact.grad_norm;
}

// Collects what is farther from float64 than it may be.
class Comparison {
 public:
  void Add(const std::string& what, double one, double many, double always) {
    if (many <= std::max(always, kTimes * one)) return;
    absl::StrAppendFormat(&text_, "%s is off by %.3g, on one rank by %.3g; ", what, many, one);
  }
  std::string text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace

absl::StatusOr<StepInDouble> TakeStepInDouble(const Plan& plan, uint64_t seed) {
  MGC_ASSIGN_OR_RETURN(const Tensors parameters, FirstParameters(plan, seed));
  MGC_ASSIGN_OR_RETURN(const Graph graph, Differentiate(plan.model));
  Evaluator evaluator(graph, DoubleModel(), seed);
  MGC_RETURN_IF_ERROR(SetState(graph, parameters, &evaluator));
  constexpr Phase kMicroBatch[] = {Phase::kForward, Phase::kBackward};
  constexpr Phase kUpdate[] = {Phase::kUpdate};
  const int64_t batch = plan.global_batch_size / plan.num_micro_batches;
  for (int64_t first = 0; first < plan.global_batch_size; first += batch) {
    for (const DataInput& input : DataInputsOf(plan)) {
      const Samples samples = SamplesOf(plan, input, plan.global_batch_size);
      evaluator.Set(graph.FindValue(input.name), ValuesOf(samples, first, batch));
    }
    evaluator.Run(kMicroBatch, first);
    evaluator.Assign(kMicroBatch);
  }
  evaluator.Run(kUpdate, /*first_sample=*/0);
  StepInDouble step;
  step.loss = ReportOf(graph, evaluator, kLossReport);
  step.grad_norm = ReportOf(graph, evaluator, kGradNormReport);
  const double factor = ReportOf(graph, evaluator, kGradFactorReport);
  for (const auto& [param, sum] : GradientsOf(graph)) {
    std::vector<double>& gradient = step.gradients[graph.value(param).name];
    gradient = evaluator.Whole(sum).real;
    for (double& element : gradient) element *= factor;
  }
  return step;
}

bool IsBeyondF32(const StepInDouble& exact, const TrainResult& one) {
  constexpr double kMost = 1e-2;
  const auto is_near = [](double distance) { return distance <= kMost; };  // no NaN is
  if (!is_near(Distance(one.losses[0], exact.loss))) return true;
  if (!is_near(Distance(one.grad_norms[0], exact.grad_norm))) return true;
  return std::any_of(one.gradients.begin(), one.gradients.end(), [&](const auto& entry) {
    const auto gradient = exact.gradients.find(entry.first);
    if (gradient == exact.gradients.end()) return false;
    if (Cancels(exact, gradient->second, entry.second)) return false;
    return !is_near(RelativeL2(gradient->second, entry.second));
  });
}

std::string DifferenceFrom(const StepInDouble& exact, const TrainResult& one,
                           const TrainResult& many) {
  Comparison comparison;
  double farthest = 0;  // gradient of one rank
  double squares = 0;   // of what all of them are off by
  comparison.Add("loss", Distance(one.losses[0], exact.loss), Distance(many.losses[0], exact.loss),
                 1e-6);
  for (const auto& [name, gradient] : exact.gradients) {
    const auto on_one = one.gradients.find(name);
    const auto on_many = many.gradients.find(name);
    if (on_one == one.gradients.end() || on_many == many.gradients.end() ||
        on_one->second.size() != gradient.size() || on_many->second.size() != gradient.size()) {
      return absl::StrCat("no gradient of ", name);
    }
    const double one_off = RelativeL2(gradient, on_one->second);
    squares += SquaredDistance(gradient, on_one->second);
    if (Cancels(exact, gradient, on_many->second)) continue;
    farthest = std::max(farthest, one_off);
    comparison.Add(absl::StrCat("gradient of ", name), one_off,
                   RelativeL2(gradient, on_many->second), 1e-5);
  }
  // A norm is off by no more than what it is the norm of; that it is off by less is luck.
  comparison.Add("norm of gradients", std::sqrt(squares) / exact.grad_norm,
                 Distance(many.grad_norms[0], exact.grad_norm), 1e-6);
  std::string text = comparison.text();
  if (one.losses.size() != many.losses.size()) return text + "another number of losses";
  for (size_t i = 1; i < one.losses.size(); ++i) {
    if (Distance(many.losses[i], one.losses[i]) <= std::max(1e-5, kTimes * farthest)) continue;
    absl::StrAppendFormat(&text, "loss of step %d: %.9g and %.9g; ", i + 1, one.losses[i],
                          many.losses[i]);
  }
  return text;
}

}  // namespace mgc
