// Products at sizes that the op cases do not reach, against double precision: every layout that
// cuBLASLt is given, and our own kernel's blocks, tails and nests of loops.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/eval/op_case.h"
#include "gtest/gtest.h"
#include "kernels/cuda/adapt.h"
#include "kernels/cuda/api.h"
#include "kernels/cuda/matmul/einsum_kernel.h"
#include "kernels/cuda/matmul/lt_problem.h"
#include "kernels/cuda/matmul/lt_product.h"
#include "kernels/kernel.h"
#include "kernels/parallel.h"
#include "kernels/spec.h"
#include "kernels/testing/conformance.h"
#include "kernels/testing/kernel_case.h"

#ifdef MGC_CUDA_EMULATED
#include "kernels/cuda/emulator/emulator.h"
#endif

namespace mgc::cuda {
namespace {

#ifdef MGC_CUDA_EMULATED
std::string Fault() { return emulator::TakeFault(); }
#else
std::string Fault() { return ""; }
#endif

void Check(cudaError_t error) { ASSERT_EQ(error, cudaSuccess) << cudaGetErrorString(error); }

// Bytes on the device, copied there and back.
class OnDevice {
 public:
  explicit OnDevice(const std::vector<char>& bytes) : bytes_(bytes.size()) {
    Check(cudaMalloc(&at_, bytes_));
    Check(cudaMemcpy(at_, bytes.data(), bytes_, cudaMemcpyHostToDevice));
  }
  template <class T>
  explicit OnDevice(const std::vector<T>& values) : bytes_(values.size() * sizeof(T)) {
    Check(cudaMalloc(&at_, bytes_));
    Check(cudaMemcpy(at_, values.data(), bytes_, cudaMemcpyHostToDevice));
  }
  ~OnDevice() { cudaFree(at_); }
  OnDevice(OnDevice&& other) noexcept : at_(other.at_), bytes_(other.bytes_) {
    other.at_ = nullptr;
  }

  template <class T = void>
  T* at() const {
    return static_cast<T*>(at_);
  }
  void CopyTo(void* to) const { Check(cudaMemcpy(to, at_, bytes_, cudaMemcpyDeviceToHost)); }

