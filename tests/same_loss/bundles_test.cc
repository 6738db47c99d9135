// Models whose layers read more than their neighbour: cut into stages, they train as on one rank,
// bit for bit, since a cut changes no bit.

#include <unistd.h>

#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/file.h"
#include "graph/base/status.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu_kernels.h"
#include "runtime/data/safetensors.h"
#include "runtime/train/trainer.h"
#include "tests/own_models/compile_own_model.h"

namespace mgc {
namespace {

constexpr int kSteps = 4;
constexpr int64_t kSamples = 64;

struct Case {
  const char* model;    // of tests/own_models
  const char* options;  // tests/filetest/pass_runner.h
};

// Samples of every data input of a model but the weights, all of f32.
class Inputs {
 public:
  explicit Inputs(const Graph& model)
      : path_(absl::StrCat(testing::TempDir(), "/bundles_", getpid(), ".safetensors")) {
    std::vector<SafetensorsView> views;
    for (const GraphInput& input : model.inputs()) {
      const Value& value = model.value(input.value);
      if (input.kind != InputKind::kData || value.name == "weights") continue;  // those are ones
      std::vector<int64_t> shape = {kSamples};
      int64_t size = kSamples;
      for (size_t d = 1; d < value.type.dims.size(); ++d) {
        shape.push_back(value.type.dims[d].size);
        size *= value.type.dims[d].size;
      }
      std::vector<float>& data = data_[value.name];
      for (int64_t i = 0; i < size; ++i) {
        data.push_back(std::sin(0.37f * static_cast<float>(i + data_.size())));
      }
      views.push_back(ViewOf(value.name, shape, absl::MakeConstSpan(data)));
      files_.push_back({value.name, {path_, value.name}});
    }
    EXPECT_TRUE(WriteSafetensors(path_, views).ok());
  }
  ~Inputs() { unlink(path_.c_str()); }
  Inputs(const Inputs&) = delete;
  Inputs& operator=(const Inputs&) = delete;

  const std::vector<InputFile>& files() const { return files_; }

 private:
  const std::string path_;
  std::map<std::string, std::vector<float>> data_;
  std::vector<InputFile> files_;
};

struct Trained {
  std::vector<double> losses;
  std::vector<double> norms;
  std::string parameters;  // a file's bytes

  bool operator==(const Trained& other) const {
    return losses == other.losses && norms == other.norms && parameters == other.parameters;
  }
};

absl::StatusOr<Trained> Train(const Plan& plan) {
  const Inputs inputs(plan.model);
  const std::vector<KernelEntry> kernels = CpuKernels();
  TrainOptions options;
  options.kernels = kernels;
  options.seed = 7;
  options.lr.max_lr = 0.01;
  options.lr.style = LrDecayStyle::kConstant;
  options.inputs = inputs.files();
  MGC_ASSIGN_OR_RETURN(std::unique_ptr<Trainer> trainer, Trainer::Create(plan, options));
  Trained trained;
  for (int step = 0; step < kSteps; ++step) {
    MGC_ASSIGN_OR_RETURN(const StepRecord record, trainer->Step());
    trained.losses.push_back(record.loss);
    trained.norms.push_back(record.grad_norm);
  }
  const std::string path = absl::StrCat(testing::TempDir(), "/bundles_params_", getpid());
  MGC_RETURN_IF_ERROR(trainer->WriteParameters(path));
  MGC_ASSIGN_OR_RETURN(trained.parameters, ReadFile(path));
  unlink(path.c_str());
  for (const PlanClass& made : plan.classes) {
    for (int64_t rank : RanksOfClass(plan, made.coordinate)) {
      EXPECT_EQ(AlignUp(trainer->executor().MeasuredPeak(rank)), made.memory.peak) << rank;
    }
  }
  return trained;
}

class BundlesTest : public testing::TestWithParam<Case> {};

TEST_P(BundlesTest, ACutChangesNoBit) {
  const Case& c = GetParam();
  const absl::StatusOr<Plan> whole = CompileOwnModel(c.model, "micro=4");
  const absl::StatusOr<Plan> cut = CompileOwnModel(c.model, c.options);
  ASSERT_TRUE(whole.ok()) << whole.status();
  ASSERT_TRUE(cut.ok()) << cut.status();
  const absl::StatusOr<Trained> one = Train(*whole);
  const absl::StatusOr<Trained> many = Train(*cut);
  ASSERT_TRUE(one.ok()) << one.status();
  ASSERT_TRUE(many.ok()) << many.status();
  EXPECT_EQ(one->losses, many->losses);
  EXPECT_EQ(one->norms, many->norms);
  EXPECT_TRUE(*one == *many) << "parameters differ";
}

INSTANTIATE_TEST_SUITE_P(OwnModels, BundlesTest,
                         testing::ValuesIn(std::vector<Case>{
                             {"unet", "pp=2 micro=4"},
                             {"unet", "pp=4 micro=4"},
                             {"unet", "pp=2 vp=2 interleaved micro=4"},
                             {"unet", "pp=4 gpipe full micro=4"},
                             {"shared_mask", "pp=3 micro=4"},
                             {"shared_mask", "pp=2 vp=2 interleaved micro=4"},
                             {"frozen_beginning", "pp=4 micro=4"},
                             {"two_towers", "pp=4 micro=4"},
                             {"two_towers", "pp=2 vp=2 interleaved micro=4"},
                             {"nested_skips", "pp=3 micro=4"},
                             {"nested_skips", "pp=6 micro=4"},
                             {"nested_skips", "pp=3 vp=2 interleaved full micro=4"},
                             {"encoder_decoder", "pp=3 micro=4"},
                             {"encoder_decoder", "pp=6 micro=4"},
                             {"encoder_decoder", "pp=2 vp=3 interleaved micro=4"},
                             {"encoder_decoder", "pp=6 gpipe full micro=4"},
                         }),
                         [](const auto& info) {
                           return absl::StrCat(info.param.model, "_", info.index);
                         });

}  // namespace
}  // namespace mgc
