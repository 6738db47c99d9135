#include "kernels/cpu/matmul/gemm.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <cassert>
#include <type_traits>

#include "kernels/cpu/matmul/packed_block.h"

#define MGC_SIMD_BODY "kernels/cpu/matmul/gemm.inc"
#define MGC_SIMD_WITH_BF16
#include "kernels/cpu/simd/simd_each.inc"

namespace mgc::cpu {
namespace {

constexpr int64_t kBlockRows =
    240;  // rows of A packed by one task: about half of a second-level cache
constexpr int64_t kBlockCols = 3072;  // columns of B packed at a time, shared by all tasks
constexpr int64_t kSumRows =
    1024;  // rows and columns of a narrow C whose f32 sums are kept at a time
constexpr int64_t kSumCols = 1536;
constexpr int64_t kLargestMicroRows = 12;
constexpr int64_t kLargestMicroCols = 32;
constexpr int64_t kWorthSharing = int64_t{1} << 20;  // multiply-adds that pay for waking a thread
constexpr int64_t kWorthReading = int64_t{1} << 16;  // elements of B, where it is read once
constexpr int64_t kTaskCols = 512;                   // of a product of few rows, at most

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t RoundUp(int64_t a, int64_t b) { return CeilDiv(a, b) * b; }

// The panel functions of one instruction set for operands of A and B.
template <class A, class B>
struct Isa {
  int64_t micro_rows, micro_cols;
  int64_t per_word;  // elements along k in a word of a panel
  // source, stride, stride along k, rows or columns, depth in elements, panels
  void (*pack_a)(const A*, int64_t, int64_t, int64_t, int64_t, float*);
  void (*pack_b)(const B*, int64_t, int64_t, int64_t, int64_t, float*);
  void (*multiply)(const PackedBlock&);
  void (*multiply_few)(const FewRows&);
};

// The type of narrow results of products of A and B: that of both, or of the one that is not
// quantized. Of f32 there are none.
template <class A, class B>
struct NarrowOf {
  using Shared = std::conditional_t<std::is_same_v<A, int8_t>, B, A>;
  using Type = std::conditional_t<std::is_same_v<Shared, float>, Bfloat16, Shared>;
};

#define MGC_GEMM_ISA(level, source_a, source_b)                                            \
  {                                                                                        \
    level::kMicroRows, level::kMicroCols, level::source_a::kPerWord,                       \
        level::Pack<level::kMicroRows, level::source_a>,                                   \
        level::Pack<level::kMicroCols, level::source_b>,                                   \
        level::MultiplyPacked<typename level::source_a::Word,                              \
                              typename NarrowOf<typename level::source_a::Element,         \
                                                typename level::source_b::Element>::Type>, \
        level::MultiplyFewRows<level::source_a, level::source_b,                           \
                               typename NarrowOf<typename level::source_a::Element,        \
                                                 typename level::source_b::Element>::Type> \
  }

// Elements that are narrower than f32 are widened.
template <class A, class B>
Isa<A, B> WideningIsaOf([[maybe_unused]] SimdLevel level) {
#if MGC_SIMD_MULTIVERSION
  if (level >= SimdLevel::kAvx512) {
    return MGC_GEMM_ISA(avx512, FloatWords<A>, FloatWords<B>);
  }
  if (level >= SimdLevel::kAvx2) return MGC_GEMM_ISA(avx2, FloatWords<A>, FloatWords<B>);
#endif
  return MGC_GEMM_ISA(baseline, FloatWords<A>, FloatWords<B>);
}

Isa<Bfloat16, Bfloat16> IsaOf(SimdLevel level, const Bfloat16*, const Bfloat16*) {
#if MGC_SIMD_MULTIVERSION
  if (level >= SimdLevel::kAvx512Bf16) return MGC_GEMM_ISA(avx512_bf16, PairSource, PairSource);
#endif
  return WideningIsaOf<Bfloat16, Bfloat16>(level);
}

template <class A, class B>
Isa<A, B> IsaOf(SimdLevel level, const A*, const B*) {
  return WideningIsaOf<A, B>(level);
}

// How the tasks of one block divide C.
struct Tiling {
  int64_t row_panels, row_tasks;
  int64_t col_panels, col_tasks;
};

template <class A, class B>
Tiling ChooseTiling(const Isa<A, B>& isa, int64_t rows, int64_t cols, int hands) {
  Tiling t;
  t.row_panels = CeilDiv(rows, isa.micro_rows);
  t.col_panels = CeilDiv(cols, isa.micro_cols);
  const int64_t blocks = CeilDiv(t.row_panels * isa.micro_rows, kBlockRows);
  t.row_tasks = std::min(RoundUp(blocks, hands), t.row_panels);
  t.col_tasks = t.row_tasks >= hands ? 1 : std::min(t.col_panels, CeilDiv(hands, t.row_tasks));
  return t;
}

// One product, its operands at one batch index.
template <class A, class B>
struct Product {
  using Narrow = typename NarrowOf<A, B>::Type;

