#include "kernels/cuda/reduce/reduce.h"

#include <algorithm>

#include "kernels/cuda/device/column_sums.h"
#include "kernels/cuda/device/each.h"
#include "kernels/cuda/device/rows.h"

namespace mgc::cuda {
namespace {

// Numbers as doubles and back, rounded as f32 first where they are narrower.
__device__ inline double Wide(double x) { return x; }
template <class T>
__device__ double Wide(T x) {
  return static_cast<double>(Load(x));
}
template <class R>
__device__ R Narrow(double x) {
  if constexpr (std::is_same_v<R, double>) {
    return x;
  } else {
    return Store<R>(static_cast<float>(x));
  }
}
template <class R, class T>
__device__ R Convert(T x) {
  if constexpr (std::is_same_v<R, T>) {
    return x;
  } else {
    return Narrow<R>(Wide(x));
  }
}

// Where element `i` in row-major order lies.
template <class Index>
__device__ int64_t OffsetIn(const IndexBox& box, Index i) {
  int64_t offset = 0;
  for (int d = box.dims - 1; d > 0; --d) {
    const auto extent = static_cast<Index>(box.extents[d]);
    offset += static_cast<int64_t>(i % extent) * box.strides[d];
    i /= extent;
  }
  return box.dims > 0 ? offset + static_cast<int64_t>(i) * box.strides[0] : 0;
}
// Division of 32 bits is much the faster one.
__device__ inline int64_t At(const IndexBox& box, int64_t i) {
  return box.size <= 0xffffffff ? OffsetIn(box, static_cast<uint32_t>(i))
                                : OffsetIn(box, static_cast<uint64_t>(i));
}

template <class T, class R>
struct SumOfBox {
  IndexBox kept, reduced;
  const T* x;
  R* y;

  __device__ void operator()(int64_t i) const {
    const T* from = x + At(kept, i);
    double sum = 0;
    for (int64_t j = 0; j < reduced.size; ++j) sum += Wide(from[At(reduced, j)]);
    y[i] = Narrow<R>(sum);
  }
};

template <class T, class R>
struct MaxOfBox {
  IndexBox kept, reduced;
  const T* x;
  R* y;

  __device__ void operator()(int64_t i) const {
    const T* from = x + At(kept, i);
    float most = -INFINITY;
    for (int64_t j = 0; j < reduced.size; ++j) most = fmaxf(most, Load(from[At(reduced, j)]));
    y[i] = Store<R>(most);
  }
};

// Sums of a group are of f32, those of groups of f64.
template <class T, class R>
struct SumRow {
  int64_t cols;
  const T* x;
  R* y;
  bool whole;

  template <class Team>
  __device__ void operator()(int64_t r, const Team& team) const {
    constexpr int kCount = kPerVector<T>;
    const T* row = x + r * cols;
    double sum = 0;
#pragma unroll 4
    for (int first = team.rank * kCount; first < cols; first += team.size * kCount) {
      const Group<T> group = LoadGroup(row, first, static_cast<int>(cols), whole);
      float part = 0;
#pragma unroll
      for (int k = 0; k < kCount; ++k) part += Load(group.at[k]);
      sum += part;
    }
    sum = team.Sum(sum);
    if (team.rank == 0) y[r] = Narrow<R>(sum);
  }
};

template <class T, class R>
struct MaxRow {
  int64_t cols, valid;
  const T* x;
  R* y;
  bool whole;

