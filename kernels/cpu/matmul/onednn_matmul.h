// oneDNN's matrix products, as the peer that the benchmarks compare with; no plan uses them
// (docs/decisions/0020-own-products.md, 0024-bf16-products.md).
#ifndef MGC_KERNELS_CPU_MATMUL_ONEDNN_MATMUL_H_
#define MGC_KERNELS_CPU_MATMUL_ONEDNN_MATMUL_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "graph/types/bfloat16.h"
#include "kernels/cpu/matmul/gemm.h"

namespace mgc::cpu {

// One product of plain strided operands in f32, with the threads oneDNN takes for itself.
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

// One product in bf16 of operands that were brought into the layouts that oneDNN prefers for it,
// with the threads oneDNN takes for itself.
class OneDnnPackedMatmul {
 public:
  // Copies operands of the shape's strides. C is f32 if the shape accumulates, else bf16, dense and
  // by rows. Unimplemented when oneDNN refuses the product or lacks the instructions for bf16.
  static absl::StatusOr<std::unique_ptr<OneDnnPackedMatmul>> Create(const GemmShape& shape,
                                                                    const Bfloat16* a,
                                                                    const Bfloat16* b);
  ~OneDnnPackedMatmul();

  // C = A·B, or C += A·B if the shape accumulates.
  void Run(void* c) const;

  // oneDNN's name of its implementation: `brg:avx512_core_bf16`.
  std::string implementation() const;

 private:
  struct State;
  explicit OneDnnPackedMatmul(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace mgc::cpu

#endif  // MGC_KERNELS_CPU_MATMUL_ONEDNN_MATMUL_H_
