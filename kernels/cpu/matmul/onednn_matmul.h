// oneDNN's matrix products in f32, as the peer that mgc-bench compares with; no plan uses them
// (docs/decisions/0020-own-products.md).
#ifndef MGC_KERNELS_CPU_MATMUL_ONEDNN_MATMUL_H_
#define MGC_KERNELS_CPU_MATMUL_ONEDNN_MATMUL_H_

#include <memory>

#include "absl/status/statusor.h"
#include "kernels/cpu/matmul/gemm.h"

namespace mgc::cpu {

// One product of plain strided operands, with the threads oneDNN takes for itself.
class OneDnnMatmul {
 public:
  // The shape's strides must be those of dense tensors or their transposes. Unimplemented when
  // oneDNN refuses it.
  static absl::StatusOr<std::unique_ptr<OneDnnMatmul>> Create(const GemmShape& shape);
  ~OneDnnMatmul();

  // C = A·B, or C += A·B if the shape accumulates.
  void Run(const float* a, const float* b, float* c) const;

 private:
  struct State;
  explicit OneDnnMatmul(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace mgc::cpu

#endif  // MGC_KERNELS_CPU_MATMUL_ONEDNN_MATMUL_H_
