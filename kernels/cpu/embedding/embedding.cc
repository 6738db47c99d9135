#include "kernels/cpu/embedding/embedding.h"

#include <algorithm>
#include <cstdint>

#include "kernels/cpu/simd/elements.h"

namespace mgc::cpu {

template <class T>
void Lookup(Parallel& parallel, const TableShape& shape, const T* table, int64_t n,
            const int64_t* ids, T* y) {
  const int64_t cols = shape.cols;
  const int64_t grain = std::max<int64_t>(16384 / std::max<int64_t>(cols, 1), 1);
  parallel.For(n, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = RowOf(shape, ids[i]);
      T* out = y + i * cols;
      if (row < 0) {
        std::fill(out, out + cols, T{});
      } else {
        std::copy(table + row * cols, table + (row + 1) * cols, out);
      }
    }
  });
}

template void Lookup(Parallel&, const TableShape&, const float*, int64_t, const int64_t*, float*);
template void Lookup(Parallel&, const TableShape&, const Bfloat16*, int64_t, const int64_t*,
                     Bfloat16*);
template void Lookup(Parallel&, const TableShape&, const Float16*, int64_t, const int64_t*,
                     Float16*);

template <class T>
void LookupGrad(Parallel& parallel, const TableShape& shape, int64_t n, const int64_t* ids,
                const T* dy, bool accumulate, float* dtable) {
  const int64_t cols = shape.cols;
  if (!accumulate) {
    parallel.For(shape.rows * cols, 65536, [&](int64_t begin, int64_t end) {
      std::fill(dtable + begin, dtable + end, 0.0f);
    });
  }
  // Split by columns: ids repeat, and a row's sum must keep its order.
  const int64_t grain = std::max<int64_t>(16384 / std::max<int64_t>(n, 1) / 64, 1) * 64;
  parallel.For(cols, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = 0; i < n; ++i) {
      const int64_t row = RowOf(shape, ids[i]);
      if (row < 0) continue;
      float* to = dtable + row * cols;
      const T* from = dy + i * cols;
      for (int64_t c = begin; c < end; ++c) to[c] += FloatOf(from[c]);
    }
  });
}

template void LookupGrad(Parallel&, const TableShape&, int64_t, const int64_t*, const float*, bool,
                         float*);
template void LookupGrad(Parallel&, const TableShape&, int64_t, const int64_t*, const Bfloat16*,
                         bool, float*);
template void LookupGrad(Parallel&, const TableShape&, int64_t, const int64_t*, const Float16*,
                         bool, float*);

template <class T>
void WriteRows(Parallel& parallel, const WrittenRows& shape, const T* into, const T* from,
               const int64_t* at, T* y) {
  const int64_t grain = std::max<int64_t>(16384 / std::max<int64_t>(shape.width, 1), 1);
  parallel.For(shape.samples * shape.room, grain, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t written = RowWrittenOver(shape, at, row);
      if (written < 0 && into == y) continue;
      const T* source = written < 0 ? into + row * shape.width : from + written * shape.width;
      std::copy_n(source, shape.width, y + row * shape.width);
    }
  });
}

template void WriteRows(Parallel&, const WrittenRows&, const float*, const float*, const int64_t*,
                        float*);
template void WriteRows(Parallel&, const WrittenRows&, const Bfloat16*, const Bfloat16*,
                        const int64_t*, Bfloat16*);
template void WriteRows(Parallel&, const WrittenRows&, const Float16*, const Float16*,
                        const int64_t*, Float16*);

}  // namespace mgc::cpu
