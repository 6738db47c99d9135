// Hostile models: what an op's own examples become when sizes, names and attributes change is
// shrunk and evaluated with its gradients, or refused.

#include <iostream>
#include <map>
#include <random>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "graph/ir/assemble.h"
#include "graph/ir/op.h"
#include "graph/verify/meaning/check_model.h"
#include "graph/verify/meaning/reference.h"
#include "graph/verify/meaning/step_inputs.h"
#include "graph/verify/shrink/shrink.h"
#include "gtest/gtest.h"
#include "tests/fuzz/fuzz_cases.h"

namespace mgc {
namespace {

constexpr int kCases = 2000;
constexpr double kLongest = 30;  // CPU seconds of a model, also with sanitizers
constexpr uint64_t kKey = 5;

// A model of one use of an op, whose results are summed up to losses.
class RandomModel {
 public:
  explicit RandomModel(std::mt19937* random) : random_(*random), builder_("g") {
    builder_.set_num_layers(1);
    count_ = Emit("total",
                  {builder_.AddInput("weights", {DType::kF32, {{4, "", 1}}}, InputKind::kData)});
  }

  // False when the op refuses the use.
  bool Add(const OpDef& op) {
    const OpCase& example = op.cases[Below(&random_, op.cases.size())];
    std::vector<ValueId> inputs;
    std::vector<const TensorType*> operands;
    for (const TensorType& type : TypesOf(example.operands)) {
      const bool data = type.dtype == DType::kI64 || Below(&random_, 4) == 0;
      inputs.push_back(builder_.AddInput(absl::StrCat("p", inputs.size()), type,
                                         data ? InputKind::kData : InputKind::kParam));
    }
    operands.reserve(inputs.size());
    for (ValueId id : inputs) operands.push_back(&builder_.graph().type(id));
    Attrs attrs = example.attrs;
    if (Below(&random_, 3) == 0) attrs = Changed(attrs);
    CoerceAttrs(op.attrs, &attrs);
    if (!InferNode(op, attrs, operands).ok()) return false;
    const std::vector<std::string> names(op.results.size(), "r");
    const absl::StatusOr<std::vector<ValueId>> made =
        builder_.Append(op.name, inputs, attrs, Node(), names);
    if (!made.ok()) return false;
    for (ValueId id : *made) {
      if (builder_.graph().type(id).dtype == DType::kI64 || Below(&random_, 4) == 0) continue;
      builder_.AddOutput({Emit("total", {id}), OutputKind::kLoss, "loss", kNone, 1.5});
    }
    return true;
  }

  Graph Finish() {
    if (builder_.graph().outputs().empty()) {
      builder_.AddOutput({count_, OutputKind::kLoss, "loss", kNone, 1.0});
    }
    builder_.AddOutput({count_, OutputKind::kReport, "count", kNone, 1.0});
    return std::move(builder_).Finish();
  }

 private:
  ValueId Emit(const char* op, std::vector<ValueId> inputs) {
    return builder_.Emit(op, std::move(inputs), {}, Node(), "s");
  }

  // `f32[2,vocab=5%2], i64[3]<4` with sizes and names exchanged, equal ones alike most of the time.
  std::vector<TensorType> TypesOf(const std::string& text) {
    std::vector<TensorType> types;
    std::map<std::string, Dim> dims;
    for (absl::string_view part : absl::StrSplit(text, ']', absl::SkipEmpty())) {
      const size_t open = part.find('[');
      if (open == absl::string_view::npos) continue;
      absl::string_view dtype = part.substr(0, open);
      dtype = dtype.substr(dtype.find_last_of(" ,") + 1);
      TensorType type;
      if (!ParseDType(dtype, &type.dtype)) continue;
      for (absl::string_view dim : absl::StrSplit(part.substr(open + 1), ',', absl::SkipEmpty())) {
        auto [it, is_new] = dims.try_emplace(std::string(dim));
        if (is_new || Below(&random_, 30) == 0) it->second = RandomDim(dim);
        type.dims.push_back(it->second);
      }
      types.push_back(std::move(type));
    }
    return types;
  }

  Dim RandomDim(absl::string_view text) {
    static const char* const kNames[] = {"", "batch", "seq", "vocab", "heads", "a"};
    static constexpr int64_t kSizes[] = {1, 2, 3, 4, 5, 6, 8, 12, 16, 60, 1000, 1 << 20};
    Dim dim = {1, "", 1};
    const size_t percent = text.find('%');
    if (percent != absl::string_view::npos) dim.multiple = 2;
    const absl::string_view size = text.substr(0, percent);
    const size_t equals = size.find('=');
    (void)absl::SimpleAtoi(equals == absl::string_view::npos ? size : size.substr(equals + 1),
                           &dim.size);
    if (Below(&random_, 2) == 0) dim.size = kSizes[Below(&random_, std::size(kSizes))];
    dim.name = kNames[Below(&random_, std::size(kNames))];
    return dim;
  }

  Attrs Changed(const Attrs& attrs) {
    static constexpr double kReals[] = {0, 0.5, -1, 1e-300, 1e300};
    Attrs changed;
    for (const Attrs::Entry& entry : attrs) {
      AttrValue value = entry.second;
      if (auto* number = std::get_if<int64_t>(&value)) {
        *number += static_cast<int64_t>(Below(&random_, 3)) - 1;
      } else if (auto* real = std::get_if<double>(&value)) {
        *real = kReals[Below(&random_, std::size(kReals))];
      } else if (auto* list = std::get_if<std::vector<int64_t>>(&value)) {
        for (int64_t& n : *list) n += static_cast<int64_t>(Below(&random_, 9)) / 8;
      }
      changed.Set(entry.first, std::move(value));
    }
    return changed;
  }

  std::mt19937& random_;
  GraphBuilder builder_;
  ValueId count_ = kNone;
};

TEST(ModelFuzzTest, RandomUsesOfEveryOp) {
  size_t turn = 0;
  int models = 0;
  int evaluated = 0;
  std::map<std::string, int> uses;
  RunFuzzCases("random uses of ops", kCases, [&](std::mt19937* random) {
    const OpDef& op = AllOps()[turn++ % AllOps().size()];
    SCOPED_TRACE(absl::StrCat("op ", op.name));
    RandomModel model(random);
    if (op.cases.empty() || op.collective || !model.Add(op)) return;
    ++models;
    Plan plan;
    plan.model = model.Finish();
    plan.num_micro_batches = 2;
    const double begin = CpuSeconds();
    if (!CheckModel(plan.model).ok()) return;
    const absl::StatusOr<Plan> small = ShrinkPlan(plan, Mesh(), WorkOfStep);
    if (!small.ok()) return;
    const StepInputs inputs(small->model, kKey);
    const absl::StatusOr<StepReference> step = EvaluateStep(small->model, inputs, kKey, {2});
    evaluated += step.ok() ? 1 : 0;
    uses[op.name] += step.ok() ? 1 : 0;
    EXPECT_LT(CpuSeconds() - begin, kLongest);
  });
  std::cout << models << " models, " << evaluated << " evaluated, of " << uses.size() << " ops\n";
  EXPECT_GT(evaluated, 50);
}

}  // namespace
}  // namespace mgc
