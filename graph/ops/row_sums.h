// Sums over the rows of a matrix, column by column, on GPUs.

#ifndef MGC_GRAPH_OPS_ROW_SUMS_H_
#define MGC_GRAPH_OPS_ROW_SUMS_H_

#include <cstdint>

namespace mgc {

// Bytes of workspace on a GPU for sums over `rows` rows of `columns` columns in all, all results of
// an op counted. A block of threads has some columns: where these are few, the many rows are cut
// into parts, whose sums in f32 stand there until they are added in order. The kernel makes as many
// parts as there is room for.
constexpr int64_t RowSumsWorkspace(int64_t rows, int64_t columns) {
  constexpr int64_t kParts = 4, kManyRows = 2048, kFewColumns = 8192;
  return rows >= kManyRows && columns <= kFewColumns ? kParts * columns * int64_t{sizeof(float)}
                                                     : 0;
}

}  // namespace mgc

#endif  // MGC_GRAPH_OPS_ROW_SUMS_H_
