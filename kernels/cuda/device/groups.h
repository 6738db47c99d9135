// A row's elements in groups of 16 bytes: how threads share a row among them. Which elements are in
// a group does not depend on where the row lies; rows that are not aligned are read and written
// element by element, with the same results.

#ifndef MGC_KERNELS_CUDA_DEVICE_GROUPS_H_
#define MGC_KERNELS_CUDA_DEVICE_GROUPS_H_

#include "kernels/cuda/device/elements.h"
#include "kernels/cuda/device/map.h"

namespace mgc::cuda {

template <class T>
using Group = Vector<T, kPerVector<T>>;

// Whether rows of `cols` elements that begin at `rows` may be accessed in whole groups.
template <class T>
bool HasWholeGroups(const T* rows, int64_t cols) {
  return IsAligned(rows, 16) && cols % kPerVector<T> == 0;
}

// The group that begins at column `first` < `cols`; zeros beyond the row. `whole`: as above.
template <class T>
__device__ Group<T> LoadGroup(const T* row, int first, int cols, bool whole) {
  if (whole) return *reinterpret_cast<const Group<T>*>(row + first);
  Group<T> group;
#pragma unroll
  for (int k = 0; k < kPerVector<T>; ++k) group.at[k] = first + k < cols ? row[first + k] : T{};
  return group;
}

template <class T>
__device__ void StoreGroup(const Group<T>& group, T* row, int first, int cols, bool whole) {
  if (whole) {
    StoreWhole(group, row + first);
    return;
  }
#pragma unroll
  for (int k = 0; k < kPerVector<T>; ++k) {
    if (first + k < cols) row[first + k] = group.at[k];
  }
}

// `kCount` floats beside a group of as many elements: parameters of f32 for rows of any type.
template <int kCount>
__device__ Vector<float, kCount> LoadFloats(const float* row, int first, int cols, bool whole) {
  Vector<float, kCount> floats;
  if (whole) {
#pragma unroll
    for (int k = 0; k < kCount; k += 4) {
      const auto four = *reinterpret_cast<const Vector<float, 4>*>(row + first + k);
#pragma unroll
      for (int j = 0; j < 4; ++j) floats.at[k + j] = four.at[j];
    }
    return floats;
  }
#pragma unroll
  for (int k = 0; k < kCount; ++k) floats.at[k] = first + k < cols ? row[first + k] : 0.0f;
  return floats;
}

}  // namespace mgc::cuda

#endif  // MGC_KERNELS_CUDA_DEVICE_GROUPS_H_
