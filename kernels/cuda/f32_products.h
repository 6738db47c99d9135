// What products of f32 on a GPU make of their operands.

#ifndef MGC_KERNELS_CUDA_F32_PRODUCTS_H_
#define MGC_KERNELS_CUDA_F32_PRODUCTS_H_

#include <cstdint>

namespace mgc {

// Nothing, or numbers of TF32, which have f32's range and 10 bits of fraction. Sums are f32 either
// way, and every run with the same choice has the same bits.
enum class F32Products : uint8_t { kWhole, kTf32 };

}  // namespace mgc

#endif  // MGC_KERNELS_CUDA_F32_PRODUCTS_H_
