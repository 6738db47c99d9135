#include "kernels/cpu/matmul/gemm.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>

#include "kernels/cpu/simd/simd.h"

#define MGC_SIMD_BODY "kernels/cpu/matmul/gemm.inc"
#include "kernels/cpu/simd/simd_each.inc"

namespace mgc::cpu {
namespace {

constexpr int64_t kDepth = 512;  // k of one block; it is part of the bits of every product
constexpr int64_t kBlockRows =
    240;  // rows of A packed by one task: about half of a second-level cache
constexpr int64_t kBlockCols = 3072;  // columns of B packed at a time, shared by all tasks
constexpr int64_t kLargestMicroRows = 12;
constexpr int64_t kLargestMicroCols = 32;
constexpr int64_t kWorthSharing = int64_t{1} << 18;  // multiply-adds that pay for waking a thread

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t RoundUp(int64_t a, int64_t b) { return CeilDiv(a, b) * b; }

// The panel functions of one instruction set.
struct Isa {
  int64_t micro_rows, micro_cols;
  void (*pack_a)(const float*, int64_t, int64_t, int64_t, int64_t, float*);
  void (*pack_b)(const float*, int64_t, int64_t, int64_t, int64_t, float*);
  // rows, cols, depth, packed A, packed B, C, C's row stride, accumulate, bias
  void (*multiply)(int64_t, int64_t, int64_t, const float*, const float*, float*, int64_t, bool,
                   const float*);
};

#define MGC_GEMM_ISA(level)                                                     \
  Isa {                                                                         \
    level::kMicroRows, level::kMicroCols, level::PackPanels<level::kMicroRows>, \
        level::PackPanels<level::kMicroCols>, level::MultiplyPacked             \
  }

Isa BestIsa() {
#if MGC_SIMD_MULTIVERSION
  if (BestSimdLevel() == SimdLevel::kAvx512) return MGC_GEMM_ISA(avx512);
  if (BestSimdLevel() == SimdLevel::kAvx2) return MGC_GEMM_ISA(avx2);
#endif
  return MGC_GEMM_ISA(baseline);
}

// How the tasks of one block of columns and depth divide C.
struct Tiling {
  int64_t row_panels, row_tasks;
  int64_t col_panels, col_tasks;
};

Tiling ChooseTiling(const Isa& isa, int64_t m, int64_t cols, int width) {
  Tiling t;
  t.row_panels = CeilDiv(m, isa.micro_rows);
  t.col_panels = CeilDiv(cols, isa.micro_cols);
  const int64_t blocks = CeilDiv(t.row_panels * isa.micro_rows, kBlockRows);
  t.row_tasks = std::min(RoundUp(blocks, width), t.row_panels);
  t.col_tasks = t.row_tasks >= width ? 1 : std::min(t.col_panels, CeilDiv(width, t.row_tasks));
  return t;
}

// One product, its operands at one batch index.
struct Product {
  const Isa& isa;
  const GemmShape& shape;
  const float* a;
  const float* b;
  const float* bias;
  float* c;
  float* packed_b;
  float* packed_a;  // one block a slot
};

int64_t PackedRows(int64_t m) {
  return RoundUp(std::min(m, kBlockRows) + 2 * kLargestMicroRows, 16);
}

// Columns [col, col + cols) of C over k in [depth_begin, depth_begin + depth).
void MultiplyBlock(Parallel& parallel, const Product& p, int64_t col, int64_t cols,
                   int64_t depth_begin, int64_t depth) {
  const Isa& isa = p.isa;
  const GemmShape& s = p.shape;
  const Tiling t = ChooseTiling(isa, s.m, cols, parallel.width());
  const float* b = p.b + depth_begin * s.b.row + col * s.b.col;
  parallel.For(t.col_panels, 4, [&](int64_t begin, int64_t end) {
    const int64_t first = begin * isa.micro_cols;
    const int64_t count = std::min(end * isa.micro_cols, cols) - first;
    isa.pack_b(b + first * s.b.col, s.b.col, s.b.row, count, depth, p.packed_b + first * depth);
  });
  const int64_t slot_floats = PackedRows(s.m) * std::min(kDepth, s.k);
  ForEachTask(parallel, t.row_tasks * t.col_tasks, [&](int64_t task, int slot) {
    const int64_t i = task / t.col_tasks;
    const int64_t j = task % t.col_tasks;
    const int64_t row = i * t.row_panels / t.row_tasks * isa.micro_rows;
    const int64_t rows = std::min((i + 1) * t.row_panels / t.row_tasks * isa.micro_rows, s.m) - row;
    const int64_t left = j * t.col_panels / t.col_tasks * isa.micro_cols;
    const int64_t width =
        std::min((j + 1) * t.col_panels / t.col_tasks * isa.micro_cols, cols) - left;
    float* packed_a = p.packed_a + slot * slot_floats;
    isa.pack_a(p.a + row * s.a.row + depth_begin * s.a.col, s.a.row, s.a.col, rows, depth,
               packed_a);
    const bool first_block = depth_begin == 0;
    isa.multiply(rows, width, depth, packed_a, p.packed_b + left * depth,
                 p.c + row * s.c.row + col + left, s.c.row, s.accumulate || !first_block,
                 first_block && p.bias != nullptr ? p.bias + col + left : nullptr);
  });
}

void Multiply(Parallel& parallel, const Product& p) {
  SerialParallel serial;
  const GemmShape& s = p.shape;
  Parallel& used = s.m * s.n * s.k < kWorthSharing ? serial : parallel;
  for (int64_t col = 0; col < s.n; col += kBlockCols) {
    const int64_t cols = std::min(kBlockCols, s.n - col);
    int64_t begin = 0;
    do {
      const int64_t depth = std::min(kDepth, s.k - begin);
      MultiplyBlock(used, p, col, cols, begin, depth);
      begin += depth;
    } while (begin < s.k);
  }
}

// The same product as Cᵀ = Bᵀ·Aᵀ.
GemmShape Transposed(const GemmShape& s) {
  GemmShape t = s;
  std::swap(t.m, t.n);
  t.a = {s.b.batch, s.b.col, s.b.row};
  t.b = {s.a.batch, s.a.col, s.a.row};
  t.c = {s.c.batch, s.c.col, s.c.row};
  return t;
}

}  // namespace

GemmStrides DenseStrides(int64_t rows, int64_t cols) { return {rows * cols, cols, 1}; }
GemmStrides TransposedStrides(int64_t rows, int64_t cols) { return {rows * cols, 1, rows}; }

int64_t GemmWorkspaceFloats(int64_t m, int64_t n, int64_t k, int width) {
  const int64_t depth = std::min(kDepth, k);
  // Either operand may end up on the right, when C is stored by columns.
  const int64_t cols = RoundUp(std::min(kBlockCols, std::max(m, n)), kLargestMicroCols);
  return depth * (cols + width * PackedRows(std::max(m, n)));
}

void Gemm(Parallel& parallel, const GemmShape& shape, const float* a, const float* b,
          const float* bias, float* c, float* workspace) {
  if (shape.m == 0 || shape.n == 0) return;
  if (shape.c.col != 1 && bias == nullptr) {
    return Gemm(parallel, Transposed(shape), b, a, nullptr, c, workspace);
  }
  const Isa isa = BestIsa();
  const int64_t depth = std::min(kDepth, shape.k);
  const int64_t cols = RoundUp(std::min(kBlockCols, shape.n), kLargestMicroCols);
  for (int64_t i = 0; i < shape.batch; ++i) {
    Multiply(parallel, Product{isa, shape, a + i * shape.a.batch, b + i * shape.b.batch, bias,
                               c + i * shape.c.batch, workspace, workspace + depth * cols});
  }
}

}  // namespace mgc::cpu
