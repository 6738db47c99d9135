// Local moves against the CPU's, over random sizes and places.
#include <memory>
#include <random>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "kernels/cpu/adapt.h"
#include "kernels/cuda/adapt.h"
#include "kernels/cuda/api.h"
#include "kernels/kernel.h"
#include "kernels/parallel.h"

#ifdef MGC_CUDA_EMULATED
#include "kernels/cuda/emulator/emulator.h"
#endif

namespace mgc {
namespace {

using Random = std::mt19937_64;

void Check(cudaError_t error) { ASSERT_EQ(error, cudaSuccess) << cudaGetErrorString(error); }

int64_t Draw(int64_t low, int64_t high, Random* random) {
  return std::uniform_int_distribution<int64_t>(low, high)(*random);
}

// Of pieces of a whole, in units of 1 to 16 bytes, now and then beyond the whole's end.
LocalMove DrawMove(Random* random) {
  const int64_t unit = int64_t{1} << Draw(0, 4, random);
  const int64_t most = Draw(0, 3, random) == 0 ? 3000 : 40;
  LocalMove move;
  move.rows = Draw(1, 30, random);
  move.from_stride = unit * Draw(1, most, random);
  move.to_stride = unit * Draw(1, most, random);
  move.from_begin = std::min(move.from_stride, move.to_stride * Draw(0, 3, random));
  move.valid = std::min(move.to_stride, move.from_stride - move.from_begin);
  if (Draw(0, 7, random) == 0) move.valid = 0;
  return move;
}

std::unique_ptr<Kernel> Make(absl::Span<const KernelEntry> entries, const LocalMove& move) {
  KernelSpec spec;
  spec.op = FindOp(entries[0].op);
  spec.move = move;
  return *entries[0].make(spec);
}

// Both tiles `shift` bytes behind an aligned place; a guard behind the result.
std::vector<char> RunOnDevice(const Kernel& kernel, const std::vector<char>& from, size_t to_bytes,
                              size_t shift) {
  char* in = nullptr;
  char* out = nullptr;
  Check(cudaMalloc(reinterpret_cast<void**>(&in), from.size() + shift));
  Check(cudaMalloc(reinterpret_cast<void**>(&out), to_bytes + shift));
  std::vector<char> made(to_bytes, 'x');
  Check(cudaMemcpy(in + shift, from.data(), from.size(), cudaMemcpyHostToDevice));
  Check(cudaMemcpy(out + shift, made.data(), made.size(), cudaMemcpyHostToDevice));
  cudaStream_t stream;
  Check(cudaStreamCreate(&stream));
  void* inputs[] = {in + shift};
  void* outputs[] = {out + shift};
  KernelRun run;
  run.inputs = inputs;
  run.outputs = outputs;
  run.queue = stream;
  SerialParallel parallel;
  EXPECT_TRUE(kernel.Run(run, parallel).ok());
  Check(cudaStreamSynchronize(stream));
  Check(cudaStreamDestroy(stream));
  Check(cudaMemcpy(made.data(), out + shift, made.size(), cudaMemcpyDeviceToHost));
  Check(cudaFree(in));
  Check(cudaFree(out));
  return made;
}

TEST(CudaLocalMoves, EqualTheCpus) {
  constexpr size_t kGuard = 32;
  const auto seed = static_cast<uint64_t>(GTEST_FLAG_GET(random_seed));
  Random random(seed);
  for (int i = 0; i < 200; ++i) {
    const LocalMove move = DrawMove(&random);
    SCOPED_TRACE(absl::StrCat("seed ", seed, ", case ", i, ": ", move.rows, " rows, ",
                              move.from_begin, " of ", move.from_stride, ", ", move.valid, " of ",
                              move.to_stride));
    std::vector<char> from(static_cast<size_t>(move.rows * move.from_stride));
    for (char& byte : from) byte = static_cast<char>(random());
    const size_t bytes = static_cast<size_t>(move.rows * move.to_stride) + kGuard;
    std::vector<char> want(bytes, 'x');
    void* inputs[] = {from.data()};
    void* outputs[] = {want.data()};
    SerialParallel parallel;
    ASSERT_TRUE(Make(cpu::LocalMoveKernels(), move)
                    ->Run({inputs, outputs, nullptr, 0, nullptr, nullptr, 0}, parallel)
                    .ok());
    const auto kernel = Make(cuda::LocalMoveKernels(), move);
    const size_t shift = static_cast<size_t>(Draw(0, 2, &random)) * 2;
    EXPECT_TRUE(RunOnDevice(*kernel, from, bytes, shift) == want);
  }
#ifdef MGC_CUDA_EMULATED
  EXPECT_EQ(cuda::emulator::TakeFault(), "");
#endif
}

}  // namespace
}  // namespace mgc
