// Products of warpgroups: what goes wrong where one is not waited for, where what it reads is not
// there or does not stay, or where a tile does not lie as it is said to.
#include <cstdint>
#include <vector>

#include "graph/types/bfloat16.h"
#include "gtest/gtest.h"
#include "kernels/cuda/device/device.h"
#include "kernels/cuda/device/warpgroup.h"
#include "kernels/cuda/emulator/seeded_fault.h"

namespace mgc::cuda {
namespace {

using emulator::Floats;
using emulator::Outcome;
using emulator::SeededFault;

enum class Fault : uint8_t {
  kNone,
  kSumsReadEarly,
  kTileOverwritten,
  kOperandChanged,
  kNoBarrier,
  kNotSwizzled,
  kOtherStride,
  kOtherMajor,
};

constexpr int kSide = 64;
using Tile = Bfloat16[kSide * kSide];

// Two elements on end.
uint32_t PairOf(float low, float high) { return PackPair<Bfloat16>(low, high); }

// y = a · b, both of whole numbers and [64, 64]: a in registers or in shared memory, b as it lies
// there, its rows as the depth.
__global__ void MultiplyKernel(Fault fault, bool registers, const float* a, const float* b,
                               float* y) {
  auto* const left = reinterpret_cast<Bfloat16*>(SharedBytes());
  Bfloat16* const right = left + sizeof(Tile) / sizeof(Bfloat16);
  const auto thread = static_cast<int>(threadIdx.x);
  const auto place = [&](int row, int column) {
    const int chunk =
        fault == Fault::kNotSwizzled ? row * 8 + column / 8 : SwizzledChunk(8, row, column / 8);
    return chunk * 8 + column % 8;
  };
  for (int e = thread; e < kSide * kSide; e += kWarpgroup) {
    left[place(e / kSide, e % kSide)] = Store<Bfloat16>(a[e]);
    right[place(e / kSide, e % kSide)] = Store<Bfloat16>(b[e]);
  }
  if (fault != Fault::kNoBarrier) __syncthreads();
  const int stride = fault == Fault::kOtherStride ? 512 : 1024;
  const int row = thread / kWarp * 16, lane = thread % kWarp;
  LeftOperand operands[kSide / 16];
  float sums[kSide / 8][4] = {};
  BeginProducts();
  for (int step = 0; step < kSide / 16; ++step) {
    const SharedMatrix<true> across = {right + int64_t{step} * 16 * kSide, {128, true, stride, 0}};
    const SharedMatrix<false> wrong = {right + int64_t{step} * 16, {128, false, stride, 0}};
    for (int i = 0; i < 4; ++i) {
      const MatrixCell at = LeftCell(lane, i);
      const int column = 16 * step + at.column;
      const float* const from = a + int64_t{row + at.row} * kSide + column;
      operands[step].at[i] = PairOf(from[0], from[1]);
    }
    const SharedMatrix<false> along = {left + int64_t{step} * 16, {128, false, stride, 0}};
    if (registers) {
      StartProduct<Bfloat16>(operands[step], across, step > 0, sums);
    } else if (fault == Fault::kOtherMajor) {
      StartProduct<Bfloat16>(along, wrong, step > 0, sums);
    } else {
      StartProduct<Bfloat16>(along, across, step > 0, sums);
    }
  }
  CommitProducts();
  if (fault == Fault::kTileOverwritten) right[place(thread % kSide, 3)] = Store<Bfloat16>(9.0f);
  if (fault == Fault::kOperandChanged) operands[1].at[2] = 0;
  if (fault != Fault::kSumsReadEarly) WaitProducts<0>();
  for (int n = 0; n < kSide / 8; ++n) {
    for (int i = 0; i < 4; ++i) {
      const MatrixCell at = SumCell(lane, i);
      y[(row + at.row) * kSide + 8 * n + at.column] = sums[n][i];
    }
  }
  WaitProducts<0>();
}

SeededFault Of(const char* name, Fault fault, bool registers = false) {
  return {name, "", [fault, registers](bool faulty, Outcome* outcome) {
            std::vector<float> a, b, product;
            for (int e = 0; e < kSide * kSide; ++e) {
              a.push_back(static_cast<float>(e * 7 % 5 - 2));
              b.push_back(static_cast<float>((e / kSide * 3 + e % kSide) % 7 - 3));
            }
            for (int e = 0; e < kSide * kSide; ++e) {
              float sum = 0;
              for (int k = 0; k < kSide; ++k) {
                sum += a[static_cast<size_t>(e / kSide) * kSide + static_cast<size_t>(k)] *
                       b[static_cast<size_t>(k) * kSide + static_cast<size_t>(e % kSide)];
              }
              product.push_back(sum);
            }
            const Floats x(a), w(b), y(product.size());
            LaunchShape shape = {1, 1, 1, kWarpgroup, 2 * sizeof(Tile)};
            Launch(MultiplyKernel, shape, nullptr, faulty ? fault : Fault::kNone, registers, x.at(),
                   w.at(), y.at());
            outcome->got = y.Get();
            outcome->wanted = product;
          }};
}

class GroupFaults : public testing::TestWithParam<SeededFault> {};

TEST_P(GroupFaults, AreFound) { ExpectFound(GetParam()); }

INSTANTIATE_TEST_SUITE_P(, GroupFaults,
                         testing::Values(Of("SumsReadEarly", Fault::kSumsReadEarly),
                                         Of("TileOverwritten", Fault::kTileOverwritten),
                                         Of("OperandChanged", Fault::kOperandChanged, true),
                                         Of("NoBarrier", Fault::kNoBarrier),
                                         Of("NotSwizzled", Fault::kNotSwizzled),
                                         Of("OtherStride", Fault::kOtherStride),
                                         Of("OtherMajor", Fault::kOtherMajor)),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace mgc::cuda