 private:
  void* at_ = nullptr;
  size_t bytes_;
};

void RunOnDevice(const Kernel& kernel, GuardedBlocks* all) {
  std::vector<OnDevice> blocks;
  for (const std::vector<char>& block : all->blocks) blocks.emplace_back(block);
  const auto at = [&](int block) -> void* {
    return blocks[static_cast<size_t>(block)].at<char>() + GuardedBlocks::kGuardBytes;
  };
  std::vector<void*> in, out;
  for (int block : all->inputs) in.push_back(at(block));
  for (int block : all->outputs) out.push_back(at(block));
  cudaStream_t stream;
  Check(cudaStreamCreate(&stream));
  KernelRun run;
  run.inputs = in;
  run.outputs = out;
  run.workspace = at(all->workspace);
  run.queue = stream;
  SerialParallel parallel;
  const absl::Status status = kernel.Run(run, parallel);
  EXPECT_TRUE(status.ok()) << status;
  Check(cudaStreamSynchronize(stream));
  Check(cudaStreamDestroy(stream));
  for (size_t b = 0; b < blocks.size(); ++b) blocks[b].CopyTo(all->blocks[b].data());
}

const KernelEntry& EntryOf(const std::string& op, F32Products f32) {
  for (const KernelEntry& entry : MatmulKernels(f32)) {
    if (entry.op == op) return entry;
  }
  ADD_FAILURE() << "no kernel of " << op;
  return MatmulKernels(f32)[0];
}

// Runs a use of an op twice, apart, and in place where it may be; what it gives.
std::vector<std::vector<char>> ResultsOf(const std::string& name, const OpCase& use,
                                         F32Products f32) {
  SCOPED_TRACE(absl::StrCat(name, "(", use.operands, "), seed ", kDrawSeed));
  const OpDef& op = *FindOp(name);
  const absl::StatusOr<BoundCase> bound = BindCase(op, use, name);
  EXPECT_TRUE(bound.ok()) << bound.status();
  if (!bound.ok()) return {};
  const KernelSpec spec = SpecOf(*bound, Place{});
  const absl::StatusOr<std::unique_ptr<Kernel>> kernel = EntryOf(name, f32).make(spec);
  EXPECT_TRUE(kernel.ok()) << kernel.status();
  if (!kernel.ok()) return {};
  EXPECT_LE((*kernel)->workspace_bytes(1), WorkspaceBoundOf(spec, KernelHost::kGpu));
  const std::vector<RealTensor> operands = TilesOf(*bound, spec, Place{});
  const auto run = [&](const std::vector<InPlace>& places) {
    return RunGuarded(spec, operands, places, (*kernel)->workspace_bytes(1),
                      [&](GuardedBlocks* all) { RunOnDevice(**kernel, all); });
  };
  const std::vector<std::vector<char>> first = run({});
  ExpectMeaning(spec, Meaning(spec, Place{}, operands), first, use.tolerance);
  EXPECT_EQ(first, run({})) << "another run, other bits";
  if (!op.in_place.empty()) {
    EXPECT_EQ(first, run(op.in_place)) << "place changes bits";
  }
  EXPECT_EQ(Fault(), "");
  return first;
}

void ExpectMeans(const std::string& name, const OpCase& use) {
  ResultsOf(name, use, F32Products::kWhole);
}

// Of sums; and half a unit of the last place of a narrow result.
constexpr double kF32 = 1e-5, kBf16 = kF32 + 0x1p-8, kF16 = kF32 + 0x1p-11;

OpCase Use(const std::string& operands, const std::string& spec, double tolerance) {
  return {operands, {{"spec", spec}}, -1.0, 1.0, tolerance};
}
OpCase WideUse(const std::string& operands, const std::string& spec) {
  return {operands, {{"spec", spec}, {kDTypeAttr, "f32"}}, -1.0, 1.0, kF32};
}

TEST(MatmulCudaTest, TakesOperandsAndResultsEitherWayRound) {
  for (const char* a : {"m k", "k m"}) {
    for (const char* b : {"k n", "n k"}) {
      for (const char* c : {"m n", "n m"}) {
        const auto shape = [](const std::string& text) {
          std::vector<std::string> sizes;
          for (char factor : {text.front(), text.back()}) {
            sizes.emplace_back(factor == 'm' ? "72" : factor == 'n' ? "40" : "136");
          }
          return absl::StrCat("[", sizes[0], ",", sizes[1], "]");
        };
        const std::string spec = absl::StrCat(a, ", ", b, " -> ", c);
        ExpectMeans("matmul", Use(absl::StrCat("f32", shape(a), ", f32", shape(b)), spec, kF32));
        ExpectMeans("matmul", Use(absl::StrCat("bf16", shape(a), ", bf16", shape(b)), spec, kBf16));
        ExpectMeans("matmul", WideUse(absl::StrCat("f16", shape(a), ", f16", shape(b)), spec));
      }
    }
  }
}

TEST(MatmulCudaTest, TakesVectors) {
  ExpectMeans("matmul", Use("f32[200], f32[200,33]", "k, k n -> n", kF32));
  ExpectMeans("matmul", Use("f32[33,200], f32[200]", "m k, k -> m", kF32));
  ExpectMeans("matmul", Use("f32[200,33], f32[200]", "k m, k -> m", kF32));
  ExpectMeans("matmul", Use("f32[33], f32[65]", "m, n -> m n", kF32));
  ExpectMeans("matmul", Use("bf16[33], bf16[66]", "m, n -> n m", kBf16));
  ExpectMeans("matmul", WideUse("bf16[700], bf16[700]", "k, k -> "));
}

TEST(MatmulCudaTest, TakesBatches) {
  ExpectMeans("matmul", Use("f32[5,33,18], f32[5,18,40]", "b m k, b k n -> b m n", kF32));
  ExpectMeans("matmul", Use("bf16[5,34,18], bf16[5,40,18]", "b m k, b n k -> b m n", kBf16));
  // The batch lies inside of the rows, in all tensors or in some.
  ExpectMeans("matmul", Use("f32[33,4,18], f32[21,4,18]", "s h d, t h d -> h s t", kF32));
  ExpectMeans("matmul", Use("f32[4,33,21], f32[21,4,18]", "h s t, t h d -> s h d", kF32));
  // One operand has no batch.
  ExpectMeans("matmul", Use("f32[33,18], f32[4,18,20]", "m k, h k d -> m h d", kF32));
}

// What is one product only for our own kernel.
TEST(MatmulCudaTest, TakesLoopsThatDoNotMerge) {
  ExpectMeans("matmul", Use("f32[2,33,3,18], f32[3,21,2,18]", "b s h d, h t b d -> b h s t", kF32));
  ExpectMeans("matmul", Use("bf16[34,6,90], bf16[90,6,20]", "m x k, k x n -> m n", kBf16));
  ExpectMeans("matmul", Use("f32[3,5,7,9], f32[9,5,11,13]", "a k b l, l k c d -> c a d b", kF32));
  ExpectMeans("matmul_bias",
              Use("bf16[3,30,18], bf16[2,18,20], bf16[30,2,20]", "b s k, h k d -> b s h d", kBf16));
}

// Narrow columns that begin at odd places, and more of k than one block of sums holds.
TEST(MatmulCudaTest, TakesOddSizes) {
  ExpectMeans("matmul", Use("bf16[67,1101], bf16[1101,65]", "m k, k n -> m n", kBf16));
  ExpectMeans("matmul", Use("f16[129,35], f16[35,3]", "m k, k n -> m n", kF16));
  ExpectMeans("matmul_bias", Use("bf16[67,35], bf16[35,65], bf16[65]", "m k, k n -> m n", kBf16));
  ExpectMeans("matmul_accumulate",
              WideUse("f32[67,65], bf16[35,67], bf16[35,65]", "k m, k n -> m n"));
}

TEST(MatmulCudaTest, AddsABiasOrAResidual) {
  ExpectMeans("matmul_bias", Use("f32[70,36], f32[36,66], f32[66]", "m k, k n -> m n", kF32));
  ExpectMeans("matmul_bias", Use("bf16[70,36], bf16[36,66], bf16[66]", "m k, k n -> m n", kBf16));
  ExpectMeans("matmul_bias", Use("f16[70,36], f16[36,66], f16[70,66]", "m k, k n -> m n", kF16));
  ExpectMeans("matmul_bias",
              Use("f32[4,9,36], f32[36,66], f32[9,66]", "b s k, k n -> b s n", kF32));
}

TEST(MatmulCudaTest, AddsToASum) {
  ExpectMeans("matmul_accumulate",
              WideUse("f32[70,66], f32[36,70], f32[36,66]", "k m, k n -> m n"));
  ExpectMeans("matmul_accumulate",
              WideUse("f32[24,4,6], bf16[3,50,24], bf16[3,50,4,6]", "b s e, b s h d -> e h d"));
  // Much is summed to little: parts of a sum may be kept in the workspace.
  ExpectMeans("matmul_accumulate",
              WideUse("f32[16,8], f16[900,16], f16[900,8]", "k m, k n -> m n"));
}

std::vector<float> Drawn(int64_t size, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<float> real(-1.0f, 1.0f);
  std::vector<float> values(static_cast<size_t>(size));
  for (float& value : values) value = real(random);
  return values;
}

// A product of f32 with loops around it, by the library, called for each of their steps.
std::vector<float> RunLt(const LtProblem& problem, const std::vector<float>& a,
                         const std::vector<float>& b, const std::vector<float>& added) {
  const LtProduct product(problem, 1 << 20);
  const OnDevice on_a(a), on_b(b), on_c(added), workspace(std::vector<char>(1 << 20));
  const LtChoice* choice = nullptr;
  EXPECT_EQ(product.Choose(&choice), 0);
  EXPECT_TRUE(choice->served);
  const void* const first = problem.swapped ? on_b.at() : on_a.at();
  const void* const second = problem.swapped ? on_a.at() : on_b.at();
  EXPECT_EQ(product.Run(*choice, nullptr, {first, second, on_c.at(), on_c.at()}, workspace.at()),
            0);
  Check(cudaStreamSynchronize(nullptr));
  std::vector<float> c(added.size());
  on_c.CopyTo(c.data());
  EXPECT_EQ(Fault(), "");
  return c;
}

// c[x, y, m, n] += sum over u of a[x, u, m, k] · b[u, y, k, n]: two loops around a batch of
// products are kept, one of them summed.
TEST(LtProductTest, LoopsAroundWhatDoesNotMerge) {
  constexpr int64_t kX = 2, kY = 3, kU = 2, kM = 8, kN = 4, kK = 4;
  Product p;
  p.shape = {1, kM, kN, kK, {0, kK, 1}, {0, kN, 1}, {0, kN, 1}, false};
  p.around = {{kX, {kU * kM * kK, 0, kY * kM * kN}},
              {kY, {0, kK * kN, kM * kN}},
              {kU, {kM * kK, kY * kK * kN, 0}}};
  p.first_summed = 2;
  EXPECT_FALSE(LtProblemOf(p, DType::kF32, DType::kF32, LtAdded::kMatrix).has_value());
  EXPECT_FALSE(LtProblemOf(p, DType::kBF16, DType::kBF16, LtAdded::kMatrix, 0).has_value());
  const auto problem = LtProblemOf(p, DType::kF32, DType::kF32, LtAdded::kMatrix, 0);
  ASSERT_TRUE(problem.has_value());
  EXPECT_EQ(problem->batch, kY);
  EXPECT_EQ(problem->around.size(), 2u);
  const std::vector<float> a = Drawn(kX * kU * kM * kK, 1), b = Drawn(kU * kY * kK * kN, 2);
  const std::vector<float> before = Drawn(kX * kY * kM * kN, 3);
  const std::vector<float> c = RunLt(*problem, a, b, before);
  for (int64_t i = 0; i < static_cast<int64_t>(c.size()); ++i) {
    const int64_t n = i % kN, m = i / kN % kM, y = i / (kN * kM) % kY, x = i / (kN * kM * kY);
    double sum = before[static_cast<size_t>(i)];
    for (int64_t u = 0; u < kU; ++u) {
      for (int64_t k = 0; k < kK; ++k) {
        sum += double{a[static_cast<size_t>(((x * kU + u) * kM + m) * kK + k)]} *
               b[static_cast<size_t>(((u * kY + y) * kK + k) * kN + n)];
      }
    }
    ASSERT_NEAR(c[static_cast<size_t>(i)], sum, 1e-5) << i;
  }
}

// The largest error of a product of f32 against double precision.
double ErrorOfProduct(bool tf32) {
  constexpr int64_t kSize = 64;
  Product p;
  p.shape = {1, kSize, kSize, kSize, {0, kSize, 1}, {0, kSize, 1}, {0, kSize, 1}, false};
  auto problem = LtProblemOf(p, DType::kF32, DType::kF32, LtAdded::kNothing);
  problem->tf32 = tf32;
  const std::vector<float> a = Drawn(kSize * kSize, 1), b = Drawn(kSize * kSize, 2);
  const std::vector<float> c = RunLt(*problem, a, b, std::vector<float>(a.size()));
  double largest = 0;
  for (int64_t i = 0; i < kSize * kSize; ++i) {
    double sum = 0;
    for (int64_t k = 0; k < kSize; ++k) {
      sum += double{a[static_cast<size_t>(i / kSize * kSize + k)]} *
             b[static_cast<size_t>(k * kSize + i % kSize)];
    }
    largest = std::max(largest, std::fabs(sum - c[static_cast<size_t>(i)]));
  }
  return largest;
}

TEST(LtProductTest, RoundsOperandsToTf32OnlyWhereItMay) {
  EXPECT_LT(ErrorOfProduct(false), 1e-5);
  EXPECT_LT(ErrorOfProduct(true), 1e-1);
#ifdef MGC_CUDA_EMULATED
  EXPECT_GT(ErrorOfProduct(true), 1e-5);  // the library may do better
#endif
}

TEST(MatmulCudaTest, RoundsOperandsOfF32WhereItIsAskedTo) {
  const std::string spec = "m k, k n -> m n";
  const auto both = [](const OpCase& use) {
    auto whole = use;
    whole.tolerance = std::min(use.tolerance, kBf16);
    return std::make_pair(ResultsOf("matmul", whole, F32Products::kWhole),
                          ResultsOf("matmul", use, F32Products::kTf32));
  };
  const auto wide = both(Use("f32[64,64], f32[64,64]", spec, 1e-2));
#ifdef MGC_CUDA_EMULATED
  EXPECT_NE(wide.first, wide.second);  // the library may do better
#endif
  const auto narrow = both(Use("bf16[64,64], bf16[64,64]", spec, kBf16));
  EXPECT_EQ(narrow.first, narrow.second);
}

TEST(LtProductTest, RefusesAddressesThatAreNotAligned) {
  Product p;
  p.shape = {1, 8, 8, 8, {0, 8, 1}, {0, 8, 1}, {0, 8, 1}, false};
  const LtProduct product(*LtProblemOf(p, DType::kF32, DType::kF32, LtAdded::kNothing), 0);
  const OnDevice x(std::vector<float>(256));
  const LtChoice* choice = nullptr;
  ASSERT_EQ(product.Choose(&choice), 0);
  EXPECT_NE(product.Run(*choice, nullptr, {x.at<float>() + 1, x.at(), nullptr, x.at<float>() + 64},
                        nullptr),
            0);
  EXPECT_EQ(Fault(), "");
}

TEST(LtProblemTest, PromisesTheAlignmentOfAllStepsOfLoops) {
  Product p;
  p.shape = {3, 8, 8, 8, {64, 8, 1}, {72, 8, 1}, {64, 8, 1}, false};
  auto problem = LtProblemOf(p, DType::kBF16, DType::kBF16, LtAdded::kNothing);
  ASSERT_TRUE(problem.has_value() && problem->swapped);
  EXPECT_EQ(problem->a.alignment, 16u);
  EXPECT_EQ(problem->b.alignment, 64u);
  p.around = {{2, {3, 0, 192}}, {2, {1000, 0, 0}}};
  p.first_summed = 1;
  problem = LtProblemOf(p, DType::kF32, DType::kF32, LtAdded::kNothing, 0);
  ASSERT_TRUE(problem.has_value());
  EXPECT_EQ(problem->b.alignment, 4u);
}

TEST(EinsumKernelTest, OfNothingIsWhatIsAdded) {
  EinsumNests nests;
  nests.rows = {1, 3, {3}, {{0}, {0}, {2}}};
  nests.cols = {1, 2, {2}, {{0}, {1}, {1}}};
  nests.summed = {1, 0, {0}, {{1}, {2}, {0}}};
  const OnDevice added(std::vector<float>{1, 2}), c(std::vector<float>(6, -1));
  const float* const none = added.at<float>();
  ASSERT_EQ(Einsum<float>(nullptr, nests, none, none, Added<float>{none, 2}, c.at<float>()), 0);
  Check(cudaStreamSynchronize(nullptr));
  std::vector<float> got(6);
  c.CopyTo(got.data());
  EXPECT_EQ(got, (std::vector<float>{1, 2, 1, 2, 1, 2}));
  nests.rows.steps = 0;
  EXPECT_EQ(Einsum<float>(nullptr, nests, none, none, Added<float>(), c.at<float>()), 0);
  EXPECT_EQ(Fault(), "");
}

}  // namespace
}  // namespace mgc::cuda