  template <class Team>
  __device__ void operator()(int64_t r, const Team& team) const {
    constexpr int kCount = kPerVector<T>;
    const T* row = x + r * cols;
    float most = -INFINITY;
#pragma unroll 4
    for (int first = team.rank * kCount; first < valid; first += team.size * kCount) {
      const Group<T> group = LoadGroup(row, first, static_cast<int>(cols), whole);
#pragma unroll
      for (int k = 0; k < kCount; ++k) {
        if (first + k < valid) most = fmaxf(most, Load(group.at[k]));
      }
    }
    most = team.Max(most);
    if (team.rank == 0) y[r] = Store<R>(most);
  }
};

// Part p of matrix o of [outer, rows, cols] has blocks (p · outer + o) · strips, + 1, ...
// (column_sums.h) and row p · outer + o of y.
template <class T, class R>
__global__ void __launch_bounds__(kMostThreads)
    SumColumnsKernel(int64_t outer, int parts, int64_t rows, int64_t cols, int64_t strips,
                     bool whole, const T* x, R* y) {
  constexpr int kCount = kPerVector<T>;
  const int64_t row_of_y = blockIdx.x / strips, o = row_of_y % outer;
  const auto part = static_cast<int>(row_of_y / outer);
  const int strip = static_cast<int>(blockIdx.x - row_of_y * strips) * kStripGroups * kCount;
  const int width = static_cast<int>(cols);
  const T* const matrix = x + o * rows * cols;
  SumStrip<1, kCount>(
      RowPart::Of(rows, part, parts), width, strip,
      [&](int64_t r, int first, SumsOfGroup<1, kCount>* sums) {
        const Group<T> group = LoadGroup(matrix + r * cols, first, width, whole);
#pragma unroll
        for (int k = 0; k < kCount; ++k) sums->at[k] += Load(group.at[k]);
      },
      [&](int /*sum*/, int col, float value) { y[row_of_y * cols + col] = Store<R>(value); });
}

template <class T, class R>
int SumColumns(Stream stream, int64_t outer, int parts, int64_t rows, int64_t cols, const T* x,
               R* y) {
  return Launch(SumColumnsKernel<T, R>,
                StripShape(outer * parts, rows / parts, cols, kPerVector<T>), stream, outer, parts,
                rows, cols, StripsOf(cols, kPerVector<T>), HasWholeGroups(x, cols), x, y);
}

template <class R>
struct PutSum {
  R* y;

  __device__ void operator()(int64_t i, float sum) const { y[i] = Store<R>(sum); }
};

// `kCount` neighbours of the result, which lie in one run of the box' last dim.
template <class T, class R, int kCount>
struct BroadcastGroup {
  IndexBox box;
  const T* x;
  R* y;

