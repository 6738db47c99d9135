// A run that is saved and goes on is the run that was never stopped: bit for bit under the same
// plan; under any other plan of the model its state is the same bits at the hand-over, and its
// losses are as near as those of plans are (tests/same_loss).

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/file.h"
#include "graph/base/testing/folder_test.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu_kernels.h"
#include "runtime/state/checkpoint_dir.h"
#include "runtime/train/trainer.h"
#include "tests/same_loss/train_cases.h"
#include "tests/same_loss/train_plan.h"
#include "tests/verify/damage/sized_test.h"

namespace mgc {
namespace {

constexpr int64_t kHalf = 3;  // steps before the hand-over, and behind it
// What plans of f32 may be apart by (tests/same_loss/same_loss_test.cc). Those of narrower types
// round in other places: a loss near 5 by a few steps of bf16.
constexpr double kSameLoss = 1e-5;
constexpr double kNearLoss = 1e-3;

// One rank; each axis; pieces of ZeRO; a tied word table, of which the first and the last stage
// hold copies; padded vocabularies; chunks; sequences in pieces;
// another global batch.
std::vector<TrainCase> Layouts() {
  const auto padded = [](TrainCase c) {
    c.vocab_multiple = 8;
    return c;
  };
  const auto of_twelve = [](TrainCase c) {
    c.parallel.global_batch_size = 12;
    return c;
  };
  return {
      GptCase(1, 1, 1),
      WithZero(WithSequenceParallel(GptCase(2, 2, 2)), 1),
      GptCase(4, 1, 1),
      GptCase(1, 2, 1),
      GptCase(1, 1, 4),
      WithZero(GptCase(1, 1, 4), 1),
      WithZero(GptCase(2, 1, 2), 3),
      WithSchedule(GptCase(1, 2, 2), ScheduleKind::kInterleaved, 2),
      WithContextParallel(GptCase(1, 2, 1), 2),
      padded(WithSequenceParallel(GptCase(2, 1, 1))),
      padded(WithZero(GptCase(4, 2, 1), 1)),
      WithRecompute(WithZero(of_twelve(GptCase(1, 1, 3)), 2), RecomputeKind::kFull),
  };
}

// Files of a checkpoint, which depend on no plan.
constexpr const char* kFiles[] = {"parameters.safetensors", "first_moments.safetensors",
                                  "second_moments.safetensors"};

class ResumeTest : public FolderTest {
 protected:
  // A trainer of a case, with the plan that it stands on.
  struct Run {
    std::unique_ptr<Plan> plan;
    std::vector<KernelEntry> kernels = CpuKernels();
    std::unique_ptr<Trainer> trainer;

    std::vector<double> Losses(int64_t steps) const {
      std::vector<double> losses;
      for (int64_t step = 0; step < steps; ++step) {
        const auto record = trainer->Step();
        EXPECT_TRUE(record.ok()) << record.status();
        if (record.ok()) losses.push_back(record->loss);
      }
      return losses;
    }
  };

  static std::unique_ptr<Run> Start(const TrainCase& c) {
    auto run = std::make_unique<Run>();
    absl::StatusOr<Plan> plan = CompileCase(c);
    EXPECT_TRUE(plan.ok()) << NameOf(c) << ": " << plan.status();
    if (!plan.ok()) return nullptr;
    run->plan = std::make_unique<Plan>(*std::move(plan));
    auto trainer =
        Trainer::Create(*run->plan, OptionsFor(*run->plan, c, 2 * kHalf, 2, run->kernels));
    EXPECT_TRUE(trainer.ok()) << trainer.status();
    if (!trainer.ok()) return nullptr;
    run->trainer = *std::move(trainer);
    return run;
  }

  // Saves; the folder.
  std::string Save(const Run& run, const std::string& name) const {
    const auto dir = CheckpointDir::Open(Path(name));
    EXPECT_TRUE(dir.ok()) << dir.status();
    const auto saved = run.trainer->Save(dir->get(), "a test");
    EXPECT_TRUE(saved.ok()) << saved.status();
    return saved.ok() ? *saved : "";
  }

