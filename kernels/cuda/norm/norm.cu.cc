#include "kernels/cuda/norm/norm.h"

#include "kernels/cuda/device/column_sums.h"
#include "kernels/cuda/device/each.h"
#include "kernels/cuda/device/rows.h"

namespace mgc::cuda {
namespace {

// What LayerNorm (kCenters) and RMSNorm have in common: RMSNorm's means are 0, and it has no b.
template <class T, bool kCenters>
struct NormRow {
  NormShape shape;
  float eps;
  const T* x;
  const float* w;
  const float* b;
  T* y;
  float* mean;
  float* rstd;
  bool whole;

  template <class Team>
  __device__ float MeanOf(const OwnGroups<T>& row, const Team& team) const {
    double sum = 0;
    row.For([&](int /*first*/, const Group<T>& group) {
      float part = 0;
#pragma unroll
      for (int k = 0; k < kPerVector<T>; ++k) part += Load(group.at[k]);
      sum += part;
    });
    return static_cast<float>(team.Sum(sum) / static_cast<double>(shape.cols));
  }

  // The mean of (x - center)².
  template <class Team>
  __device__ float MeanSquareOf(const OwnGroups<T>& row, float center, const Team& team) const {
    const int cols = static_cast<int>(shape.cols);
    double sum = 0;
    row.For([&](int first, const Group<T>& group) {
      float part = 0;
#pragma unroll
      for (int k = 0; k < kPerVector<T>; ++k) {
        const float d = first + k < cols ? Load(group.at[k]) - center : 0.0f;
        part += d * d;
      }
      sum += part;
    });
    return static_cast<float>(team.Sum(sum) / static_cast<double>(shape.cols));
  }

  template <class Team>
  __device__ void operator()(int64_t r, const Team& team) const {
    constexpr int kCount = kPerVector<T>;
    const int cols = static_cast<int>(shape.cols);
    const OwnGroups<T> row(x + r * shape.cols, cols, whole, team.rank, team.size);
    const float center = kCenters ? MeanOf(row, team) : 0.0f;
    const float scale = 1.0f / sqrtf(MeanSquareOf(row, center, team) + eps);
    T* const to = y + r * shape.cols;
    row.For([&](int first, const Group<T>& group) {
      const auto weights = LoadFloats<kCount>(w, first, cols, whole);
      Vector<float, kCount> offsets = {};
      if (kCenters) offsets = LoadFloats<kCount>(b, first, cols, whole);
      Group<T> out;
#pragma unroll
      for (int k = 0; k < kCount; ++k) {
        const float hat = (Load(group.at[k]) - center) * scale;
        const float value =
            kCenters ? fmaf(hat, weights.at[k], offsets.at[k]) : hat * weights.at[k];
        out.at[k] = Store<T>(value);
      }
      StoreGroup(out, to, first, cols, whole);
    });
    if (team.rank != 0) return;
    if (kCenters) mean[r] = center;
    rstd[r] = scale;
  }
};

template <class T, bool kCenters>
struct NormGradRow {
  NormShape shape;
  const T* dy;
  const T* x;
  const float* w;
  const float* mean;
  const float* rstd;
  T* dx;
  bool whole;

  // The means of g · x̂ and of g.
  struct Means {
    float along = 0, whole = 0;
  };

  template <class Team>
  __device__ Means MeansOf(const OwnGroups<T>& grads, const OwnGroups<T>& row, float center,
                           float scale, const Team& team) const {
    constexpr int kCount = kPerVector<T>;
    const int cols = static_cast<int>(shape.cols);
    double along = 0, all = 0;
    ForBoth(grads, row, cols, [&](int first, const Group<T>& grad, const Group<T>& value) {
      const auto weights = LoadFloats<kCount>(w, first, cols, whole);
      float part = 0, part_along = 0;
#pragma unroll
      for (int k = 0; k < kCount; ++k) {
        const float g = Load(grad.at[k]) * weights.at[k];
        part += g;
        part_along += g * ((Load(value.at[k]) - center) * scale);
      }
      all += part;
      along += part_along;
    });
    const auto cols_of_row = static_cast<double>(shape.cols);
    Means means;
    means.along = static_cast<float>(team.Sum(along) / cols_of_row);
    if (kCenters) means.whole = static_cast<float>(team.Sum(all) / cols_of_row);
    return means;
  }

