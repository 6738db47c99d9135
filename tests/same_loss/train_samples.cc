#include "tests/same_loss/train_samples.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "graph/base/random.h"
#include "graph/base/status.h"
#include "graph/ir/step_names.h"
#include "graph/ir/vocabulary.h"
#include "graph/plan/data_input.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu_kernels.h"
#include "runtime/data/safetensors.h"

namespace mgc {
namespace {

constexpr uint64_t kDataSeed = 5;
constexpr int64_t kSegments = 3;  // what indices that are not looked up count; 0 may be padding
constexpr int64_t kIgnoredEvery = 5;

bool Near(double a, double b, double relative) {
  return std::fabs(a - b) <= relative * std::max(std::fabs(a), std::fabs(b));
}

// Calls `use` with what trains the plan on samples for that many steps.
template <class Use>
auto WithSamples(const Plan& plan, int64_t steps, uint64_t seed, const Use& use)
    -> decltype(use(TrainOptions())) {
  const std::string path = absl::StrCat(testing::TempDir(), "/samples_", getpid(), ".safetensors");
  std::vector<Samples> all;
  for (const DataInput& input : DataInputsOf(plan)) {
    all.push_back(SamplesOf(plan, input, plan.global_batch_size * steps));
  }
  std::vector<SafetensorsView> views;
  TrainOptions options;
  for (const Samples& made : all) {
    views.push_back(made.indices.empty()
                        ? ViewOf(made.name, made.shape, absl::MakeConstSpan(made.reals))
                        : ViewOf(made.name, made.shape, absl::MakeConstSpan(made.indices)));
    options.inputs.push_back({made.name, {path, made.name}});
  }
  MGC_RETURN_IF_ERROR(WriteSafetensors(path, std::move(views)));
  const std::vector<KernelEntry> kernels = CpuKernels();
  options.kernels = kernels;
  options.seed = seed;
  options.lr.style = LrDecayStyle::kConstant;
  options.lr.max_lr = 1e-3;
  options.hyper[kEpsScalar] = 1e-3;  // what rounding leaves of a gradient of zero makes no step
  auto result = use(options);
  unlink(path.c_str());
  return result;
}

}  // namespace

Samples SamplesOf(const Plan& plan, const DataInput& input, int64_t samples) {
  Samples made{input.name, SizesOf(input.type), {}, {}};
  made.shape[0] = samples;
  const bool index = input.type.dtype == DType::kI64;
  const int64_t known = VocabularyOf(plan.model, input.name);
  const int64_t entries = known == 0 ? kSegments : known;
  const absl::optional<int64_t> ignored = IgnoredIndexOf(plan.model, input.name);
  const double shift = input.name == "weights" ? 0.5 : -1.0;
  const double scale = input.name == "weights" ? 1.0 : 2.0;
  for (int64_t i = 0; i < NumElements(made.shape); ++i) {
    const double uniform = RandomUniform(kDataSeed, StreamOf(input.name), static_cast<uint64_t>(i));
    if (index && ignored.has_value() && i % kIgnoredEvery == 0) {
      made.indices.push_back(*ignored);
    } else if (index) {
      made.indices.push_back(static_cast<int64_t>(uniform * static_cast<double>(entries)));
    } else {
      made.reals.push_back(static_cast<float>(shift + scale * uniform));
    }
  }
  return made;
}

absl::StatusOr<TrainResult> TrainOnSamples(const Plan& plan, int64_t steps, uint64_t seed) {
  return WithSamples(plan, steps, seed,
                     [&](const TrainOptions& options) { return TrainWith(plan, options, steps); });
}

absl::StatusOr<Tensors> FirstParameters(const Plan& plan, uint64_t seed) {
  return WithSamples(plan, 1, seed,
                     [&](const TrainOptions& options) { return FirstParameters(plan, options); });
}

ParallelConfig OnOneRank(const ParallelConfig& parallel) {
  ParallelConfig one;
  one.micro_batch_size = parallel.micro_batch_size * DataParallelSize(parallel);
  one.global_batch_size = parallel.global_batch_size;
  one.seq_length = parallel.seq_length;
  return one;
}

std::string Difference(const TrainResult& one, const TrainResult& many) {
  std::string text;
  const auto compare = [&](const char* what, const std::vector<double>& a,
                           const std::vector<double>& b, double first) {
    for (size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
      const bool same = i < a.size() && i < b.size() && Near(a[i], b[i], i == 0 ? first : 1e-5);
      if (!same) {
        absl::StrAppendFormat(&text, "%s of step %d: %.9g and %.9g; ", what, i + 1,
                              i < a.size() ? a[i] : NAN, i < b.size() ? b[i] : NAN);
      }
    }
  };
  compare("loss", one.losses, many.losses, 1e-6);
  const bool norms = !one.grad_norms.empty() && !many.grad_norms.empty() &&
                     Near(one.grad_norms[0], many.grad_norms[0], 1e-6);
  if (!norms) absl::StrAppend(&text, "norms of gradients; ");
  if (one.gradients.size() != many.gradients.size()) {
    absl::StrAppend(&text, "another number of gradients; ");
  }
  for (const auto& [name, gradient] : one.gradients) {
    const auto found = many.gradients.find(name);
    const double relative =
        found == many.gradients.end() ? INFINITY : RelativeL2(gradient, found->second);
    if (relative < 1e-5) continue;
    if (norms && found != many.gradients.end() &&
        LargestDifference(gradient, found->second) < 1e-6 * one.grad_norms[0]) {
      continue;
    }
    absl::StrAppendFormat(&text, "gradient of %s by %.3g; ", name, relative);
  }
  return text;
}

}  // namespace mgc
