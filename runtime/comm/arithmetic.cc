#include "runtime/comm/arithmetic.h"

#include <algorithm>

#include "graph/types/bfloat16.h"
#include "graph/types/float16.h"

namespace mgc {
namespace {

constexpr int64_t kBlock = 1024;  // elements added at a time: they stay in the first cache

template <typename T>
struct Plus {
  T operator()(T a, T b) const { return a + b; }
};
template <typename T>
struct Larger {
  T operator()(T a, T b) const { return a > b ? a : b; }
};

// The type in which elements of T are added.
template <typename T>
struct Summed {
  using Type = T;
  static T Widen(T x) { return x; }
  static T Round(T x) { return x; }
};
template <>
struct Summed<Bfloat16> {
  using Type = float;
  static float Widen(Bfloat16 x) { return ToFloat(x); }
  static Bfloat16 Round(float x) { return ToBfloat16(x); }
};
template <>
struct Summed<Float16> {
  using Type = float;
  static float Widen(Float16 x) { return ToFloat(x); }
  static Float16 Round(float x) { return ToFloat16(x); }
};

// Calls fn for 0, 1, ... count - 1. Full blocks have a constant length, which lets the compiler use
// vectors.
template <typename Fn>
void ForEach(int64_t count, const Fn& fn) {
  if (count == kBlock) {
    for (int64_t i = 0; i < kBlock; ++i) fn(i);
  } else {
    for (int64_t i = 0; i < count; ++i) fn(i);
  }
}

// One block of Arithmetic::add. `before` is `sum` or lies apart from it.
template <typename T, template <typename> class Op>
void AddBlock(const char* before, absl::Span<const char* const> terms, int64_t at, int64_t count,
              char* into) {
  using Sum = typename Summed<T>::Type;
  Sum* __restrict sum = reinterpret_cast<Sum*>(into);
  const auto term = [&](size_t member) { return reinterpret_cast<const T*>(terms[member]) + at; };
  size_t member = 0;
  // What begins the sum is not copied first where it can be added in the same go.
  if (before == nullptr && terms.size() > 1) {
    const T* __restrict a = term(member++);
    const T* __restrict b = term(member++);
    ForEach(count,
            [&](int64_t i) { sum[i] = Op<Sum>()(Summed<T>::Widen(a[i]), Summed<T>::Widen(b[i])); });
  } else if (before == nullptr) {
    const T* __restrict a = term(member++);
    ForEach(count, [&](int64_t i) { sum[i] = Summed<T>::Widen(a[i]); });
  } else if (before != into) {
    const Sum* __restrict a = reinterpret_cast<const Sum*>(before);
    const T* __restrict b = term(member++);
    ForEach(count, [&](int64_t i) { sum[i] = Op<Sum>()(a[i], Summed<T>::Widen(b[i])); });
  }
  while (member < terms.size()) {
    const T* __restrict b = term(member++);
    ForEach(count, [&](int64_t i) { sum[i] = Op<Sum>()(sum[i], Summed<T>::Widen(b[i])); });
  }
}

template <typename T, template <typename> class Op>
void Add(const char* before, absl::Span<const char* const> terms, int64_t at, int64_t count,
         char* sum) {
  constexpr int64_t kBytes = sizeof(typename Summed<T>::Type);
  for (int64_t i = 0; i < count; i += kBlock) {
    AddBlock<T, Op>(before == nullptr ? nullptr : before + i * kBytes, terms, at + i,
                    std::min(kBlock, count - i), sum + i * kBytes);
  }
}

template <typename T>
void Round(const char* sum, int64_t count, char* out) {
  const auto* __restrict from = reinterpret_cast<const typename Summed<T>::Type*>(sum);
  T* __restrict to = reinterpret_cast<T*>(out);
  for (int64_t i = 0; i < count; ++i) to[i] = Summed<T>::Round(from[i]);
}

template <typename T, template <typename> class Op>
const Arithmetic* Of() {
  using Sum = typename Summed<T>::Type;
  static constexpr Arithmetic kArithmetic = {sizeof(T), sizeof(Sum), Add<T, Op>,
                                             sizeof(T) == sizeof(Sum) ? nullptr : Round<T>};
  return &kArithmetic;
}

template <template <typename> class Op>
const Arithmetic* OfType(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return Of<float, Op>();
    case DType::kF64:
      return Of<double, Op>();
    case DType::kI64:
      return Of<int64_t, Op>();
    case DType::kBF16:
      return Of<Bfloat16, Op>();
    case DType::kF16:
      return Of<Float16, Op>();
    case DType::kI8:  // never summed
      break;
  }
  return nullptr;
}

}  // namespace

const Arithmetic* ArithmeticOf(DType dtype, bool max) {
  return max ? OfType<Larger>(dtype) : OfType<Plus>(dtype);
}

}  // namespace mgc
