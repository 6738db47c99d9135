// What the tests of products share: drawn operands of every element type, products with guards
// around result and workspace, and what they mean in double precision.
#ifndef MGC_KERNELS_CPU_MATMUL_GEMM_TEST_UTIL_H_
#define MGC_KERNELS_CPU_MATMUL_GEMM_TEST_UTIL_H_

#include <cmath>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "kernels/cpu/matmul/gemm.h"
#include "kernels/cpu/test_util.h"

namespace mgc::cpu {

// The element types of A and B, and of C.
template <class In_, class Out_>
struct ProductTypes {
  using In = In_;
  using Out = Out_;
  static constexpr bool kNarrow = !std::is_same_v<Out, float>;
};

// Every level that this machine can run, not only the best.
inline std::vector<SimdLevel> Levels() {
  std::vector<SimdLevel> levels;
  for (SimdLevel level : AllSimdLevels()) {
    if (level <= BestSimdLevel()) levels.push_back(level);
  }
  return levels;
}

inline float Wide(float x) { return x; }
inline float Wide(Bfloat16 x) { return ToFloat(x); }
inline float Wide(Float16 x) { return ToFloat(x); }
inline void Round(float x, Bfloat16* y) { *y = ToBfloat16(x); }
inline void Round(float x, Float16* y) { *y = ToFloat16(x); }

template <class T>
std::vector<float> AllWide(const std::vector<T>& all) {
  std::vector<float> wide;
  wide.reserve(all.size());
  for (T x : all) wide.push_back(Wide(x));
  return wide;
}

template <class T>
std::vector<T> AllOf(const std::vector<float>& all) {
  if constexpr (std::is_same_v<T, float>) {
    return all;
  } else {
    std::vector<T> narrow(all.size());
    for (size_t i = 0; i < all.size(); ++i) Round(all[i], &narrow[i]);
    return narrow;
  }
}

// Elements from the first to the last of a strided operand.
inline int64_t Extent(const GemmStrides& s, int64_t batch, int64_t rows, int64_t cols) {
  if (batch * rows * cols == 0) return 0;
  return (batch - 1) * s.batch + (rows - 1) * s.row + (cols - 1) * s.col + 1;
}

inline int64_t Place(const GemmStrides& s, int64_t batch, int64_t row, int64_t col) {
  return batch * s.batch + row * s.row + col * s.col;
}

inline GemmShape Dense(int64_t m, int64_t n, int64_t k) {
  GemmShape s;
  s.m = m;
  s.n = n;
  s.k = k;
  s.a = DenseStrides(m, k);
  s.b = DenseStrides(k, n);
  s.c = DenseStrides(m, n);
  return s;
}

template <class Types>
struct Operands {
  std::vector<typename Types::In> a, b;
  std::vector<typename Types::Out> c;
  std::vector<float> bias;
};

template <class Types>
Operands<Types> Draw(const GemmShape& s, uint32_t seed) {
  return {AllOf<typename Types::In>(Uniform(Extent(s.a, s.batch, s.m, s.k), seed)),
          AllOf<typename Types::In>(Uniform(Extent(s.b, s.batch, s.k, s.n), seed + 1)),
          AllOf<typename Types::Out>(Uniform(Extent(s.c, s.batch, s.m, s.n), seed + 2)),
          Uniform(s.n, seed + 3)};
}

// Another Parallel with the instructions of a level.
class AtLevel : public Parallel {
 public:
  AtLevel(SimdLevel level, Parallel& threads) : Parallel(level), threads_(threads) {}

  int width() const override { return threads_.width(); }
  int hands() const override { return threads_.hands(); }
  void ForChunks(int64_t n, int64_t chunk,
                 absl::FunctionRef<void(int64_t begin, int64_t end, int slot)> body) override {
    threads_.ForChunks(n, chunk, body);
  }

 private:
  Parallel& threads_;
};

// C after the product of the part of the operands that begins at (row, col) of C.
template <class Types>
std::vector<typename Types::Out> PartOfProduct(Parallel& parallel, const GemmShape& s,
                                               const Operands<Types>& x, bool bias, int64_t row,
                                               int64_t col, SimdLevel level) {
  using Out = typename Types::Out;
  Guarded workspace((Types::kNarrow ? NarrowGemmWorkspaceFloats : GemmWorkspaceFloats)(
      s.m, s.n, s.k, parallel.width()));
  GuardedArray<Out> c(x.c, AllOf<Out>({12345.75f})[0]);
  AtLevel at_level(level, parallel);
  Gemm(at_level, s, x.a.data() + row * s.a.row, x.b.data() + col * s.b.col,
       bias ? x.bias.data() + col : nullptr, c.data() + row * s.c.row + col * s.c.col,
       workspace.data());
  workspace.Take();
  return c.Take();
}

template <class Types>
std::vector<typename Types::Out> Product(Parallel& parallel, const GemmShape& s,
                                         const Operands<Types>& x, bool bias, SimdLevel level) {
  return PartOfProduct(parallel, s, x, bias, 0, 0, level);
}

// An element of the result and the sum of the magnitudes that it was summed from.
struct Exact {
  double value = 0;
  double magnitude = 0;
};

// Elements between the rows of C keep what they had.
template <class Types>
std::vector<Exact> Expected(const GemmShape& s, const Operands<Types>& x, bool bias) {
  std::vector<Exact> c;
  c.reserve(x.c.size());
  for (auto old : x.c) c.push_back({Wide(old), 0});
  const auto add = [](double term, Exact* sum) {
    sum->value += term;
    sum->magnitude += std::fabs(term);
  };
  for (int64_t i = 0; i < s.batch * s.m * s.n; ++i) {
    const int64_t batch = i / (s.m * s.n), row = i / s.n % s.m, col = i % s.n;
    Exact& to = c[static_cast<size_t>(Place(s.c, batch, row, col))];
    Exact sum;
    if (s.accumulate) add(to.value, &sum);
    if (bias) add(x.bias[static_cast<size_t>(col)], &sum);
    for (int64_t k = 0; k < s.k; ++k) {
      const auto a = static_cast<size_t>(Place(s.a, batch, row, k));
      const auto b = static_cast<size_t>(Place(s.b, batch, k, col));
      add(double{Wide(x.a[a])} * Wide(x.b[b]), &sum);
    }
    to = sum;
  }
  return c;
}

}  // namespace mgc::cpu

#endif  // MGC_KERNELS_CPU_MATMUL_GEMM_TEST_UTIL_H_