  const Isa<A, B>& isa;
  const GemmShape& shape;
  const A* a;
  const B* b;
  const float* bias;
  const float* scale;
  float* c;        // null where C is narrow,
  Narrow* narrow;  // else this is null
  float* packed_b;
  float* packed_a;  // one block a slot
  float* sums;      // of one block of a narrow C

  int64_t depth() const { return kBlockWords * isa.per_word; }
  // Whether sums over parts of k are kept apart from C.
  bool keeps_sums() const { return narrow != nullptr && shape.k > depth(); }
};

struct Range {
  int64_t begin, size;
};

int64_t PackedRows(int64_t m) {
  return RoundUp(std::min(m, kBlockRows) + 2 * kLargestMicroRows, 16);
}

// The part of C at (row, col), within the block of `rows` and `cols`, over one range of k, but for
// the panels.
template <class A, class B>
PackedBlock ResultOf(const Product<A, B>& p, Range rows, Range cols, Range depth, int64_t row,
                     int64_t col) {
  const GemmShape& s = p.shape;
  const bool first = depth.begin == 0, last = depth.begin + depth.size == s.k;
  PackedBlock x;
  x.accumulate = s.accumulate || !first;
  x.bias = last && p.bias != nullptr ? p.bias + col : nullptr;
  x.scale = last && p.scale != nullptr ? p.scale + col : nullptr;
  if (p.narrow == nullptr) {
    x.c = p.c + row * s.c.row + col;
    x.stride = s.c.row;
    return x;
  }
  x.c = p.sums + (row - rows.begin) * cols.size + (col - cols.begin);
  x.stride = cols.size;
  if (last) {
    x.narrow = p.narrow + row * s.c.row + col;
    x.narrow_stride = s.c.row;
  }
  return x;
}

// A block of C over one range of k.
template <class A, class B>
void MultiplyBlock(Parallel& parallel, const Product<A, B>& p, Range rows, Range cols,
                   Range depth) {
  const Isa<A, B>& isa = p.isa;
  const GemmShape& s = p.shape;
  const Tiling t = ChooseTiling(isa, rows.size, cols.size, parallel.hands());
  const int64_t words = CeilDiv(depth.size, isa.per_word);
  const B* b = p.b + depth.begin * s.b.row + cols.begin * s.b.col;
  parallel.For(t.col_panels, 1, [&](int64_t begin, int64_t end) {
    const int64_t first = begin * isa.micro_cols;
    const int64_t count = std::min(end * isa.micro_cols, cols.size) - first;
    isa.pack_b(b + first * s.b.col, s.b.col, s.b.row, count, depth.size,
               p.packed_b + first * words);
  });
  const int64_t slot_floats = PackedRows(rows.size) * words;
  ForEachTask(parallel, t.row_tasks * t.col_tasks, [&](int64_t task, int slot) {
    const int64_t i = task / t.col_tasks;
    const int64_t j = task % t.col_tasks;
    const int64_t top = i * t.row_panels / t.row_tasks * isa.micro_rows;
    const int64_t left = j * t.col_panels / t.col_tasks * isa.micro_cols;
    const int64_t row = rows.begin + top;
    PackedBlock x = ResultOf(p, rows, cols, depth, row, cols.begin + left);
    x.rows = std::min((i + 1) * t.row_panels / t.row_tasks * isa.micro_rows, rows.size) - top;
    x.cols = std::min((j + 1) * t.col_panels / t.col_tasks * isa.micro_cols, cols.size) - left;
    x.depth = words;
    float* packed_a = p.packed_a + slot * slot_floats;
    isa.pack_a(p.a + row * s.a.row + depth.begin * s.a.col, s.a.row, s.a.col, x.rows, depth.size,
               packed_a);
    x.a = packed_a;
    x.b = p.packed_b + left * words;
    isa.multiply(x);
  });
}

// C of so few rows that each element of B is met once: tasks take columns, and all of k. What is
// computed is the same.
template <class A, class B>
void MultiplyFewRows(Parallel& parallel, const Product<A, B>& p) {
  const GemmShape& s = p.shape;
  const int64_t micro_cols = p.isa.micro_cols;
  const int64_t tasks = RoundUp(CeilDiv(s.n, kTaskCols), parallel.hands());
  const int64_t width = RoundUp(CeilDiv(s.n, tasks), micro_cols);
  ForEachTask(parallel, CeilDiv(s.n, width), [&](int64_t task, int /*slot*/) {
    const int64_t left = task * width;
    FewRows x;
    x.rows = s.m;
    x.cols = std::min(width, s.n - left);
    x.depth = s.k;
    x.a = p.a;
    x.a_row = s.a.row;
    x.a_col = s.a.col;
    x.b = p.b + left * s.b.col;
    x.b_row = s.b.row;
    x.b_col = s.b.col;
    x.stride = s.c.row;
    x.accumulate = s.accumulate;
    x.bias = p.bias == nullptr ? nullptr : p.bias + left;
    x.scale = p.scale == nullptr ? nullptr : p.scale + left;
    if (p.narrow == nullptr) {
      x.c = p.c + left;
    } else {
      x.narrow = p.narrow + left;
    }
    p.isa.multiply_few(x);
  });
}

// [0, size) in nearly equal ranges of at most `most`.
template <class Body>
void ForRanges(int64_t size, int64_t most, const Body& body) {
  const int64_t count = CeilDiv(size, most);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t begin = i * size / count;
    body(Range{begin, (i + 1) * size / count - begin});
  }
}

template <class A, class B>
void Multiply(Parallel& parallel, const Product<A, B>& p) {
  SerialParallel serial;
  const GemmShape& s = p.shape;
  if (s.m <= p.isa.micro_rows) {
    return MultiplyFewRows(s.n * s.k < kWorthReading ? serial : parallel, p);
  }
  Parallel& used = s.m * s.n * s.k < kWorthSharing ? serial : parallel;
  const int64_t block_cols = p.keeps_sums() ? kSumCols : kBlockCols;
  const int64_t block_rows = p.keeps_sums() ? kSumRows : s.m;
  for (int64_t col = 0; col < s.n; col += block_cols) {
    const Range cols = {col, std::min(block_cols, s.n - col)};
    ForRanges(s.m, block_rows, [&](Range rows) {
      int64_t begin = 0;
      do {
        const Range depth = {begin, std::min(p.depth(), s.k - begin)};
        MultiplyBlock(used, p, rows, cols, depth);
        begin += depth.size;
      } while (begin < s.k);
    });
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

// Words of the panels of a product with these sizes.
struct PanelWords {
  int64_t a_slot, b;
};

PanelWords PanelWordsOf(int64_t m, int64_t n, int64_t k) {
  const int64_t depth = std::min(kBlockWords, k);
  return {depth * PackedRows(m), depth * RoundUp(std::min(kBlockCols, n), kLargestMicroCols)};
}

// What becomes of sums.
template <class Narrow>
struct Result {
  const float* bias;
  const float* scale;
  float* c;
  Narrow* narrow;  // one of the two is null
};

template <class A, class B>
void MultiplyBatch(Parallel& parallel, const GemmShape& shape, const A* a, const B* b,
                   const Result<typename NarrowOf<A, B>::Type>& to, float* workspace) {
  if (shape.m == 0 || shape.n == 0) return;
  if (shape.c.col != 1) {
    assert(to.bias == nullptr && to.scale == nullptr && shape.c.row == 1);
    return MultiplyBatch(parallel, Transposed(shape), b, a, to, workspace);
  }
  const Isa<A, B> isa = IsaOf(parallel.simd_level(), a, b);
  const PanelWords words = PanelWordsOf(shape.m, shape.n, shape.k);
  float* packed_a = workspace + words.b;
  float* sums = packed_a + words.a_slot * parallel.width();
  for (int64_t i = 0; i < shape.batch; ++i) {
    Multiply(parallel,
             Product<A, B>{isa, shape, a + i * shape.a.batch, b + i * shape.b.batch, to.bias,
                           to.scale, to.c == nullptr ? nullptr : to.c + i * shape.c.batch,
                           to.narrow == nullptr ? nullptr : to.narrow + i * shape.c.batch,
                           workspace, packed_a, sums});
  }
}

}  // namespace

GemmStrides DenseStrides(int64_t rows, int64_t cols) { return {rows * cols, cols, 1}; }
GemmStrides TransposedStrides(int64_t rows, int64_t cols) { return {rows * cols, 1, rows}; }

int64_t GemmWorkspaceFloats(int64_t m, int64_t n, int64_t k, int width) {
  // Either operand may end up on the right, when C is stored by columns.
  const int64_t longer = std::max(m, n);
  const PanelWords words = PanelWordsOf(longer, longer, k);
  return words.b + width * words.a_slot;
}

int64_t NarrowGemmWorkspaceFloats(int64_t m, int64_t n, int64_t k, int width) {
  const int64_t sums = k > kBlockWords ? std::min(m * n, kSumRows * kSumCols) : 0;
  return GemmWorkspaceFloats(m, n, k, width) + sums;
}

void Gemm(Parallel& parallel, const GemmShape& shape, const float* a, const float* b,
          const float* bias, float* c, float* workspace) {
  MultiplyBatch(parallel, shape, a, b, {bias, nullptr, c, nullptr}, workspace);
}

void Gemm(Parallel& parallel, const GemmShape& shape, const Bfloat16* a, const Bfloat16* b,
          const float* bias, float* c, float* workspace) {
  MultiplyBatch(parallel, shape, a, b, {bias, nullptr, c, nullptr}, workspace);
}

void Gemm(Parallel& parallel, const GemmShape& shape, const Bfloat16* a, const Bfloat16* b,
          const float* bias, Bfloat16* c, float* workspace) {
  assert(!shape.accumulate);
  MultiplyBatch(parallel, shape, a, b, {bias, nullptr, nullptr, c}, workspace);
}

void Gemm(Parallel& parallel, const GemmShape& shape, const Float16* a, const Float16* b,
          const float* bias, float* c, float* workspace) {
  MultiplyBatch(parallel, shape, a, b, {bias, nullptr, c, nullptr}, workspace);
}

void Gemm(Parallel& parallel, const GemmShape& shape, const Float16* a, const Float16* b,
          const float* bias, Float16* c, float* workspace) {
  assert(!shape.accumulate);
  MultiplyBatch(parallel, shape, a, b, {bias, nullptr, nullptr, c}, workspace);
}

template <class T, class C>
void ScaledGemm(Parallel& parallel, const GemmShape& shape, const T* a, const int8_t* b,
                const float* scale, C* c, float* workspace) {
  assert(!shape.accumulate || scale == nullptr);
  Result<typename NarrowOf<T, int8_t>::Type> to{nullptr, scale, nullptr, nullptr};
  if constexpr (std::is_same_v<C, float>) {
    to.c = c;
  } else {
    to.narrow = c;
  }
  MultiplyBatch(parallel, shape, a, b, to, workspace);
}

#define MGC_SCALED_GEMM(T, C)                                                                      \
  template void ScaledGemm(Parallel&, const GemmShape&, const T*, const int8_t*, const float*, C*, \
                           float*)
MGC_SCALED_GEMM(float, float);
MGC_SCALED_GEMM(Bfloat16, float);
MGC_SCALED_GEMM(Bfloat16, Bfloat16);
MGC_SCALED_GEMM(Float16, float);
MGC_SCALED_GEMM(Float16, Float16);
#undef MGC_SCALED_GEMM

}  // namespace mgc::cpu
