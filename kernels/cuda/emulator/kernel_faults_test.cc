// Kernels with one thing wrong each, which the emulator must find; without it they are right.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/cuda/device/device.h"
#include "kernels/cuda/emulator/seeded_fault.h"

namespace mgc::cuda {
namespace {

using emulator::Counted;
using emulator::Floats;
using emulator::Outcome;
using emulator::SeededFault;

constexpr int kBlock = 128;
constexpr int kBlocks = 3;
constexpr size_t kCount = size_t{kBlock} * kBlocks;

int Index() { return static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); }

// Runs y = kernel(x) for 0, 1, 2... in x.
using MapKernel = void (*)(const float*, float*);
void RunMap(MapKernel kernel, const LaunchShape& shape, std::vector<float> wanted,
            Outcome* outcome) {
  const Floats x(Counted(kCount)), y(kCount);
  Launch(kernel, shape, nullptr, x.at(), y.at());
  outcome->got = y.Get();
  outcome->wanted = std::move(wanted);
}

template <class Function>
std::vector<float> Each(Function function) {
  std::vector<float> values;
  for (size_t i = 0; i < kCount; ++i) values.push_back(static_cast<float>(function(int(i))));
  return values;
}

// A fault that is another kernel, of the same launch and meaning.
SeededFault Kernels(const char* name, const char* message, MapKernel right, MapKernel wrong,
                    const std::vector<float>& wanted, int64_t shared_bytes = 0) {
  const LaunchShape shape{kBlocks, 1, 1, kBlock, shared_bytes};
  return {name, message, [=](bool faulty, Outcome* outcome) {
            RunMap(faulty ? wrong : right, shape, wanted, outcome);
          }};
}

// A fault that is another launch of the same kernel.
SeededFault Shapes(const char* name, const char* message, MapKernel kernel,
                   const LaunchShape& right, const LaunchShape& wrong,
                   const std::vector<float>& wanted) {
  return {name, message, [=](bool faulty, Outcome* outcome) {
            RunMap(kernel, faulty ? wrong : right, wanted, outcome);
          }};
}

int FirstOfBlock(int i) { return i / kBlock * kBlock; }

int Reversed(int i) { return i / kBlock * kBlock + kBlock - 1 - i % kBlock; }

template <bool faulty>
__global__ void ReverseKernel(const float* x, float* y) {
  __shared__ float tile[kBlock];
  tile[threadIdx.x] = x[Index()];
  if (!faulty) __syncthreads();
  y[Index()] = tile[kBlock - 1 - threadIdx.x];
}

// Twice through one tile: who writes again must wait for who reads.
template <bool faulty>
__global__ void ReverseTwiceKernel(const float* x, float* y) {
  __shared__ float tile[kBlock];
  tile[threadIdx.x] = x[Index()];
  __syncthreads();
  const float once = tile[kBlock - 1 - threadIdx.x];
  if (!faulty) __syncthreads();
  tile[threadIdx.x] = once + 1;
  __syncthreads();
  y[Index()] = tile[kBlock - 1 - threadIdx.x];
}

int WarpReversed(int i) { return i / kWarp * kWarp + kWarp - 1 - i % kWarp; }

template <bool faulty>
__global__ void WarpReverseKernel(const float* x, float* y) {
  __shared__ float tile[kBlock];
  tile[threadIdx.x] = x[Index()];
  if (!faulty) __syncwarp();
  y[Index()] = tile[WarpReversed(static_cast<int>(threadIdx.x))];
}

template <bool faulty>
__global__ void DivergentKernel(const float* x, float* y) {
  if (!faulty || threadIdx.x < 96) __syncthreads();
  y[Index()] = x[Index()];
}

template <bool faulty>
__global__ void TwoPlacesKernel(const float* x, float* y) {
  if (faulty && threadIdx.x % 2 == 0) {
    __syncthreads();
  } else {
    __syncthreads();
  }
  y[Index()] = x[Index()];
}

template <bool faulty>
__global__ void EarlyReturnKernel(const float* x, float* y) {
  y[Index()] = x[Index()];
  if (faulty && threadIdx.x == kBlock - 1) return;
  __syncthreads();
}

int Neighbor(int i) { return i ^ 1; }

template <bool faulty>
__global__ void OwnLaneKernel(const float* x, float* y) {
  const unsigned mask = faulty ? 0x7fffffffu : kWholeWarp;
  y[Index()] = __shfl_xor_sync(mask, x[Index()], 1);
}

template <bool faulty>
__global__ void MissingLanesKernel(const float* x, float* y) {
  y[Index()] = 0;
  if (faulty && threadIdx.x % kWarp >= 16) return;
  y[Index()] = __shfl_xor_sync(kWholeWarp, x[Index()], 1);
}

// The lower half adds up without the upper.
template <bool faulty>
__global__ void OutsideOfMaskKernel(const float* x, float* y) {
  const unsigned mask = threadIdx.x % kWarp < 16 ? 0x0000ffffu : 0xffff0000u;
  y[Index()] = __shfl_xor_sync(mask, x[Index()], faulty ? 16 : 1);
}

template <bool faulty>
__global__ void TwoTypesKernel(const float* x, float* y) {
  const float value = x[Index()];
  float got = 0;
  if (faulty && threadIdx.x % 2 == 0) {
    got = static_cast<float>(__shfl_xor_sync(kWholeWarp, double{value}, 1));
  } else {
    got = __shfl_xor_sync(kWholeWarp, value, 1);
  }
  y[Index()] = got;
}

int SumOfEight(int i) { return i / 8 * 8 * 8 + 28; }

template <bool faulty>
__global__ void WidthKernel(const float* x, float* y) {
  float sum = x[Index()];
  for (int with = faulty ? 8 : 4; with > 0; with /= 2) {
    sum += __shfl_xor_sync(kWholeWarp, sum, with);
  }
  y[Index()] = sum;
}

template <bool faulty>
__global__ void TailKernel(const float* x, float* y) {
  const int i = Index();
  const int count = static_cast<int>(kCount);
  if (faulty ? i <= count : i < count) y[i] = x[i < count ? i : 0];
}

template <bool faulty>
__global__ void BeforeKernel(const float* x, float* y) {
  const int i = Index();
  y[faulty && i == 0 ? -1 : i] = x[i];
}

__global__ void UncheckedKernel(const float* x, float* y) { y[Index()] = x[Index() % kCount]; }

template <bool faulty>
__global__ void ReadBehindKernel(const float* x, float* y) {
  const int i = Index();
  y[i] = x[faulty || i < static_cast<int>(kCount) - 1 ? i + 1 : i];
}
int NextOrLast(int i) { return i < static_cast<int>(kCount) - 1 ? i + 1 : i; }

// Who comes last has its number there.
template <bool faulty>
__global__ void WriteTogetherKernel(const float* x, float* y) {
  __shared__ float first;
  if (faulty || threadIdx.x == 0) first = x[Index()];
  __syncthreads();
  y[Index()] = first;
}

// Tiles of 8 x 16, transposed; columns are swizzled by rows.
int Transposed(int i) { return i / kBlock * kBlock + i % 16 * 8 + i % kBlock / 16; }

template <bool faulty>
__global__ void SwizzleKernel(const float* x, float* y) {
  __shared__ float tile[8 * 16];
  const int t = static_cast<int>(threadIdx.x);
  const int row = t / 16, column = t % 16;
  tile[row * 16 + (column ^ row)] = x[Transposed(Index())];
  __syncthreads();
  y[Index()] = tile[row * 16 + (faulty ? column ^ (row & 3) : column ^ row)];
}

template <bool faulty>
__global__ void SharedSumKernel(const float* x, float* y) {
  __shared__ float sum;
  if (!faulty && threadIdx.x == 0) sum = 0;
  __syncthreads();
  if (threadIdx.x == 0) sum += x[Index()];
  __syncthreads();
  y[Index()] = sum;
}
template <bool faulty>
__global__ void DynamicKernel(const float* x, float* y) {
  auto* const tile = reinterpret_cast<float*>(SharedBytes());
  if (!faulty || threadIdx.x > 0) tile[threadIdx.x] = x[Index()];
  __syncthreads();
  y[Index()] = tile[kBlock - 1 - threadIdx.x];
}

template <bool faulty>
__global__ void DynamicEndKernel(const float* x, float* y) {
  auto* const tile = reinterpret_cast<float*>(SharedBytes());
  tile[threadIdx.x + (faulty ? 1 : 0)] = x[Index()];
  __syncthreads();
  y[Index()] = tile[threadIdx.x + (faulty ? 1 : 0)];
}

// A sum over the block, by warps.
template <bool faulty>
__global__ void BlockSumKernel(const float* x, float* y) {
  __shared__ float partial[kBlock / kWarp];
  float sum = x[Index()];
  for (int with = kWarp / 2; with > 0; with /= 2) sum += __shfl_xor_sync(kWholeWarp, sum, with);
  if (threadIdx.x % kWarp == 0) partial[threadIdx.x / kWarp] = sum;
  if (!faulty) __syncthreads();
  float all = 0;
  for (const float p : partial) all += p;
  y[Index()] = all;
}
int SumOfBlock(int i) { return i / kBlock * kBlock * kBlock + kBlock * (kBlock - 1) / 2; }

// As if the block before had ended.
template <bool faulty>
__global__ void OtherBlockKernel(const float* x, float* y) {
  const int i = Index();
  y[i] = faulty && blockIdx.x > 0 ? y[i - kBlock] + kBlock : x[i];
}

// What a thread reads another one overwrites.
template <bool faulty>
__global__ void ShiftInPlaceKernel(float* y) {
  const int t = static_cast<int>(threadIdx.x);
  const float next = y[(t + 1) % kBlock];
  if (!faulty) __syncthreads();
  y[t] = next;
}

int Same(int i) { return i; }

std::vector<SeededFault> OfBarriers() {
  const char* const reaches = "a barrier that not all threads reach";
  return {
      Kernels("BarrierBeforeRead", "", ReverseKernel<false>, ReverseKernel<true>, Each(Reversed)),
      Kernels("BarrierBeforeWrite", "", ReverseTwiceKernel<false>, ReverseTwiceKernel<true>,
              Each([](int i) { return i + 1; })),
      Kernels("BarrierOfWarp", "", WarpReverseKernel<false>, WarpReverseKernel<true>,
              Each(WarpReversed)),
      Kernels("BarrierAfterPartials", "", BlockSumKernel<false>, BlockSumKernel<true>,
              Each(SumOfBlock)),
      Kernels("BarrierInBranch", reaches, DivergentKernel<false>, DivergentKernel<true>,
              Each(Same)),
      Kernels("BarrierAtTwoPlaces", reaches, TwoPlacesKernel<false>, TwoPlacesKernel<true>,
              Each(Same)),
      Kernels("BarrierAfterReturn", "1 (the first is 127) have ended", EarlyReturnKernel<false>,
              EarlyReturnKernel<true>, Each(Same)),
      {"BarrierInPlace", "",
       [](bool faulty, Outcome* outcome) {
         const Floats y(Counted(kBlock));
         Launch(faulty ? ShiftInPlaceKernel<true> : ShiftInPlaceKernel<false>,
                LaunchShape{1, 1, 1, kBlock, 0}, nullptr, y.at());
         outcome->got = y.Get();
         for (int i = 0; i < kBlock; ++i) {
           outcome->wanted.push_back(static_cast<float>((i + 1) % kBlock));
         }
       }},
  };
}

std::vector<SeededFault> OfWarps() {
  return {
      Kernels("MaskWithoutOwnLane", "in what its mask 0x7fffffff leaves it out of",
              OwnLaneKernel<false>, OwnLaneKernel<true>, Each(Neighbor)),
      Kernels("MaskOfEndedLanes", "wait for lanes 0xffffffff", MissingLanesKernel<false>,
              MissingLanesKernel<true>, Each(Neighbor)),
      {"ValueFromOutsideOfMask", "",
       [](bool faulty, Outcome* outcome) {
         RunMap(faulty ? OutsideOfMaskKernel<true> : OutsideOfMaskKernel<false>,
                {kBlocks, 1, 1, kBlock, 0}, Each(Neighbor), outcome);
       }},
      Kernels("LanesWithTwoTypes", "do different things together", TwoTypesKernel<false>,
              TwoTypesKernel<true>, Each(Neighbor)),
      Kernels("WidthOfReduction", "", WidthKernel<false>, WidthKernel<true>, Each(SumOfEight)),
  };
}

std::vector<SeededFault> OfMemory() {
  constexpr int64_t kTile = kBlock * sizeof(float);
  std::vector<SeededFault> faults = {
      {"StoreBehindTheEnd", "behind the end of allocation",
       [](bool faulty, Outcome* outcome) {
         RunMap(faulty ? TailKernel<true> : TailKernel<false>, {kBlocks + 1, 1, 1, kBlock, 0},
                Each(Same), outcome);
       },
       true},
      Kernels("StoreBeforeTheBegin", "before allocation", BeforeKernel<false>, BeforeKernel<true>,
              Each(Same)),
      {"ReadsBehindTheEnd", "",
       [](bool faulty, Outcome* outcome) {
         RunMap(faulty ? ReadBehindKernel<true> : ReadBehindKernel<false>,
                {kBlocks, 1, 1, kBlock, 0}, Each(NextOrLast), outcome);
       },
       true},
      Kernels("WritesTogether", "", WriteTogetherKernel<false>, WriteTogetherKernel<true>,
              Each(FirstOfBlock)),
      Kernels("Swizzle", "", SwizzleKernel<false>, SwizzleKernel<true>, Each(Transposed)),
      Kernels("SharedIsNotZero", "", SharedSumKernel<false>, SharedSumKernel<true>,
              Each(FirstOfBlock)),
      Kernels("DynamicSharedIsNotWritten", "", DynamicKernel<false>, DynamicKernel<true>,
              Each(Reversed), kTile),
      Kernels("DynamicSharedBehindTheEnd", "behind the 512 dynamic shared bytes",
              DynamicEndKernel<false>, DynamicEndKernel<true>, Each(Same), kTile),
      Kernels("ReadsAnotherBlock", "", OtherBlockKernel<false>, OtherBlockKernel<true>, Each(Same)),
  };
  for (SeededFault& fault : faults) {
    fault.addresses = fault.addresses || fault.name == "StoreBeforeTheBegin" ||
                      fault.name == "DynamicSharedBehindTheEnd";
  }
  return faults;
}

std::vector<SeededFault> OfLaunches() {
  constexpr int64_t kTile = kBlock * sizeof(float);
  const LaunchShape usual{kBlocks, 1, 1, kBlock, 0};
  const LaunchShape with_tile{kBlocks, 1, 1, kBlock, kTile};
  const char* const refused = "no device takes it";
  std::vector<SeededFault> faults = {
      Shapes("GridTooSmall", "", UncheckedKernel, usual, {kBlocks - 1, 1, 1, kBlock, 0},
             Each(Same)),
      Shapes("GridTooLarge", "behind the end of allocation", UncheckedKernel, usual,
             {kBlocks + 1, 1, 1, kBlock, 0}, Each(Same)),
      Shapes("SharedBytesForgotten", "behind the 0 dynamic shared bytes", DynamicKernel<false>,
             with_tile, usual, Each(Reversed)),
      Shapes("BlockTooLarge", refused, UncheckedKernel, usual, {1, 1, 1, 2048, 0}, Each(Same)),
      Shapes("GridTooHigh", refused, UncheckedKernel, usual, {1, 65536, 1, kBlock, 0}, Each(Same)),
      Shapes("SharedBytesTooMany", refused, DynamicKernel<false>, with_tile,
             {kBlocks, 1, 1, kBlock, 128 << 10}, Each(Reversed)),
  };
  faults[1].addresses = faults[2].addresses = true;
  return faults;
}

std::vector<SeededFault> All() {
  std::vector<SeededFault> all;
  for (const auto& some : {OfBarriers(), OfWarps(), OfMemory(), OfLaunches()}) {
    all.insert(all.end(), some.begin(), some.end());
  }
  const std::map<std::string, std::string> watched = {
      {"BarrierBeforeRead", "of shared memory that nobody has written"},
      {"BarrierBeforeWrite", "has written, and no barrier is between"},
      {"BarrierOfWarp", "of shared memory that nobody has written"},
      {"BarrierAfterPartials", "of shared memory that nobody has written"},
      {"BarrierInPlace", "and no barrier is between"},
      {"SharedIsNotZero", "of shared memory that nobody has written"},
      {"DynamicSharedIsNotWritten", "of shared memory that nobody has written"},
      {"ReadsAnotherBlock", "that another block has"},
      {"ReadsBehindTheEnd", "reads 4 bytes at 1536, behind the end of allocation"},
      {"WritesTogether", "has written, and no barrier is between"},
  };
  for (SeededFault& fault : all) {
    const auto found = watched.find(fault.name);
    if (found != watched.end()) fault.watched = found->second;
  }
  return all;
}

class KernelFaults : public testing::TestWithParam<SeededFault> {};

TEST_P(KernelFaults, AreFound) { ExpectFound(GetParam()); }

INSTANTIATE_TEST_SUITE_P(, KernelFaults, testing::ValuesIn(All()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace mgc::cuda
