// Rows of a table by id, their gradient, and rows written over others, issued to a stream.

#ifndef MGC_KERNELS_CUDA_EMBEDDING_EMBEDDING_H_
#define MGC_KERNELS_CUDA_EMBEDDING_EMBEDDING_H_

#include <cstdint>

#include "kernels/cuda/launch_shape.h"
#include "kernels/shared/table_shape.h"

namespace mgc::cuda {

// y[i] = table[ids[i] - offset], a row of zeros where the id is not among the valid ones. y: [n,
// cols]. T, here and below, is float, Bfloat16 or Float16.
template <class T>
int Lookup(Stream stream, const TableShape& shape, const T* table, int64_t n, const int64_t* ids,
           T* y);

// dtable = initial + the rows dy[i] at ids[i] - offset, added for i ascending; other ids do
// nothing. `initial` may be `dtable`; null: zeros. n < 2^31.
template <class T>
int LookupGrad(Stream stream, const TableShape& shape, int64_t n, const int64_t* ids, const T* dy,
               const float* initial, float* dtable);

// y: the rows of `into`, those of `from` over some of them (RowWrittenOver). `y` may be `into`.
template <class T>
int WriteRows(Stream stream, const WrittenRows& shape, const T* into, const T* from,
              const int64_t* at, T* y);

}  // namespace mgc::cuda

#endif  // MGC_KERNELS_CUDA_EMBEDDING_EMBEDDING_H_
