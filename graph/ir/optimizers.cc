#include "graph/ir/optimizers.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/ir/step_names.h"

namespace mgc {
namespace {

constexpr Optimizer kOptimizers[] = {
    {"adamw", "Adam with decoupled weight decay (arXiv 1711.05101)", "adamw"},
    {"adam", "Adam with weight decay in the gradient (arXiv 1412.6980)", "adam"},
    {"sgd", "gradient descent with momentum", "sgd"},
    {"lion", "the sign of a mean of gradients (arXiv 2302.06675)", "lion"},
    {"muon", "momentum made orthogonal, of matrices in layers; adamw of all else", "decayed_step",
     "nesterov", "adamw"},
};

constexpr absl::string_view kClip = "clip";  // the last operand of the op that reads gradients

const OpDef& OpOf(absl::string_view name) {
  const OpDef* op = FindOp(name);
  MGC_CHECK(op != nullptr) << name;
  return *op;
}

const OpDef& KeepingOp(const Optimizer& optimizer) {
  return OpOf(optimizer.direction.empty() ? optimizer.step : optimizer.direction);
}

void AppendNew(const std::vector<std::string>& from, std::vector<std::string>* to) {
  for (const std::string& name : from) {
    if (std::find(to->begin(), to->end(), name) == to->end()) to->push_back(name);
  }
}

}  // namespace

absl::Span<const Optimizer> Optimizers() { return kOptimizers; }

const Optimizer* FindOptimizer(absl::string_view name) {
  const auto* found =
      std::find_if(std::begin(kOptimizers), std::end(kOptimizers),
                   [&](const Optimizer& optimizer) { return optimizer.name == name; });
  return found == std::end(kOptimizers) ? nullptr : found;
}

const Optimizer& OptimizerOf(const Attrs& of_param) {
  if (of_param.Find(kOptimizerAttr) == nullptr) return kOptimizers[0];
  const Optimizer* named = FindOptimizer(of_param.Text(kOptimizerAttr));
  MGC_CHECK(named != nullptr) << of_param.Text(kOptimizerAttr);
  return *named;
}

const OpDef* GuardedForm(const OpDef& op) { return FindOp(absl::StrCat("guarded_", op.name)); }

std::vector<std::string> StatesOf(const Optimizer& optimizer) {
  const std::vector<std::string>& results = KeepingOp(optimizer).results;
  return {results.begin() + 1, results.end()};
}

std::string StateName(absl::string_view param, absl::string_view state) {
  return absl::StrCat(param, "/", state);
}

std::vector<std::string> ScalarsOf(const Optimizer& optimizer) {
  std::vector<std::string> scalars;
  for (absl::string_view name : {optimizer.step, optimizer.direction}) {
    if (name.empty()) continue;
    const OpDef& op = OpOf(name);
    // Behind the tensors: as many states as results less one, the gradient, and the parameter.
    const size_t first = op.results.size() + (name == optimizer.direction ? 0 : 1);
    for (size_t i = first; i < op.operands.size(); ++i) {
      if (op.operands[i] != kClip) scalars.push_back(op.operands[i]);
    }
  }
  return scalars;
}

std::vector<std::string> UpdateScalars(const Graph& model) {
  std::vector<std::string> scalars;
  for (const Optimizer& optimizer : kOptimizers) {
    const bool used =
        std::any_of(model.inputs().begin(), model.inputs().end(), [&](const GraphInput& input) {
          return input.kind == InputKind::kParam && IsTrained(input.attrs) &&
                 &OptimizerOf(input.attrs) == &optimizer;
        });
    if (used) AppendNew(ScalarsOf(optimizer), &scalars);
  }
  scalars.emplace_back(kMaxNormScalar);
  return scalars;
}

}  // namespace mgc
