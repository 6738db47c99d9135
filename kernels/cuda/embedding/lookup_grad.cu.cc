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
constexpr int kMostBlocks = 132 * 4;           // each reads all ids
constexpr int kPerThread = 8;                  // ids that a thread looks at in a round
constexpr int kRound = kThreads * kPerThread;  // ids of a round
constexpr int kMostListed = 2 * kRound;
constexpr int kInFlight = 8;  // rows of dy that a warp has asked for at a time

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
// more, without (`active`).
template <class T, int kCount>
__device__ void AddListed(const Listed& list, int listed, int row, int64_t cols, bool active,
                          const T* dy, float* sum) {
  using Elements = Vector<T, kCount>;
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

// Adds what is listed to the block's rows: a warp has kCount columns a lane of one row at a time.
template <class T, int kCount>
__device__ void AddToRows(const GradOf& grad, const Listed& list, int listed, int rows, const T* dy,
                          float* dtable) {
  using Sums = Vector<float, kCount>;
  constexpr int kColumns = kWarp * kCount;
  const int64_t cols = grad.shape.cols;
  const int parts = static_cast<int>((cols + kColumns - 1) / kColumns);
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  for (int row = 0, part = static_cast<int>(threadIdx.x) / kWarp;; part += kWarps) {
    for (; part >= parts; part -= parts) ++row;
    if (row >= rows) break;
    bool any = false;
    for (int first = 0; first < listed && !any; first += kWarp) {
      any = __any_sync(kWholeWarp, first + lane < listed && list.row[first + lane] == row);
    }
    if (!any) continue;
    const int64_t c = int64_t{part} * kColumns + lane * kCount;
    const bool active = c < cols;
    auto* const at =
        reinterpret_cast<Sums*>(dtable + (row * grad.blocks.divisor() + blockIdx.x) * cols + c);
    Sums sums = {};
    if (active) sums = *at;
    AddListed<T, kCount>(list, listed, row, cols, active, dy + c, sums.at);
    if (active) *at = sums;
  }
}

// The block's rows begin as those of `initial`, or as zeros.
template <int kCount>
__device__ void BeginRows(const GradOf& grad, int rows, const float* initial, float* dtable) {
  using Elements = Vector<float, kCount>;
  const int units = static_cast<int>(grad.shape.cols / kCount);
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  for (int row = static_cast<int>(threadIdx.x) / kWarp; row < rows; row += kWarps) {
    const int64_t at = (row * grad.blocks.divisor() + blockIdx.x) * units;
    auto* const to = reinterpret_cast<Elements*>(dtable) + at;
    const auto* const from = reinterpret_cast<const Elements*>(initial) + at;
    for (int u = lane; u < units; u += kWarp) to[u] = initial != nullptr ? from[u] : Elements{};
  }
}

template <class T, int kCount>
__global__ void __launch_bounds__(kThreads)
    LookupGradKernel(GradOf grad, int64_t n, const int64_t* ids, const T* dy, const float* initial,
                     float* dtable) {
  __shared__ Listed list;
  const int64_t blocks = grad.blocks.divisor();
  const int rows = static_cast<int>((grad.shape.rows - blockIdx.x + blocks - 1) / blocks);
  if (initial != dtable) BeginRows<kCount>(grad, rows, initial, dtable);
  int listed = 0;
  for (int64_t begin = 0; begin < n; begin += kRound) {
    listed += ListRound(grad, n, begin, ids, listed, &list);
    if (listed + kRound <= kMostListed && begin + kRound < n) continue;
    AddToRows<T, kCount>(grad, list, listed, rows, dy, dtable);
    listed = 0;
    __syncthreads();
  }
}

}  // namespace

template <class T>
int LookupGrad(Stream stream, const TableShape& shape, int64_t n, const int64_t* ids, const T* dy,
               const float* initial, float* dtable) {
  const int64_t blocks = std::min<int64_t>(shape.rows, kMostBlocks);
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
