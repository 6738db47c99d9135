// Rows of a table by id, and their gradient.
#ifndef MGC_KERNELS_CPU_EMBEDDING_EMBEDDING_H_
#define MGC_KERNELS_CPU_EMBEDDING_EMBEDDING_H_

#include <cstdint>

#include "kernels/parallel.h"
#include "kernels/shared/table_shape.h"

namespace mgc::cpu {

// y[i] = table[ids[i] - offset], a row of zeros where the id is not among the valid ones. y: [n,
// cols]. T, here and below, is float, Bfloat16 or Float16.
template <class T>
void Lookup(Parallel& parallel, const TableShape& shape, const T* table, int64_t n,
            const int64_t* ids, T* y);

// dtable[ids[i] - offset] += dy[i] for i ascending; other ids do nothing. dtable is zeroed first
// unless `accumulate`.
template <class T>
void LookupGrad(Parallel& parallel, const TableShape& shape, int64_t n, const int64_t* ids,
                const T* dy, bool accumulate, float* dtable);

// y: the rows of `into`, those of `from` over some of them (RowWrittenOver). `y` may be `into`.
template <class T>
void WriteRows(Parallel& parallel, const WrittenRows& shape, const T* into, const T* from,
               const int64_t* at, T* y);

}  // namespace mgc::cpu

#endif  // MGC_KERNELS_CPU_EMBEDDING_EMBEDDING_H_
