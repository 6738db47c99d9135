// Kernels keep to the scratch of their ops, at sizes that are too large to run in a test.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/eval/op_case.h"
#include "gtest/gtest.h"
#include "kernels/cpu/matmul/gemm.h"
#include "kernels/kernel.h"
#include "kernels/spec.h"
#include "kernels/testing/kernel_case.h"

namespace mgc {
namespace {

// Sizes at which the kernels' blocks and tiles are full; nothing runs.
TEST(ScratchTest, OfTheOpAtLargeSizes) {
  const Attrs attention = {{"scale", 0.5}, {"p", 0.0}, {"key", ""}};
  const std::string q = "f32[2,1000,8,120]", k = "f32[2,1500,2,120]", ids = "i64[1000], i64[1500]";
  const std::vector<std::pair<std::string, OpCase>> uses = {
      {"matmul", {"f32[5000,700], f32[700,4000]", {{"spec", "m k, k n -> m n"}}}},
      {"matmul", {"f32[5,700], f32[700,4000]", {{"spec", "m k, k n -> m n"}}}},
      {"matmul", {"f32[4,300,33], f32[4,33,301]", {{"spec", "b m k, b k n -> b m n"}}}},
      {"matmul_accumulate",
       {"f32[700,4000], f32[9,500,700], f32[9,500,4000]", {{"spec", "b s m, b s n -> m n"}}}},
      {"attention", {absl::StrCat(q, ", ", k, ", ", k, ", ", ids), attention}},
      {"attention_grad",
       {absl::StrCat(q, ", ", q, ", ", k, ", ", k, ", ", q, ", f32[2,8,1000], ", ids), attention}},
      {"softmax", {"f32[500,1000]"}},
      {"total", {"f32[1000,8193]"}},
      {"weighted_sum", {"f32[1000,8193], f32[1000,8193]"}},
      {"sum_squares", {"f32[1000,8193]"}}};
  for (const auto& [name, use] : uses) {
    SCOPED_TRACE(absl::StrCat(name, "(", use.operands, ")"));
    OpDef op = *FindOp(name);
    op.cases = {use};
    const absl::StatusOr<BoundCase> bound = BindCase(op, 0);
    ASSERT_TRUE(bound.ok()) << bound.status();
    const KernelSpec spec = SpecOf(*bound, Place{});
    const absl::StatusOr<std::unique_ptr<Kernel>> kernel = CpuFactories().at(name)(spec);
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    for (int width : kScratchWidths) {
      EXPECT_GT((*kernel)->workspace_bytes(width), 0);
      EXPECT_LE((*kernel)->workspace_bytes(width), width * WorkspaceBoundOf(spec, KernelHost::kCpu))
          << width;
    }
  }
}

// The op's budget is one for all backends; the kernel's header says what it takes of it.
TEST(ScratchTest, OfProductsAtAllSizes) {
  constexpr int64_t kSizes[] = {1, 31, 240, 241, 511, 512, 513, 3071, 3072, 3073, 9999};
  const OpDef& matmul = *FindOp("matmul");
  const Attrs attrs = {{"spec", "m k, k n -> m n"}};
  const auto matrix = [](int64_t rows, int64_t cols) {
    return TensorType{DType::kF32, {{rows, "", 1}, {cols, "", 1}}};
  };
  for (int64_t m : kSizes) {
    for (int64_t n : kSizes) {
      for (int64_t k : kSizes) {
        const TensorType a = matrix(m, k), b = matrix(k, n), c = matrix(m, n);
        const TensorType* operands[] = {&a, &b};
        const TensorType* results[] = {&c};
        const int64_t budget = matmul.workspace(OpUse{attrs, operands, results});
        for (int width : kScratchWidths) {
          const int64_t floats = cpu::GemmWorkspaceFloats(m, n, k, width);
          ASSERT_LE(floats * static_cast<int64_t>(sizeof(float)), width * budget)
              << m << ", " << n << ", " << k << " on " << width << " threads";
        }
      }
    }
  }
}

}  // namespace
}  // namespace mgc