  __device__ void operator()(int64_t g) const {
    const T* from = x + At(box, g * kCount);
    const int64_t step = box.dims > 0 ? box.strides[box.dims - 1] : 0;
    Vector<R, kCount> out;
#pragma unroll
    for (int k = 0; k < kCount; ++k) out.at[k] = Convert<R>(from[k * step]);
    reinterpret_cast<Vector<R, kCount>*>(y)[g] = out;
  }
};

struct Itself {
  __device__ double operator()(double x, double /*w*/) const { return x; }
};
struct Square {
  __device__ double operator()(double x, double /*w*/) const { return x * x; }
};
struct Product {
  __device__ double operator()(double x, double w) const { return x * w; }
};

constexpr int kSumThreads = 256;
constexpr int64_t kSumMostBlocks = int64_t{132} * 8;
constexpr int64_t kSumOfBlock = 4096;  // elements, until there are kSumMostBlocks

int64_t SumBlocks(int64_t n) {
  return std::max<int64_t>(std::min((n + kSumOfBlock - 1) / kSumOfBlock, kSumMostBlocks), 1);
}

// Groups go round the threads of the whole grid; each block leaves one sum.
template <class T, class Term>
__global__ void __launch_bounds__(kSumThreads)
    SumTermsKernel(Term term, int64_t n, bool aligned, const T* x, const T* w, double* sums) {
  constexpr int kCount = kPerVector<T>;
  const int64_t stride = int64_t{gridDim.x} * blockDim.x * kCount;
  double sum = 0;
#pragma unroll 4
  for (int64_t at = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * kCount; at < n;
       at += stride) {
    const int count = n - at < kCount ? static_cast<int>(n - at) : kCount;
    const bool whole = aligned && count == kCount;
    const Group<T> a = LoadGroup(x + at, 0, count, whole);
    const Group<T> b = w == nullptr ? a : LoadGroup(w + at, 0, count, whole);
#pragma unroll
    for (int k = 0; k < kCount; ++k) {
      sum += term(static_cast<double>(a.at[k]), static_cast<double>(b.at[k]));
    }
  }
  sum = BlockSum(sum);
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

__global__ void SumSumsKernel(int n, const double* sums, double* y) {
  double sum = 0;
  for (int i = static_cast<int>(threadIdx.x); i < n; i += static_cast<int>(blockDim.x)) {
    sum += sums[i];
  }
  sum = BlockSum(sum);
  if (threadIdx.x == 0) *y = sum;
}

template <class T, class Term>
int SumTerms(Stream stream, int64_t n, Term term, const T* x, const T* w, void* workspace,
             double* sum) {
  const int64_t blocks = SumBlocks(n);
  double* const sums = blocks == 1 ? sum : static_cast<double*>(workspace);
  const bool aligned = IsAligned(x, 16) && IsAligned(w, 16);
  const int error = Launch(SumTermsKernel<T, Term>, ShapeForRows(blocks, kSumThreads), stream, term,
                           n, aligned, x, w, sums);
  if (error != 0 || blocks == 1) return error;
  return Launch(SumSumsKernel, ShapeForRows(1, kSumThreads), stream, blocks, sums, sum);
}

// As many places as a launch takes as an argument.
struct Places {
  static constexpr int kMost = 256;
  const double* at[kMost];
};
struct StackOf {
  Places from;
  double* y;

  __device__ void operator()(int64_t i) const { y[i] = *from.at[i]; }
};

}  // namespace

template <class T, class R>
int SumMiddle(Stream stream, int64_t outer, int64_t reduced, int64_t inner, const PartsRoom& room,
              const T* x, R* y) {
  constexpr int64_t kFew = 16;  // a thread sums as many in order
  if (reduced <= kFew || std::max(reduced, inner) > kMostRowElements) {
    const IndexBox kept = {outer * inner, 2, {outer, inner}, {reduced * inner, 1}};
    return SumAny(stream, kept, {reduced, 1, {reduced}, {inner}}, x, y);
  }
  if (inner == 1) {
    return ForRows<T>(stream, outer, reduced,
                      SumRow<T, R>{reduced, x, y, HasWholeGroups(x, reduced)});
  }
  if (room.parts == 1) return SumColumns(stream, outer, 1, reduced, inner, x, y);
  const int error = SumColumns(stream, outer, room.parts, reduced, inner, x, room.at);
  if (error != 0) return error;
  return Each(stream, outer * inner, AddParts<PutSum<R>>{room.parts, outer * inner, room.at, {y}});
}

template <class T, class R>
int SumAny(Stream stream, const IndexBox& kept, const IndexBox& reduced, const T* x, R* y) {
  return Each(stream, kept.size, SumOfBox<T, R>{kept, reduced, x, y});
}

template <class T, class R>
int RowMax(Stream stream, int64_t rows, int64_t cols, int64_t valid, const T* x, R* y) {
  return ForRows<T>(stream, rows, cols, MaxRow<T, R>{cols, valid, x, y, HasWholeGroups(x, cols)});
}

template <class T, class R>
int MaxAny(Stream stream, const IndexBox& kept, const IndexBox& reduced, const T* x, R* y) {
  return Each(stream, kept.size, MaxOfBox<T, R>{kept, reduced, x, y});
}

template <class T, class R>
int Broadcast(Stream stream, const IndexBox& box, const T* x, R* y) {
  constexpr int kCount = kPerVector<R>;
  const int64_t run = box.dims > 0 ? box.extents[box.dims - 1] : 1;
  if (run % kCount == 0 && IsAligned(y, 16)) {
    return Each(stream, box.size / kCount, BroadcastGroup<T, R, kCount>{box, x, y});
  }
  return Each(stream, box.size, BroadcastGroup<T, R, 1>{box, x, y});
}

int64_t SumWorkspaceBytes(int64_t n) {
  const int64_t blocks = SumBlocks(n);
  return blocks == 1 ? 0 : blocks * static_cast<int64_t>(sizeof(double));
}

template <class T>
int Total(Stream stream, int64_t n, const T* x, void* workspace, double* sum) {
  return SumTerms<T>(stream, n, Itself(), x, nullptr, workspace, sum);
}
template <class T>
int SumSquares(Stream stream, int64_t n, const T* x, void* workspace, double* sum) {
  return SumTerms<T>(stream, n, Square(), x, nullptr, workspace, sum);
}
template <class T>
int WeightedSum(Stream stream, int64_t n, const T* x, const T* w, void* workspace, double* sum) {
  return SumTerms<T>(stream, n, Product(), x, w, workspace, sum);
}

int Stack(Stream stream, int64_t n, const void* const* x, double* y) {
  for (int64_t begin = 0; begin < n; begin += Places::kMost) {
    const int64_t count = std::min<int64_t>(n - begin, Places::kMost);
    StackOf stack = {{}, y + begin};
    for (int64_t i = 0; i < count; ++i) {
      stack.from.at[i] = static_cast<const double*>(x[begin + i]);
    }
    const int error = Each(stream, count, stack);
    if (error != 0) return error;
  }
  return 0;
}

#define MGC_INSTANTIATE_REDUCE(T, R)                                                               \
  template int SumMiddle<T, R>(Stream, int64_t, int64_t, int64_t, const PartsRoom&, const T*, R*); \
  template int SumAny<T, R>(Stream, const IndexBox&, const IndexBox&, const T*, R*);               \
  template int RowMax<T, R>(Stream, int64_t, int64_t, int64_t, const T*, R*);                      \
  template int MaxAny<T, R>(Stream, const IndexBox&, const IndexBox&, const T*, R*)
MGC_INSTANTIATE_REDUCE(float, float);
MGC_INSTANTIATE_REDUCE(Bfloat16, Bfloat16);
MGC_INSTANTIATE_REDUCE(Float16, Float16);
MGC_INSTANTIATE_REDUCE(Bfloat16, float);
MGC_INSTANTIATE_REDUCE(Float16, float);
#undef MGC_INSTANTIATE_REDUCE
template int SumAny<double, double>(Stream, const IndexBox&, const IndexBox&, const double*,
                                    double*);

#define MGC_INSTANTIATE_BROADCAST(T)                                                 \
  template int Broadcast<T, float>(Stream, const IndexBox&, const T*, float*);       \
  template int Broadcast<T, double>(Stream, const IndexBox&, const T*, double*);     \
  template int Broadcast<T, Bfloat16>(Stream, const IndexBox&, const T*, Bfloat16*); \
  template int Broadcast<T, Float16>(Stream, const IndexBox&, const T*, Float16*)
MGC_INSTANTIATE_BROADCAST(float);
MGC_INSTANTIATE_BROADCAST(double);
MGC_INSTANTIATE_BROADCAST(Bfloat16);
MGC_INSTANTIATE_BROADCAST(Float16);
#undef MGC_INSTANTIATE_BROADCAST

#define MGC_INSTANTIATE_SUM(T)                                           \
  template int Total<T>(Stream, int64_t, const T*, void*, double*);      \
  template int SumSquares<T>(Stream, int64_t, const T*, void*, double*); \
  template int WeightedSum<T>(Stream, int64_t, const T*, const T*, void*, double*)
MGC_INSTANTIATE_SUM(float);
MGC_INSTANTIATE_SUM(double);
#undef MGC_INSTANTIATE_SUM

}  // namespace mgc::cuda
