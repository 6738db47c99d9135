#include "kernels/cuda/matmul/einsum_kernel.h"

#include "kernels/cuda/device/device.h"
#include "kernels/cuda/device/elements.h"

namespace mgc::cuda {
namespace {

constexpr int kTile = 64;       // rows and columns of c that a block makes at a time
constexpr int kDepth = 16;      // of k, between two barriers
constexpr int kSumBlock = 512;  // of k, summed by itself
constexpr int kBlock = 256;     // threads
constexpr int kSide = 16;       // threads along rows, and along columns
constexpr int kPer = kTile / kSide;
constexpr int kLoads = kTile * kDepth / kBlock;  // of each operand, by each thread

enum Tensor { kA, kB, kC };

int64_t Tiles(int64_t steps) { return (steps + kTile - 1) / kTile; }

// Where step `index` of a nest lies in a tensor.
__device__ int64_t PlaceOf(const LoopNest& nest, int64_t index, int tensor) {
  int64_t place = 0;
  for (int loop = nest.count - 1; loop > 0; --loop) {
    const int64_t outer = index / nest.size[loop];
    place += (index - outer * nest.size[loop]) * nest.stride[tensor][loop];
    index = outer;
  }
  return nest.count == 0 ? 0 : place + index * nest.stride[tensor][0];
}

// Places of the rows, columns and steps of k that a block works on, and the elements there: f32,
// k by k, so that neighbouring threads read neighbouring banks. Elements outside of a and b are 0.
struct Tile {
  int64_t row_in_a[kTile], row_in_c[kTile], col_in_b[kTile], col_in_c[kTile];
  int64_t k_in_a[kDepth], k_in_b[kDepth];
  float a[kDepth][kTile + kPer], b[kDepth][kTile + kPer];
};

// The places of k from `first` on, by the first threads.
__device__ void PlaceSteps(const LoopNest& summed, int64_t first, Tile* tile) {
  const int t = static_cast<int>(threadIdx.x);
  if (t >= 2 * kDepth) return;
  const int64_t k = first + t % kDepth;
  if (k >= summed.steps) return;
  (t < kDepth ? tile->k_in_a : tile->k_in_b)[t % kDepth] = PlaceOf(summed, k, t < kDepth ? kA : kB);
}

__device__ void PlaceRowsAndCols(const EinsumNests& nests, int64_t row, int64_t col, Tile* tile) {
  const int t = static_cast<int>(threadIdx.x) % kTile;
  switch (threadIdx.x / kTile) {
    case 0:
      if (row + t < nests.rows.steps) tile->row_in_a[t] = PlaceOf(nests.rows, row + t, kA);
      break;
    case 1:
      if (row + t < nests.rows.steps) tile->row_in_c[t] = PlaceOf(nests.rows, row + t, kC);
      break;
    case 2:
      if (col + t < nests.cols.steps) tile->col_in_b[t] = PlaceOf(nests.cols, col + t, kB);
      break;
    default:
      if (col + t < nests.cols.steps) tile->col_in_c[t] = PlaceOf(nests.cols, col + t, kC);
  }
}

// Reads kDepth steps of `width` rows of a, or columns of b, `depth` of which there are. Threads go
// along k first where k lies dense.
template <class T>
__device__ void Read(const T* x, const int64_t* places, const int64_t* k_places, int64_t width,
                     int64_t depth, bool along_k, float (*to)[kTile + kPer]) {
#pragma unroll
  for (int load = 0; load < kLoads; ++load) {
    const int e = load * kBlock + static_cast<int>(threadIdx.x);
    const int k = along_k ? e % kDepth : e / kTile;
    const int i = along_k ? e / kDepth : e % kTile;
    to[k][i] = k < depth && i < width ? Load(x[places[i] + k_places[k]]) : 0.0f;
  }
}

// Thread (y, x) has rows y·kPer + i and columns x·kPer + j of the block's tile.
struct Sums {
  float at[kPer][kPer];
};

__device__ void AddSteps(const Tile& tile, int y, int x, Sums* sums) {
#pragma unroll
  for (int k = 0; k < kDepth; ++k) {
#pragma unroll
    for (int i = 0; i < kPer; ++i) {
#pragma unroll
      for (int j = 0; j < kPer; ++j) {
        sums->at[i][j] = fmaf(tile.a[k][y * kPer + i], tile.b[k][x * kPer + j], sums->at[i][j]);
      }
    }
  }
}

__device__ void AddSums(const Sums& block, Sums* sums) {
#pragma unroll
  for (int i = 0; i < kPer; ++i) {
#pragma unroll
    for (int j = 0; j < kPer; ++j) sums->at[i][j] += block.at[i][j];
  }
}

__device__ bool IsDense(const LoopNest& nest, int tensor) {
  return nest.count > 0 && nest.stride[tensor][nest.count - 1] == 1;
}

// Of `rows` rows and `cols` columns; places in c are behind `in_c`.
template <class C>
__device__ void WriteSums(const Tile& tile, const Sums& sums, int y, int x, int64_t rows,
                          int64_t cols, int64_t in_c, Added<C> added, C* c) {
  for (int i = 0; i < kPer; ++i) {
    for (int j = 0; j < kPer; ++j) {
      const int row = y * kPer + i, col = x * kPer + j;
      if (row >= rows || col >= cols) continue;
      const int64_t place = in_c + tile.row_in_c[row] + tile.col_in_c[col];
      float sum = sums.at[i][j];
      if (added.scale != nullptr) sum *= added.scale[place % added.scales];
      c[place] = Store<C>(added.at == nullptr ? sum : sum + Load(added.at[place % added.size]));
    }
  }
}

// A block makes whole tiles, one after the other.
template <class A, class B, class C>
__global__ void EinsumKernel(EinsumNests nests, int64_t tiles, int64_t tiles_along, const A* a,
                             const B* b, Added<C> added, C* c) {
  __shared__ Tile tile;
  const int y = static_cast<int>(threadIdx.x) / kSide, x = static_cast<int>(threadIdx.x) % kSide;
  const bool a_along_k = IsDense(nests.summed, kA), b_along_k = IsDense(nests.summed, kB);
  const int64_t depth = nests.summed.steps;
  for (int64_t t = blockIdx.x; t < tiles * nests.batch.steps; t += gridDim.x) {
    const int64_t batch = t / tiles, in_batch = t - batch * tiles;
    const int64_t row = in_batch / tiles_along * kTile, col = in_batch % tiles_along * kTile;
    const int64_t rows = nests.rows.steps - row, cols = nests.cols.steps - col;
    const A* const batch_a = a + PlaceOf(nests.batch, batch, kA);
    const B* const batch_b = b + PlaceOf(nests.batch, batch, kB);
    PlaceRowsAndCols(nests, row, col, &tile);
    PlaceSteps(nests.summed, 0, &tile);
    __syncthreads();
    Sums sums = {}, block = {};
    for (int64_t k = 0; k < depth; k += kDepth) {
      Read(batch_a, tile.row_in_a, tile.k_in_a, rows, depth - k, a_along_k, tile.a);
      Read(batch_b, tile.col_in_b, tile.k_in_b, cols, depth - k, b_along_k, tile.b);
      __syncthreads();
      PlaceSteps(nests.summed, k + kDepth, &tile);
      AddSteps(tile, y, x, &block);
      __syncthreads();
      if ((k + kDepth) % kSumBlock == 0) {
        AddSums(block, &sums);
        block = {};
      }
    }
    AddSums(block, &sums);
    const int64_t in_c = PlaceOf(nests.batch, batch, kC);
    WriteSums(tile, sums, y, x, rows, cols, in_c, added, c);
    __syncthreads();  // places are read no more
  }
}

}  // namespace

LaunchShape EinsumShape(const EinsumNests& nests) {
  const int64_t tiles = Tiles(nests.rows.steps) * Tiles(nests.cols.steps) * nests.batch.steps;
  return ShapeForRows(tiles, kBlock);
}

template <class A, class B, class C>
int Einsum(Stream stream, const EinsumNests& nests, const A* a, const B* b, Added<C> added, C* c) {
  const int64_t along = Tiles(nests.cols.steps);
  return Launch(EinsumKernel<A, B, C>, EinsumShape(nests), stream, nests,
                Tiles(nests.rows.steps) * along, along, a, b, added, c);
}

#define MGC_INSTANTIATE(A, B, C) \
  template int Einsum<A, B, C>(Stream, const EinsumNests&, const A*, const B*, Added<C>, C*)
MGC_INSTANTIATE(float, float, float);
MGC_INSTANTIATE(Bfloat16, Bfloat16, Bfloat16);
MGC_INSTANTIATE(Bfloat16, Bfloat16, float);
MGC_INSTANTIATE(Float16, Float16, Float16);
MGC_INSTANTIATE(Float16, Float16, float);
MGC_INSTANTIATE(float, int8_t, float);
MGC_INSTANTIATE(Bfloat16, int8_t, Bfloat16);
MGC_INSTANTIATE(Bfloat16, int8_t, float);
MGC_INSTANTIATE(Float16, int8_t, Float16);
MGC_INSTANTIATE(Float16, int8_t, float);
#undef MGC_INSTANTIATE

}  // namespace mgc::cuda