  template <class Team>
  __device__ void operator()(int64_t r, const Team& team) const {
    constexpr int kCount = kPerVector<T>;
    const int cols = static_cast<int>(shape.cols);
    const OwnGroups<T> grads(dy + r * shape.cols, cols, whole, team.rank, team.size);
    const OwnGroups<T> row(x + r * shape.cols, cols, whole, team.rank, team.size);
    const float center = kCenters ? mean[r] : 0.0f, scale = rstd[r];
    const Means means = MeansOf(grads, row, center, scale, team);
    T* const to = dx + r * shape.cols;
    ForBoth(grads, row, cols, [&](int first, const Group<T>& grad, const Group<T>& value) {
      const auto weights = LoadFloats<kCount>(w, first, cols, whole);
      Group<T> out;
#pragma unroll
      for (int k = 0; k < kCount; ++k) {
        const float hat = (Load(value.at[k]) - center) * scale;
        const float g = fmaf(Load(grad.at[k]), weights.at[k], -means.whole);
        out.at[k] = Store<T>(scale * (g - hat * means.along));
      }
      StoreGroup(out, to, first, cols, whole);
    });
  }
};

// dw and, of LayerNorm, db; one behind the other where they are parts.
struct ParamGrads {
  int64_t cols;
  float* dw;
  float* db;

