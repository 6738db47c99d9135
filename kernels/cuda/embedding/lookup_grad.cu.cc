// The gradient of a lookup, without atomics: of g blocks, block b has rows b, b + g, b + 2g, ... of
// the table to itself. It goes over all ids, lists those of its rows in their order, and then each
// of its warps adds up some columns of one row at a time. So a row is the same sum, in the same
// order, as one thread would make it; rows that often occur lie beside each other in most
// vocabularies, and here in different blocks.

#include <algorithm>

#include "kernels/cuda/device/elements.h"
#include "kernels/cuda/device/fast_divisor.h"
#include "kernels/cuda/embedding/embedding.h"

namespace mgc::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / kWarp;
constexpr int64_t kFewBlocks = 132;  // one for each processor of an H100, as far as rows reach
constexpr int64_t kMostBlocks = 4 * kFewBlocks;  // each reads all ids
constexpr int64_t kRowsOfBlock = 4;              // between these numbers of blocks
constexpr int kPerThread = 8;                    // ids that a thread looks at in a round
constexpr int kRound = kThreads * kPerThread;    // ids of a round
constexpr int kMostListed = 2 * kRound;

// The ids of this block's rows that are not added yet, in their order.
struct Listed {
  int count[kPerThread][kWarps];  // of a round, by the warp that found them
  int token[kMostListed];
  int row[kMostListed];  // n-th of the block
};

struct GradOf {
  TableShape shape;
  FastDivisor blocks;
};

// Appends to the list what ids [begin, begin + kRound) have for this block. Returns how many; all
// threads call it and get the same.
__device__ int ListRound(const GradOf& grad, int64_t n, int64_t begin, const int64_t* ids,
                         int listed, Listed* list) {
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const unsigned before = (1u << threadIdx.x % kWarp) - 1;
  unsigned found[kPerThread];
  int row[kPerThread];
#pragma unroll
  for (int k = 0; k < kPerThread; ++k) {
    const int64_t i = begin + k * kThreads + threadIdx.x;
    const int64_t of_table = i < n ? RowOf(grad.shape, ids[i]) : -1;
    row[k] = -1;
    if (of_table >= 0) {
      const int64_t at = grad.blocks.Quotient(of_table);
      if (of_table - at * grad.blocks.divisor() == blockIdx.x) row[k] = static_cast<int>(at);
    }
  }
#pragma unroll
  for (int k = 0; k < kPerThread; ++k) {
    found[k] = __ballot_sync(kWholeWarp, row[k] >= 0);
    if (before == 0) list->count[k][warp] = __popc(found[k]);
  }
  __syncthreads();
  int all = 0;
#pragma unroll
  for (int k = 0; k < kPerThread; ++k) {
    for (int w = 0; w < kWarps; ++w) {
      if (w == warp && row[k] >= 0) {
        const int at = listed + all + __popc(found[k] & before);
        list->token[at] = static_cast<int>(begin) + k * kThreads + static_cast<int>(threadIdx.x);
        list->row[at] = row[k];
      }
      all += list->count[k][w];
    }
  }
  __syncthreads();
  return all;
}

// Adds columns [c, c + kCount) of the listed rows of dy that belong to the block's row `row`, to
// those in `sum`. All lanes of a warp call it, with columns of their own or, where there are no
// more, without (`active`). `dy` lies at column c.
template <class T, int kCount>
__device__ void AddListed(const Listed& list, int listed, int row, int64_t cols, bool active,
                          const T* dy, float* sum) {
  using Elements = Vector<T, kCount>;
  constexpr int kInFlight = 32 / sizeof(T);  // rows that a warp has asked for at a time
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  for (int first = 0; first < listed; first += kWarp) {
    const int mine = first + lane;
    unsigned hits = __ballot_sync(kWholeWarp, mine < listed && list.row[mine] == row);
    while (hits != 0) {
      Elements in[kInFlight];
      const int taken = __popc(hits) < kInFlight ? __popc(hits) : kInFlight;
#pragma unroll
      for (int f = 0; f < kInFlight; ++f) {
        if (f >= taken) continue;
        const int64_t token = list.token[first + __ffs(static_cast<int>(hits)) - 1];
        hits &= hits - 1;
        if (active) in[f] = *reinterpret_cast<const Elements*>(dy + token * cols);
      }
#pragma unroll
      for (int f = 0; f < kInFlight; ++f) {
        if (f >= taken || !active) continue;
#pragma unroll
        for (int k = 0; k < kCount; ++k) sum[k] += Load(in[f].at[k]);
      }
    }
  }
}

