// What calls of the emulated cuBLASLt are about, what may be wrong with them, and what they
// compute.

#ifndef MGC_KERNELS_CUDA_EMULATOR_CUBLAS_LT_PROBLEM_H_
#define MGC_KERNELS_CUDA_EMULATOR_CUBLAS_LT_PROBLEM_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/cuda/emulator/cublas_lt.h"
#include "kernels/cuda/emulator/memory.h"

namespace mgc::cuda::emulator::lt {

// What the opaque structures hold. The mark tells initialized ones from garbage.
struct Layout {
  uint64_t mark;
  int32_t type;
  int32_t batch;
  int64_t rows, cols, ld, batch_stride;
};
struct Desc {
  uint64_t mark;
  int32_t compute, scale, transposed[2], epilogue;
  const void* bias;
};
struct Preference {
  uint64_t mark;
  uint64_t workspace;
  uint32_t reduction;
  uint32_t alignment[4];  // of a, b, c, d
};
struct Algorithm {
  uint64_t mark;
  uint64_t problem;
  uint64_t workspace;
  uint32_t alignment[4];
  uint32_t bias_alignment;
};
constexpr uint64_t kLayoutMark = 0x4c61796f7574206d, kDescMark = 0x44657363206d6b21,
                   kPreferenceMark = 0x507265666572656e, kAlgorithmMark = 0x416c676f72697468;

// A whole call: what its descriptors say.
struct Problem {
  Desc desc;
  Layout a, b, c, d;

  int64_t m() const { return d.rows; }
  int64_t n() const { return d.cols; }
  int64_t k() const { return desc.transposed[0] != 0 ? a.rows : a.cols; }
  bool has_bias() const { return desc.epilogue == CUBLASLT_EPILOGUE_BIAS; }
};

// Addresses of one call.
struct Places {
  const void* a = nullptr;
  const void* b = nullptr;
  const void* c = nullptr;  // not read where `beta` is 0
  void* d = nullptr;
  void* workspace = nullptr;
  size_t workspace_bytes = 0;
  float alpha = 1;
  float beta = 0;
};

// Null, or what is wrong: with a problem's descriptors, with alignments that are asked for, with a
// call by what its algorithm was promised.
const char* WrongProblem(const Problem& p);
const char* WrongAlignment(const Preference& preference);
const char* BrokenPromise(const Problem& p, const Algorithm& algo, const Places& places);

// Whether there is an algorithm.
bool IsServed(const Problem& p);
// The one that is named.
Algorithm AlgorithmFor(const Problem& p, const Preference& preference);

// Bytes that a call reads and writes.
std::vector<Range> RangesOf(const Problem& p, const Algorithm& algo, const Places& places);

// D = alpha · A·B + beta · C + bias, in doubles, rounded once.
void Compute(const Problem& p, const Places& places);

}  // namespace mgc::cuda::emulator::lt

#endif  // MGC_KERNELS_CUDA_EMULATOR_CUBLAS_LT_PROBLEM_H_
