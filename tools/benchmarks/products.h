// The matrix products of one training step of a GPT-2 and nothing else: the time that a perfect
// runtime would need.

#ifndef MGC_TOOLS_BENCHMARKS_PRODUCTS_H_
#define MGC_TOOLS_BENCHMARKS_PRODUCTS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "frontends/model_config.h"
#include "graph/types/tensor_type.h"
#include "kernels/cpu/matmul/gemm.h"
#include "tools/benchmarks/comparison.h"

namespace mgc {

struct StepProduct {
  std::string name;  // `up forward`
  cpu::GemmShape shape;
  int64_t calls = 0;  // in one step
};

// Forward, input gradient and weight gradient (added to the gradient) of every projection of every
// layer and of the head, over `batch` sequences of `seq` tokens; attention's six products, each one
// product batched over all heads of all sequences, without the mask's savings. Plain row-major
// operands.
std::vector<StepProduct> ProductsOfStep(const ModelConfig& config, int64_t batch, int64_t seq);

// Multiply-adds count twice.
double FlopsOf(const std::vector<StepProduct>& products);

// Whose kernels do the products. oneDNN's f32 reads plain operands; its bf16 operands that were
// packed before, which is the best it can do. Ours read plain operands and pack them in every call.
enum class ProductsBy { kOneDnn, kOwn };

// Runs products on memory of its own. Operands of one kind of product are the same in every call.
class ProductRunner : public BenchSide {
 public:
  // `type` is f32 or bf16, in which sums that are added to are f32. Ours run on `workers` threads,
  // oneDNN's on those it takes for itself. Unimplemented where oneDNN has no such product.
  static absl::StatusOr<std::unique_ptr<BenchSide>> Create(std::vector<StepProduct> products,
                                                           ProductsBy by, DType type, int workers);

  absl::StatusOr<StepTime> Step() override;

 private:
  ProductRunner() = default;

  std::vector<std::function<void()>> calls_;  // each all calls of a product
};

}  // namespace mgc

#endif  // MGC_TOOLS_BENCHMARKS_PRODUCTS_H_