  static void ExpectSameFiles(const std::string& a, const std::string& b) {
    for (const char* name : kFiles) {
      const auto in_a = ReadFile(absl::StrCat(a, "/", name));
      const auto in_b = ReadFile(absl::StrCat(b, "/", name));
      ASSERT_TRUE(in_a.ok() && in_b.ok());
      EXPECT_GT(in_a->size(), 1000u);
      EXPECT_TRUE(*in_a == *in_b) << a << " and " << b << ": " << name;
    }
  }
};

// All layouts go on from what one of them has saved.
class FromOneTest : public ResumeTest {
 public:
  FromOneTest(size_t from, DType type) : from_(from), type_(type) {}

  void TestBody() override {
    std::vector<TrainCase> layouts = Layouts();
    for (TrainCase& c : layouts) c.parallel.compute_type = type_;
    const auto whole = Start(layouts[from_]);
    ASSERT_NE(whole, nullptr);
    whole->Losses(kHalf);
    const std::string saved = Save(*whole, "saved");
    const std::vector<double> later = whole->Losses(kHalf);
    const std::string end = Save(*whole, "end");
    for (size_t to = 0; to < layouts.size(); ++to) {
      SCOPED_TRACE(absl::StrCat(NameOf(layouts[from_]), " to ", NameOf(layouts[to])));
      const auto run = Start(layouts[to]);
      ASSERT_NE(run, nullptr);
      run->Losses(1);  // what is there before is gone
      const auto resumed = run->trainer->Resume(saved);
      ASSERT_TRUE(resumed.ok()) << resumed.status();
      EXPECT_EQ(run->trainer->samples_done(), run->trainer->steps_done() * Batch(layouts[from_]));
      ExpectSameFiles(saved, Save(*run, absl::StrCat("again", to)));
      ExpectReadsOwnBytes(*run, resumed->bytes);
      if (Batch(layouts[to]) != Batch(layouts[from_])) continue;  // steps of other samples
      const std::vector<double> losses = run->Losses(kHalf);
      if (to == from_) {
        EXPECT_EQ(losses, later);
        ExpectSameFiles(end, Save(*run, "end_again"));
      }
      ASSERT_EQ(losses.size(), later.size());
      const double bound = type_ == DType::kF32 ? kSameLoss : kNearLoss;
      for (size_t i = 0; i < losses.size(); ++i) EXPECT_NEAR(losses[i] / later[i], 1, bound) << i;
    }
  }

 private:
  static int64_t Batch(const TrainCase& c) { return c.parallel.global_batch_size; }

  // Of masters and moments each value once for each holder of its tensor, however many ranks of
  // this process have it.
  static void ExpectReadsOwnBytes(const Run& run, int64_t bytes) {
    int64_t held = 0;
    for (TensorRole role :
         {TensorRole::kParam, TensorRole::kFirstMoment, TensorRole::kSecondMoment}) {
      const auto tensors = HeldTensors(*run.plan, role, Holders::kAll);
      for (const HeldTensor& tensor : *tensors) {
        held += NumElements(SizesOf(*tensor.type)) * SizeOf(tensor.type->dtype);
      }
    }
    EXPECT_EQ(bytes, held);
  }

  const size_t from_;
  const DType type_;
};

// `few`: from the layout that cuts most; many: from each.
void RegisterCases(int cases) {
  const size_t from = cases == 1 ? 1 : 0;
  const size_t end = cases == 1 ? 2 : static_cast<size_t>(cases);
  for (DType type : {DType::kF32, DType::kBF16}) {
    for (size_t i = from; i < end && i < Layouts().size(); ++i) {
      RegisterSized<FromOneTest>("FromOne", absl::StrCat(NameOf(type), "_", i),
                                 [i, type] { return new FromOneTest(i, type); });
    }
  }
}

}  // namespace
}  // namespace mgc

int main(int argc, char** argv) { return mgc::RunSized(argc, argv, mgc::RegisterCases); }
