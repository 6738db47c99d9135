#include "kernels/cuda/movement/movement.h"

#include "kernels/cuda/device/elements.h"
#include "kernels/cuda/device/fast_divisor.h"

namespace mgc::cuda {
namespace {

constexpr int kTile = 32;     // elements along each side of what is transposed in shared memory
constexpr int kTileRows = 8;  // rows of it that a block moves at a time
constexpr int kWidestUnit = 16;

// Bytes that divide a number and are at most kWidestUnit.
int UnitOf(uint64_t number) {
  int unit = kWidestUnit;
  while (unit > 2 && number % static_cast<uint64_t>(unit) != 0) unit /= 2;
  return unit;
}
uint64_t AddressOf(const void* p) { return reinterpret_cast<uintptr_t>(p); }

// Calls `use` with a value of the unsigned type of `bytes` bytes.
template <class Use>
int ForUnit(int bytes, const Use& use) {
  switch (bytes) {
    case 16:
      return use(Vector<uint64_t, 2>());
    case 8:
      return use(uint64_t());
    case 4:
      return use(uint32_t());
    default:
      return use(uint16_t());
  }
}

struct DeviceDims {
  int rank = 0;
  FastDivisor extent[TransposedDims::kMaxRank];
  int64_t from[TransposedDims::kMaxRank];
  int64_t to[TransposedDims::kMaxRank];
};

// Units of the result in its order; a thread has every `stride`th. Neighbours along the last dim
// are neighbours in both.
template <class U>
__global__ void GatherKernel(DeviceDims dims, int64_t units, const U* from, U* to) {
  const int64_t stride = int64_t{gridDim.x} * blockDim.x;
  for (int64_t u = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; u < units; u += stride) {
    int64_t rest = u, offset = 0;
    for (int d = dims.rank - 1; d > 0; --d) {
      const int64_t above = dims.extent[d].Quotient(rest);
      offset += (rest - above * dims.extent[d].divisor()) * dims.from[d];
      rest = above;
    }
    to[u] = from[offset + rest * dims.from[0]];
  }
}

int Gather(Stream stream, const TransposedDims& p, int element_bytes, const void* from, void* to) {
  const int last = p.rank - 1;
  uint64_t all = AddressOf(from) | AddressOf(to);
  all |= static_cast<uint64_t>(p.extent[last] * element_bytes);
  for (int d = 0; d < last; ++d) all |= static_cast<uint64_t>(p.stride[d] * element_bytes);
  const int unit = UnitOf(all);
  DeviceDims dims;
  dims.rank = p.rank;
  int64_t units = 1;
  for (int d = 0; d < p.rank; ++d) {
    const int64_t extent = d == last ? p.extent[d] * element_bytes / unit : p.extent[d];
    dims.extent[d] = FastDivisor(extent);
    dims.from[d] = d == last ? 1 : p.stride[d] * element_bytes / unit;
    units *= extent;
  }
  return ForUnit(unit, [&](auto zero) {
    using U = decltype(zero);
    return Launch(GatherKernel<U>, ShapeFor(units), stream, dims, units,
                  static_cast<const U*>(from), static_cast<U*>(to));
  });
}

// Matrices [across, along] of the operand, rows `across_step` apart, become [along, across], rows
// `along_step` apart; one of each for the other dims, `others`.
struct Tiles {
  int64_t across, along, across_step, along_step;
  FastDivisor across_tiles, along_tiles;
  DeviceDims others;
};

// A block moves a tile at a time: it reads rows of `along` and writes rows of `across`.
template <class U>
__global__ void TransposeTilesKernel(Tiles t, int64_t tiles, const U* from, U* to) {
  __shared__ U tile[kTile][kTile + 1];
  const int x = static_cast<int>(threadIdx.x) % kTile;
  const int y = static_cast<int>(threadIdx.x) / kTile;
  for (int64_t b = blockIdx.x; b < tiles; b += gridDim.x) {
    const int64_t rows = t.across_tiles.Quotient(b);
    const int64_t across = (b - rows * t.across_tiles.divisor()) * kTile;
    int64_t rest = t.along_tiles.Quotient(rows);
    const int64_t along = (rows - rest * t.along_tiles.divisor()) * kTile;
    int64_t from_at = 0, to_at = 0;
    for (int d = t.others.rank - 1; d >= 0; --d) {
      const int64_t above = t.others.extent[d].Quotient(rest);
      const int64_t i = rest - above * t.others.extent[d].divisor();
      from_at += i * t.others.from[d];
      to_at += i * t.others.to[d];
      rest = above;
    }
    for (int j = y; j < kTile; j += kTileRows) {
      if (across + j < t.across && along + x < t.along) {
        tile[j][x] = from[from_at + (across + j) * t.across_step + along + x];
      }
    }
    __syncthreads();
    for (int j = y; j < kTile; j += kTileRows) {
      if (along + j < t.along && across + x < t.across) {
        to[to_at + (along + j) * t.along_step + across + x] = tile[x][j];
      }
    }
    __syncthreads();
  }
}

int TransposeTiles(Stream stream, const TransposedDims& p, int element_bytes, const void* from,
                   void* to) {
  const int last = p.rank - 1;
  Tiles t = {};
  int64_t to_step = 1, others = 1;
  for (int d = last; d >= 0; --d) {
    if (d == last) {
      t.across = p.extent[d];
      t.across_step = p.stride[d];
    } else if (p.stride[d] == 1) {
      t.along = p.extent[d];
      t.along_step = to_step;
    } else {
      const int at = t.others.rank++;
      t.others.extent[at] = FastDivisor(p.extent[d]);
      t.others.from[at] = p.stride[d];
      t.others.to[at] = to_step;
      others *= p.extent[d];
    }
    to_step *= p.extent[d];
  }
  const int64_t across_tiles = (t.across + kTile - 1) / kTile;
  const int64_t along_tiles = (t.along + kTile - 1) / kTile;
  t.across_tiles = FastDivisor(across_tiles);
  t.along_tiles = FastDivisor(along_tiles);
  const int64_t tiles = across_tiles * along_tiles * others;
  return ForUnit(element_bytes, [&](auto zero) {
    using U = decltype(zero);
    return Launch(TransposeTilesKernel<U>, ShapeForRows(tiles, kTile * kTileRows), stream, t, tiles,
                  static_cast<const U*>(from), static_cast<U*>(to));
  });
}

// Units of all blocks; a thread has every `stride`th. Steps are in units.
template <class U>
__global__ void CopyBlocksKernel(int64_t units, FastDivisor block, const U* from, int64_t from_step,
                                 U* to, int64_t to_step) {
  const int64_t stride = int64_t{gridDim.x} * blockDim.x;
  for (int64_t u = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; u < units; u += stride) {
    const int64_t b = block.Quotient(u);
    const int64_t at = u - b * block.divisor();
    to[b * to_step + at] = from[b * from_step + at];
  }
}

}  // namespace

int Transpose(Stream stream, const TransposedDims& dims, int element_bytes, const void* from,
              void* to) {
  TransposedDims p = dims;
  if (p.rank == 0) {
    p.rank = 1;
    p.extent[0] = p.stride[0] = 1;
  }
  return p.stride[p.rank - 1] == 1 ? Gather(stream, p, element_bytes, from, to)
                                   : TransposeTiles(stream, p, element_bytes, from, to);
}

int CopyBlocks(Stream stream, int64_t outer, int64_t bytes, const char* from, int64_t from_step,
               char* to, int64_t to_step) {
  const int unit = UnitOf(AddressOf(from) | AddressOf(to) | static_cast<uint64_t>(bytes) |
                          static_cast<uint64_t>(from_step) | static_cast<uint64_t>(to_step));
  const int64_t block = bytes / unit;
  return ForUnit(unit, [&](auto zero) {
    using U = decltype(zero);
    return Launch(CopyBlocksKernel<U>, ShapeFor(outer * block), stream, outer * block,
                  FastDivisor(block), reinterpret_cast<const U*>(from), from_step / unit,
                  reinterpret_cast<U*>(to), to_step / unit);
  });
}

}  // namespace mgc::cuda
