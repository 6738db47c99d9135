// The matrix products of one training step of a GPT-2, done by oneDNN and nothing else: the time
// that a perfect runtime with oneDNN's kernels would need.

#ifndef MGC_TOOLS_BENCHMARKS_PRODUCTS_H_
#define MGC_TOOLS_BENCHMARKS_PRODUCTS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "frontends/model_config.h"
#include "kernels/cpu/matmul/gemm.h"
#include "kernels/cpu/matmul/onednn_matmul.h"

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

// Runs products on memory of its own. Operands of one kind of product are the same in every call.
class ProductRunner {
 public:
  static absl::StatusOr<std::unique_ptr<ProductRunner>> Create(std::vector<StepProduct> products);

  // Seconds for all calls of all products.
  double Run();

 private:
  ProductRunner() = default;

  std::vector<StepProduct> products_;
  std::vector<std::unique_ptr<cpu::OneDnnMatmul>> kernels_;
  std::vector<float> a_, b_, c_;
};

}  // namespace mgc

#endif  // MGC_TOOLS_BENCHMARKS_PRODUCTS_H_