  __device__ void operator()(int64_t i, float sum) const {
    (i < cols ? dw[i] : db[i - cols]) = sum;
  }
};

// A strip of columns for each block (column_sums.h), part by part.
template <class T, bool kCenters>
__global__ void __launch_bounds__(kMostThreads)
    NormParamGradKernel(NormShape shape, int parts, const T* dy, const T* x, const float* mean,
                        const float* rstd, bool whole, ParamGrads to) {
  constexpr int kCount = kPerVector<T>, kSums = kCenters ? 2 : 1;
  const int cols = static_cast<int>(shape.cols);
  const int strips = static_cast<int>(gridDim.x) / parts;
  const int part = static_cast<int>(blockIdx.x) / strips;
  const int strip = static_cast<int>(blockIdx.x) % strips * kStripGroups * kCount;
  const auto add = [&](int64_t r, int first, SumsOfGroup<kSums, kCount>* sums) {
    const Group<T> grad = LoadGroup(dy + r * shape.cols, first, cols, whole);
    const Group<T> value = LoadGroup(x + r * shape.cols, first, cols, whole);
    const float center = kCenters ? mean[r] : 0.0f, scale = rstd[r];
#pragma unroll
    for (int k = 0; k < kCount; ++k) {
      const float g = Load(grad.at[k]);
      sums->at[k] += g * ((Load(value.at[k]) - center) * scale);
      if (kCenters) sums->at[(kSums - 1) * kCount + k] += g;
    }
  };
  const auto put = [&](int sum, int col, float value) {
    if (parts == 1) return to(sum * shape.cols + col, value);
    to.dw[(int64_t{part} * kSums + sum) * shape.cols + col] = value;
  };
  SumStrip<kSums, kCount>(RowPart::Of(shape.rows, part, parts), cols, strip, add, put);
}

template <class T, bool kCenters>
int NormParamGrad(Stream stream, const NormShape& shape, const PartsRoom& room, const T* dy,
                  const T* x, const float* mean, const float* rstd, const ParamGrads& to) {
  const bool whole = HasWholeGroups(dy, shape.cols) && HasWholeGroups(x, shape.cols);
  const int parts = room.parts;
  const ParamGrads parts_to = {shape.cols, room.at, nullptr};
  const int error = Launch(NormParamGradKernel<T, kCenters>,
                           StripShape(parts, shape.rows / parts, shape.cols, kPerVector<T>), stream,
                           shape, parts, dy, x, mean, rstd, whole, parts == 1 ? to : parts_to);
  if (error != 0 || parts == 1) return error;
  const int64_t size = (kCenters ? 2 : 1) * shape.cols;
  return Each(stream, size, AddParts<ParamGrads>{parts, size, room.at, to});
}

}  // namespace

template <class T>
int LayerNorm(Stream stream, const NormShape& shape, float eps, const T* x, const float* w,
              const float* b, T* y, float* mean, float* rstd) {
  const bool whole = HasWholeGroups(x, shape.cols) && HasWholeGroups(y, shape.cols) &&
                     IsAligned(w, 16) && IsAligned(b, 16);
  return ForRows<T>(stream, shape.rows, shape.cols,
                    NormRow<T, true>{shape, eps, x, w, b, y, mean, rstd, whole});
}

template <class T>
int LayerNormGrad(Stream stream, const NormShape& shape, const T* dy, const T* x, const float* w,
                  const float* mean, const float* rstd, T* dx) {
  const bool whole = HasWholeGroups(dy, shape.cols) && HasWholeGroups(x, shape.cols) &&
                     HasWholeGroups(dx, shape.cols) && IsAligned(w, 16);
  return ForRows<T>(stream, shape.rows, shape.cols,
                    NormGradRow<T, true>{shape, dy, x, w, mean, rstd, dx, whole});
}

template <class T>
int LayerNormParamGrad(Stream stream, const NormShape& shape, const PartsRoom& room, const T* dy,
                       const T* x, const float* mean, const float* rstd, float* dw, float* db) {
  return NormParamGrad<T, true>(stream, shape, room, dy, x, mean, rstd, {shape.cols, dw, db});
}

template <class T>
int RmsNorm(Stream stream, const NormShape& shape, float eps, const T* x, const float* w, T* y,
            float* rstd) {
  const bool whole =
      HasWholeGroups(x, shape.cols) && HasWholeGroups(y, shape.cols) && IsAligned(w, 16);
  return ForRows<T>(stream, shape.rows, shape.cols,
                    NormRow<T, false>{shape, eps, x, w, nullptr, y, nullptr, rstd, whole});
}

template <class T>
int RmsNormGrad(Stream stream, const NormShape& shape, const T* dy, const T* x, const float* w,
                const float* rstd, T* dx) {
  const bool whole = HasWholeGroups(dy, shape.cols) && HasWholeGroups(x, shape.cols) &&
                     HasWholeGroups(dx, shape.cols) && IsAligned(w, 16);
  return ForRows<T>(stream, shape.rows, shape.cols,
                    NormGradRow<T, false>{shape, dy, x, w, nullptr, rstd, dx, whole});
}

template <class T>
int RmsNormParamGrad(Stream stream, const NormShape& shape, const PartsRoom& room, const T* dy,
                     const T* x, const float* rstd, float* dw) {
  return NormParamGrad<T, false>(stream, shape, room, dy, x, nullptr, rstd,
                                 {shape.cols, dw, nullptr});
}

#define MGC_INSTANTIATE(T)                                                                         \
  template int LayerNorm<T>(Stream, const NormShape&, float, const T*, const float*, const float*, \
                            T*, float*, float*);                                                   \
  template int LayerNormGrad<T>(Stream, const NormShape&, const T*, const T*, const float*,        \
                                const float*, const float*, T*);                                   \
  template int LayerNormParamGrad<T>(Stream, const NormShape&, const PartsRoom&, const T*,         \
                                     const T*, const float*, const float*, float*, float*);        \
  template int RmsNorm<T>(Stream, const NormShape&, float, const T*, const float*, T*, float*);    \
  template int RmsNormGrad<T>(Stream, const NormShape&, const T*, const T*, const float*,          \
                              const float*, T*);                                                   \
  template int RmsNormParamGrad<T>(Stream, const NormShape&, const PartsRoom&, const T*, const T*, \
                                   const float*, float*)
MGC_INSTANTIATE(float);
MGC_INSTANTIATE(Bfloat16);
MGC_INSTANTIATE(Float16);
#undef MGC_INSTANTIATE

}  // namespace mgc::cuda
