#include "kernels/cuda/softmax/softmax.h"

#include <cmath>

#include "kernels/cuda/device/rows.h"

namespace mgc::cuda {
namespace {

// One row of y = exp(x - m) · (1 / z).
template <class T>
struct SoftmaxRow {
  int cols;
  const T* x;
  T* y;
  bool whole;

  template <class Team>
  __device__ float MaxOf(const OwnGroups<T>& row, const Team& team) const {
    float most = -INFINITY;
    row.For([&](int first, const Group<T>& group) {
#pragma unroll
      for (int k = 0; k < kPerVector<T>; ++k) {
        if (first + k < cols) most = fmaxf(most, Load(group.at[k]));
      }
    });
    return team.Max(most);
  }

  template <class Team>
  __device__ float ExpSumOf(const OwnGroups<T>& row, float most, const Team& team) const {
    double sum = 0;
    row.For([&](int first, const Group<T>& group) {
#pragma unroll
      for (int k = 0; k < kPerVector<T>; ++k) {
        if (first + k < cols) sum += static_cast<double>(expf(Load(group.at[k]) - most));
      }
    });
    return static_cast<float>(team.Sum(sum));
  }

  template <class Team>
  __device__ void operator()(int64_t r, const Team& team) const {
    const OwnGroups<T> row(x + r * cols, cols, whole, team.rank, team.size);
    const float most = MaxOf(row, team);
    const float inverse = 1.0f / ExpSumOf(row, most, team);
    row.For([&](int first, const Group<T>& group) {
      Group<T> out;
#pragma unroll
      for (int k = 0; k < kPerVector<T>; ++k) {
        out.at[k] = Store<T>(expf(Load(group.at[k]) - most) * inverse);
      }
      StoreGroup(out, y + r * cols, first, cols, whole);
    });
  }
};

// One row of dx = y · (dy - dot).
template <class T>
struct SoftmaxGradRow {
  int cols;
  const T* dy;
  const T* y;
  T* dx;
  bool whole;

  template <class Team>
  __device__ void operator()(int64_t r, const Team& team) const {
    const OwnGroups<T> grads(dy + r * cols, cols, whole, team.rank, team.size);
    const OwnGroups<T> values(y + r * cols, cols, whole, team.rank, team.size);
    double dot = 0;
    ForBoth(grads, values, cols, [&](int /*first*/, const Group<T>& g, const Group<T>& v) {
#pragma unroll
      for (int k = 0; k < kPerVector<T>; ++k) {
        dot += static_cast<double>(Load(g.at[k])) * static_cast<double>(Load(v.at[k]));
      }
    });
    const auto sum = static_cast<float>(team.Sum(dot));
    ForBoth(grads, values, cols, [&](int first, const Group<T>& g, const Group<T>& v) {
      Group<T> out;
#pragma unroll
      for (int k = 0; k < kPerVector<T>; ++k) {
        out.at[k] = Store<T>(Load(v.at[k]) * (Load(g.at[k]) - sum));
      }
      StoreGroup(out, dx + r * cols, first, cols, whole);
    });
  }
};

}  // namespace

template <class T>
int Softmax(Stream stream, int64_t rows, int64_t cols, const T* x, T* y) {
  const bool whole = HasWholeGroups(x, cols) && HasWholeGroups(y, cols);
  return ForRows<T>(stream, rows, cols, SoftmaxRow<T>{static_cast<int>(cols), x, y, whole});
}

template <class T>
int SoftmaxGrad(Stream stream, int64_t rows, int64_t cols, const T* dy, const T* y, T* dx) {
  const bool whole =
      HasWholeGroups(dy, cols) && HasWholeGroups(y, cols) && HasWholeGroups(dx, cols);
  return ForRows<T>(stream, rows, cols,
                    SoftmaxGradRow<T>{static_cast<int>(cols), dy, y, dx, whole});
}

#define MGC_INSTANTIATE(T)                                         \
  template int Softmax<T>(Stream, int64_t, int64_t, const T*, T*); \
  template int SoftmaxGrad<T>(Stream, int64_t, int64_t, const T*, const T*, T*)
MGC_INSTANTIATE(float);
MGC_INSTANTIATE(Bfloat16);
MGC_INSTANTIATE(Float16);
#undef MGC_INSTANTIATE

}  // namespace mgc::cuda
