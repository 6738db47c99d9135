// Products by cuBLASLt: everything about them is decided once, and a call only hands addresses on.
//
// The same problem gives the same bits in every run on GPUs of one kind: an algorithm is the first
// that the library's heuristic names, which knows sizes, strides, types, alignments and the GPU's
// kind. Sums are f32 in an order that is the algorithm's; parts of a sum that several blocks make
// are kept in f32 in the workspace and added in order, never by atomics.

#ifndef MGC_KERNELS_CUDA_MATMUL_LT_PRODUCT_H_
#define MGC_KERNELS_CUDA_MATMUL_LT_PRODUCT_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

#include "kernels/cuda/launch_shape.h"
#include "kernels/cuda/matmul/cublas_lt.h"
#include "kernels/cuda/matmul/lt_problem.h"

namespace mgc::cuda {

// Addresses of one call; of a problem's A, B, D and what is added.
struct LtPlaces {
  const void* a = nullptr;
  const void* b = nullptr;
  const void* added = nullptr;
  void* d = nullptr;
};

// What one device does for a problem.
struct LtChoice {
  bool served = false;  // false: the library has no algorithm for it
  cublasLtHandle_t handle = nullptr;
  cublasLtMatmulAlgo_t algo = {};
  size_t workspace = 0;  // bytes
};

class LtProduct {
 public:
  // Chooses for the thread's current device if there is one. At most `most_workspace` bytes.
  LtProduct(const LtProblem& problem, int64_t most_workspace);

  // Whether A is the second operand of the einsum.
  bool swapped() const { return problem_.swapped; }

  // What Run is given: as much as the algorithm asks for, or the most that it may ask for while
  // there is no device.
  int64_t workspace_bytes() const;

  // The choice of the current device, made when it is first asked for. A cudaError_t.
  int Choose(const LtChoice** choice) const;

  // Issues the product and the loops around it to a stream of the current device, by its choice,
  // which serves. A cudaError_t.
  int Run(const LtChoice& choice, Stream stream, const LtPlaces& places, void* workspace) const;

 private:
  int Decide(uint64_t most_workspace, LtChoice* choice) const;
  // The loops from `level` on; `later`: D holds a sum already.
  int RunLoops(const LtChoice& choice, Stream stream, size_t level, bool later,
               const LtPlaces& places, void* workspace) const;
  int RunOne(const LtChoice& choice, Stream stream, bool later, const LtPlaces& places,
             void* workspace) const;
  cublasStatus_t Describe(const void* bias, cublasLtMatmulDescOpaque_t* desc) const;

  const LtProblem problem_;
  const uint64_t most_workspace_;  // of an algorithm
  uint64_t room_;                  // for it, in the workspace that is asked for
  cublasLtMatrixLayoutOpaque_t a_, b_, d_;
  const cublasStatus_t described_;  // of these layouts
  mutable std::mutex mutex_;
  mutable std::map<int, LtChoice> choices_;  // by device
};

}  // namespace mgc::cuda

#endif  // MGC_KERNELS_CUDA_MATMUL_LT_PRODUCT_H_
