// Arrays of the device for tests, between guards.

#ifndef MGC_KERNELS_CUDA_TESTING_DEVICE_ARRAY_H_
#define MGC_KERNELS_CUDA_TESTING_DEVICE_ARRAY_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "graph/types/bfloat16.h"
#include "graph/types/float16.h"
#include "gtest/gtest.h"
#include "kernels/cuda/api.h"

#ifdef MGC_CUDA_EMULATED
#include "kernels/cuda/emulator/emulator.h"
#endif

namespace mgc::cuda {

inline void CheckCuda(cudaError_t error) {
  ASSERT_EQ(error, cudaSuccess) << cudaGetErrorString(error);
}

// What the emulator has seen go wrong since the last call; "" on a GPU.
inline std::string TakenFault() {
#ifdef MGC_CUDA_EMULATED
  return emulator::TakeFault();
#else
  return "";
#endif
}

// `values` on the device, `shift` elements beyond an address that is aligned to 64 bytes.
template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(const std::vector<T>& values, size_t shift = 0)
      : bytes_(values.size() * sizeof(T)), begin_(kGuard + shift * sizeof(T)) {
    std::vector<unsigned char> all(begin_ + bytes_ + kGuard, kMark);
    if (bytes_ > 0) std::memcpy(all.data() + begin_, values.data(), bytes_);
    CheckCuda(cudaMalloc(&memory_, all.size()));
    CheckCuda(cudaMemcpy(memory_, all.data(), all.size(), cudaMemcpyHostToDevice));
  }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  ~DeviceArray() { cudaFree(memory_); }

  T* data() const { return reinterpret_cast<T*>(static_cast<char*>(memory_) + begin_); }

  // The contents, once the device has finished; checks the guards, and what the emulator has seen.
  std::vector<T> Values() const {
    std::vector<unsigned char> all(begin_ + bytes_ + kGuard);
    CheckCuda(cudaMemcpy(all.data(), memory_, all.size(), cudaMemcpyDeviceToHost));
    EXPECT_EQ(TakenFault(), "");
    bool intact = true;
    for (size_t i = 0; i < begin_; ++i) intact = intact && all[i] == kMark;
    for (size_t i = begin_ + bytes_; i < all.size(); ++i) intact = intact && all[i] == kMark;
    EXPECT_TRUE(intact) << "written outside of the array";
    std::vector<T> values(bytes_ / sizeof(T));
    if (bytes_ > 0) std::memcpy(values.data(), all.data() + begin_, bytes_);
    return values;
  }

 private:
  static constexpr size_t kGuard = 64;
  static constexpr unsigned char kMark = 0xa5;

  size_t bytes_, begin_;
  void* memory_ = nullptr;
};

// Uniform in [low, high), the same for the same seed.
inline std::vector<float> UniformFloats(int64_t n, uint32_t seed, float low = -1, float high = 1) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> distribution(low, high);
  std::vector<float> x(static_cast<size_t>(n));
  for (float& v : x) v = distribution(generator);
  return x;
}

inline float AsFloat(float x) { return x; }
inline float AsFloat(Bfloat16 x) { return ToFloat(x); }
inline float AsFloat(Float16 x) { return ToFloat(x); }

inline void Rounded(float x, float* to) { *to = x; }
inline void Rounded(float x, Bfloat16* to) { *to = ToBfloat16(x); }
inline void Rounded(float x, Float16* to) { *to = ToFloat16(x); }

// As elements of T, and back.
template <class T>
std::vector<T> Narrowed(const std::vector<float>& x) {
  std::vector<T> narrow(x.size());
  for (size_t i = 0; i < x.size(); ++i) Rounded(x[i], &narrow[i]);
  return narrow;
}
template <class T>
std::vector<float> Widened(const std::vector<T>& x) {
  std::vector<float> wide(x.size());
  for (size_t i = 0; i < x.size(); ++i) wide[i] = AsFloat(x[i]);
  return wide;
}

}  // namespace mgc::cuda

#endif  // MGC_KERNELS_CUDA_TESTING_DEVICE_ARRAY_H_
