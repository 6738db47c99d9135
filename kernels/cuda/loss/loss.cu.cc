#include "kernels/cuda/loss/loss.h"

#include "kernels/cuda/device/each.h"
#include "kernels/cuda/device/rows.h"

namespace mgc::cuda {
namespace {

// The column of an id, -1 where it is not among the valid ones.
__device__ inline int ColumnOf(const LogitsShape& shape, int64_t id) {
  const bool here = id >= shape.offset && id - shape.offset < shape.valid;
  return here ? static_cast<int>(id - shape.offset) : -1;
}

// Sums of a group are of f32, those of groups of f64.
template <class T>
struct ExpSumRow {
  LogitsShape shape;
  const T* logits;
  const float* m;
  float* z;
  bool whole;

  template <class Team>
  __device__ void operator()(int64_t r, const Team& team) const {
    constexpr int kCount = kPerVector<T>;
    const int cols = static_cast<int>(shape.cols), valid = static_cast<int>(shape.valid);
    const T* row = logits + r * shape.cols;
    const float shift = m[r];
    double sum = 0;
#pragma unroll 2
    for (int first = team.rank * kCount; first < valid; first += team.size * kCount) {
      const Group<T> group = LoadGroup(row, first, cols, whole);
      float part = 0;
#pragma unroll
      for (int k = 0; k < kCount; ++k) {
        const float e = expf(Load(group.at[k]) - shift);
        part += first + k < valid ? e : 0.0f;
      }
      sum += part;
    }
    sum = team.Sum(sum);
    if (team.rank == 0) z[r] = static_cast<float>(sum);
  }
};

// The gradient of a row from exp(l - m), from the target, or from both.
template <class T, bool kFromSum, bool kFromPick>
struct GradRow {
  LogitsShape shape;
  const T* logits;
  const float* m;
  const float* dz;
  const int64_t* ids;
  const float* dp;
  T* dlogits;
  bool whole;

  struct Numbers {
    float shift = 0, scale = 0, extra = 0;  // extra: at the target
    int target = -1;
  };

  __device__ T At(T logit, int col, const Numbers& n) const {
    float value = 0;
    if (kFromSum) value = expf(Load(logit) - n.shift) * n.scale;
    if (kFromPick && col == n.target) value += n.extra;
    return col < static_cast<int>(shape.valid) ? Store<T>(value) : T{};
  }

  // Two groups are read before the first is written: dlogits may be the logits.
  template <class Team>
  __device__ void operator()(int64_t r, const Team& team) const {
    constexpr int kCount = kPerVector<T>;
    const int cols = static_cast<int>(shape.cols), step = team.size * kCount;
    const T* from = kFromSum ? logits + r * shape.cols : nullptr;
    T* to = dlogits + r * shape.cols;
    Numbers n;
    if (kFromSum) {
      n.shift = m[r];
      n.scale = dz[r];
    }
    if (kFromPick) {
      n.extra = dp[r];
      n.target = ColumnOf(shape, ids[r]);
    }
    for (int first = team.rank * kCount; first < cols; first += 2 * step) {
      Group<T> groups[2] = {};
#pragma unroll
      for (int g = 0; g < 2; ++g) {
        const int begin = first + g * step;
        if (kFromSum && begin < cols) groups[g] = LoadGroup(from, begin, cols, whole);
      }
#pragma unroll
      for (int g = 0; g < 2; ++g) {
        const int begin = first + g * step;
        if (begin >= cols) break;
        Group<T> made;
#pragma unroll
        for (int k = 0; k < kCount; ++k) made.at[k] = At(groups[g].at[k], begin + k, n);
        StoreGroup(made, to, begin, cols, whole);
      }
    }
  }
};

struct LogShiftOf {
  __device__ float operator()(float z, float m) const { return m + logf(z); }
};

struct CountedOf {
  int64_t ignore;
  const int64_t* ids;
  float* weights;

  __device__ void operator()(int64_t i) const { weights[i] = ids[i] == ignore ? 0.0f : 1.0f; }
};

template <class T>
struct PickOf {
  LogitsShape shape;
  const T* logits;
  const int64_t* ids;
  float* picked;

  __device__ void operator()(int64_t r) const {
    const int col = ColumnOf(shape, ids[r]);
    picked[r] = col < 0 ? 0.0f : Load(logits[r * shape.cols + col]);
  }
};

}  // namespace

template <class T>
int ExpSum(Stream stream, const LogitsShape& shape, const T* logits, const float* m, float* z) {
  const bool whole = HasWholeGroups(logits, shape.cols);
  return ForRows<T>(stream, shape.rows, shape.cols, ExpSumRow<T>{shape, logits, m, z, whole});
}

template <class T>
int ExpSumGrad(Stream stream, const LogitsShape& shape, const T* logits, const float* m,
               const float* dz, T* dlogits) {
  const bool whole = HasWholeGroups(logits, shape.cols) && HasWholeGroups(dlogits, shape.cols);
  return ForRows<T>(
      stream, shape.rows, shape.cols,
      GradRow<T, true, false>{shape, logits, m, dz, nullptr, nullptr, dlogits, whole});
}

int LogShift(Stream stream, int64_t n, const float* z, const float* m, float* lse) {
  return Map(stream, n, LogShiftOf(), lse, z, m);
}

int Counted(Stream stream, int64_t n, int64_t ignore, const int64_t* ids, float* weights) {
  return Each(stream, n, CountedOf{ignore, ids, weights});
}

template <class T>
int Pick(Stream stream, const LogitsShape& shape, const T* logits, const int64_t* ids,
         float* picked) {
  return Each(stream, shape.rows, PickOf<T>{shape, logits, ids, picked});
}

template <class T>
int PickGrad(Stream stream, const LogitsShape& shape, const int64_t* ids, const float* dp,
             T* dlogits) {
  const bool whole = HasWholeGroups(dlogits, shape.cols);
  return ForRows<T>(
      stream, shape.rows, shape.cols,
      GradRow<T, false, true>{shape, nullptr, nullptr, nullptr, ids, dp, dlogits, whole});
}

template <class T>
int CrossEntropyGrad(Stream stream, const LogitsShape& shape, const T* logits, const float* m,
                     const float* dz, const int64_t* ids, const float* dp, T* dlogits) {
  const bool whole = HasWholeGroups(logits, shape.cols) && HasWholeGroups(dlogits, shape.cols);
  return ForRows<T>(stream, shape.rows, shape.cols,
                    GradRow<T, true, true>{shape, logits, m, dz, ids, dp, dlogits, whole});
}

#define MGC_INSTANTIATE(T)                                                                     \
  template int ExpSum<T>(Stream, const LogitsShape&, const T*, const float*, float*);          \
  template int ExpSumGrad<T>(Stream, const LogitsShape&, const T*, const float*, const float*, \
                             T*);                                                              \
  template int Pick<T>(Stream, const LogitsShape&, const T*, const int64_t*, float*);          \
  template int PickGrad<T>(Stream, const LogitsShape&, const int64_t*, const float*, T*);      \
  template int CrossEntropyGrad<T>(Stream, const LogitsShape&, const T*, const float*,         \
                                   const float*, const int64_t*, const float*, T*)
MGC_INSTANTIATE(float);
MGC_INSTANTIATE(Bfloat16);
MGC_INSTANTIATE(Float16);
#undef MGC_INSTANTIATE

}  // namespace mgc::cuda