// Whether the list has ids of the block's row `row`. All lanes of a warp call it.
__device__ bool IsListed(const Listed& list, int listed, int row) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  for (int first = 0; first < listed; first += kWarp) {
    const int mine = first + lane;
    if (__any_sync(kWholeWarp, mine < listed && list.row[mine] == row)) return true;
  }
  return false;
}

// dtable = initial + what is listed, in the block's rows: a warp has kCount columns a lane of one
// row at a time.
template <class T, int kCount>
__device__ void AddToRows(const GradOf& grad, const Listed& list, int listed, const T* dy,
                          const float* initial, float* dtable) {
  using Sums = Vector<float, kCount>;
  constexpr int kColumns = kWarp * kCount;
  const int64_t cols = grad.shape.cols;
  const int parts = static_cast<int>((cols + kColumns - 1) / kColumns);
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  int64_t row_of_table = blockIdx.x;
  for (int row = 0, part = static_cast<int>(threadIdx.x) / kWarp;; part += kWarps) {
    for (; part >= parts; part -= parts) {
      ++row;
      row_of_table += grad.blocks.divisor();
    }
    if (row_of_table >= grad.shape.rows) break;
    const bool any = IsListed(list, listed, row);
    if (!any && initial == dtable) continue;
    const int64_t c = int64_t{part} * kColumns + lane * kCount;
    const bool active = c < cols;
    const int64_t at = row_of_table * cols + c;
    Sums sums = {};
    if (active && initial != nullptr) sums = *reinterpret_cast<const Sums*>(initial + at);
    if (any) AddListed<T, kCount>(list, listed, row, cols, active, dy + c, sums.at);
    if (active) *reinterpret_cast<Sums*>(dtable + at) = sums;
  }
}

template <class T, int kCount>
__global__ void __launch_bounds__(kThreads)
    LookupGradKernel(GradOf grad, int64_t n, const int64_t* ids, const T* dy, const float* initial,
                     float* dtable) {
  __shared__ Listed list;
  int listed = 0;
  int64_t begin = 0;
  do {
    listed += ListRound(grad, n, begin, ids, listed, &list);
    begin += kRound;
    if (listed + kRound <= kMostListed && begin < n) continue;
    AddToRows<T, kCount>(grad, list, listed, dy, initial, dtable);
    initial = dtable;
    listed = 0;
    __syncthreads();
  } while (begin < n);
}

}  // namespace

template <class T>
int LookupGrad(Stream stream, const TableShape& shape, int64_t n, const int64_t* ids, const T* dy,
               const float* initial, float* dtable) {
  const int64_t blocks =
      std::min(shape.rows, std::clamp(shape.rows / kRowsOfBlock, kFewBlocks, kMostBlocks));
  const LaunchShape launch = ShapeForRows(blocks, kThreads);
  const GradOf grad = {shape, FastDivisor(blocks)};
  const bool vectors = shape.cols % 4 == 0 && IsAligned(dy, 4 * sizeof(T)) &&
                       IsAligned(initial, 16) && IsAligned(dtable, 16);
  if (vectors) {
    return Launch(LookupGradKernel<T, 4>, launch, stream, grad, n, ids, dy, initial, dtable);
  }
  return Launch(LookupGradKernel<T, 1>, launch, stream, grad, n, ids, dy, initial, dtable);
}

template int LookupGrad(Stream, const TableShape&, int64_t, const int64_t*, const float*,
                        const float*, float*);
template int LookupGrad(Stream, const TableShape&, int64_t, const int64_t*, const Bfloat16*,
                        const float*, float*);
template int LookupGrad(Stream, const TableShape&, int64_t, const int64_t*, const Float16*,
                        const float*, float*);

}  // namespace mgc::cuda
