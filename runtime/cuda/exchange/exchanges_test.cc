// Exchanges between ranks of one GPU, bit for bit as RunExchanges makes them of the same tiles.
#include "runtime/cuda/exchange/exchanges.h"

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/types/tensor_type.h"
#include "gtest/gtest.h"
#include "kernels/cuda/api.h"
#include "kernels/parallel.h"
#include "runtime/comm/run_exchanges.h"
#include "runtime/comm/testing/flow_cases.h"

#ifdef MGC_CUDA_EMULATED
#include "kernels/cuda/emulator/emulator.h"
#endif

namespace mgc {
namespace {

using Random = std::mt19937_64;
using Bytes = std::vector<char>;

constexpr size_t kGuardBytes = 64;

#ifdef MGC_CUDA_EMULATED
void SetOrder(uint64_t order) { cuda::emulator::SetSeed(order); }
std::string Fault() { return cuda::emulator::TakeFault(); }
#else
void SetOrder(uint64_t /*order*/) {}
std::string Fault() { return ""; }
#endif

void Check(cudaError_t error) { ASSERT_EQ(error, cudaSuccess) << cudaGetErrorString(error); }

// A tile with guards around it, in the device's memory, `shift` bytes behind where vectors would
// lie.
class DeviceTile {
 public:
  DeviceTile(const Bytes& tile, size_t shift)
      : begin_(kGuardBytes + shift), end_(begin_ + tile.size()) {
    Bytes image(end_ + kGuardBytes, kGuard);
    std::copy(tile.begin(), tile.end(), &image[begin_]);
    Check(cudaMalloc(&at_, image.size()));
    Check(cudaMemcpy(at_, image.data(), image.size(), cudaMemcpyHostToDevice));
  }
  DeviceTile(DeviceTile&& other) noexcept
      : begin_(other.begin_), end_(other.end_), at_(std::exchange(other.at_, nullptr)) {}
  ~DeviceTile() { cudaFree(at_); }

  char* at() const { return static_cast<char*>(at_) + begin_; }
  // What it holds now; fails where a guard has changed.
  Bytes Read() const {
    Bytes image(end_ + kGuardBytes);
    Check(cudaMemcpy(image.data(), at_, image.size(), cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < image.size(); ++i) {
      if (i >= begin_ && i < end_) continue;
      EXPECT_EQ(image[i], kGuard) << "written beside the tile";
    }
    return {&image[begin_], &image[end_]};
  }

 private:
  static constexpr char kGuard = 'g';
  size_t begin_;
  size_t end_;
  void* at_ = nullptr;
};

// The tiles of exchanges on the host, with what RunExchanges makes of them.
struct Bucket {
  std::vector<Exchange> exchanges;
  bool in_place = false;
  std::vector<std::vector<Bytes>> in, want;  // by exchange and member

  Bucket(std::vector<Exchange> parts, bool place, Random* random)
      : exchanges(std::move(parts)), in_place(place) {
    for (const Exchange& x : exchanges) {
      const TileSizes sizes = SizesOf(x);
      const int64_t bytes = SizeOf(x.dtype);
      std::vector<const char*> inputs;
      std::vector<char*> outputs;
      std::vector<Bytes>& tiles = in.emplace_back();
      std::vector<Bytes>& made = want.emplace_back();
      for (size_t m = 0; m < x.piece.size(); ++m) {
        FillTile(x.dtype, random, &tiles.emplace_back(static_cast<size_t>(sizes.in * bytes)));
        made.emplace_back(static_cast<size_t>(sizes.out * bytes), 'x');
      }
      for (size_t m = 0; m < x.piece.size(); ++m) {
        inputs.push_back(tiles[m].data());
        outputs.push_back(made[m].data());
      }
      const TiledExchange tiled = {&x, inputs, outputs};
      SerialParallel serial;
      EXPECT_TRUE(RunExchanges({&tiled, 1}, serial).ok());
    }
  }
};

// Has the device run them. What no exchange writes stays 'x', as in `want`.
void ExpectSame(const Bucket& bucket, Random* random) {
  std::vector<std::vector<DeviceTile>> in(bucket.in.size()), out(bucket.in.size());
  std::vector<std::vector<const char*>> inputs(bucket.in.size());
  std::vector<std::vector<char*>> outputs(bucket.in.size());
  std::vector<TiledExchange> tiled;
  for (size_t e = 0; e < bucket.in.size(); ++e) {
    const Exchange& x = bucket.exchanges[e];
    const auto bytes = static_cast<size_t>(SizeOf(x.dtype));
    const auto shift = [&] { return (*random)() % 4 == 0 ? (*random)() % 16 / bytes * bytes : 0; };
    for (size_t m = 0; m < x.piece.size(); ++m) {
      in[e].emplace_back(bucket.in[e][m], shift());
      inputs[e].push_back(in[e].back().at());
      if (!bucket.in_place) out[e].emplace_back(Bytes(bucket.want[e][m].size(), 'x'), shift());
      outputs[e].push_back((bucket.in_place ? in : out)[e].back().at());
    }
    tiled.push_back({&x, inputs[e], outputs[e]});
  }
  cudaStream_t stream;
  Check(cudaStreamCreate(&stream));
  ASSERT_EQ(cuda::IssueExchanges(stream, tiled), 0);
  Check(cudaStreamSynchronize(stream));
  Check(cudaStreamDestroy(stream));
  EXPECT_EQ(Fault(), "");
  for (size_t e = 0; e < bucket.in.size(); ++e) {
    for (size_t m = 0; m < bucket.in[e].size(); ++m) {
      // Not EXPECT_EQ, which would print the tiles.
      EXPECT_TRUE((bucket.in_place ? in : out)[e][m].Read() == bucket.want[e][m])
          << "exchange " << e << ", member " << m;
    }
  }
}

uint64_t Seed() { return static_cast<uint64_t>(GTEST_FLAG_GET(random_seed)); }

TEST(CudaExchanges, EqualThoseOfTheCpu) {
  SCOPED_TRACE(absl::StrCat("seed ", Seed()));
  Random random(Seed());
  for (int i = 0; i < 60; ++i) {
    const FlowCase c = DrawFlowCase(1 + static_cast<int>(random() % 5), false, &random);
    SCOPED_TRACE(absl::StrCat("case ", i, ", ", c.Describe()));
    SetOrder(random());
    for (const Exchange& x : c.parts) ASSERT_TRUE(cuda::CheckIssuable(x).ok());
    ExpectSame(Bucket(c.parts, c.in_place, &random), &random);
  }
}

// More of them than one launch takes, of several types, kinds and groups: what is launched together
// is the device's affair.
TEST(CudaExchanges, ManySmallOnesAtOnce) {
  SCOPED_TRACE(absl::StrCat("seed ", Seed()));
  Random random(Seed());
  std::vector<Exchange> exchanges;
  while (exchanges.size() < 150) {
    for (Exchange x : DrawFlowCase(1 + static_cast<int>(random() % 5), false, &random).parts) {
      const int times = random() % 3 == 0 ? 20 : 1;
      if (SizesOf(x).in > 2000) continue;
      exchanges.insert(exchanges.end(), static_cast<size_t>(times), x);
    }
  }
  ExpectSame(Bucket(exchanges, false, &random), &random);
}

Exchange SumOf(int64_t elements, DType dtype, int members) {
  Exchange x;
  x.dtype = dtype;
  x.whole = x.room = elements;
  x.piece.assign(static_cast<size_t>(members), 0);
  return x;
}

TEST(CudaExchanges, SumsOfEveryTypeInPlace) {
  SCOPED_TRACE(absl::StrCat("seed ", Seed()));
  Random random(Seed());
  for (DType dtype : {DType::kF32, DType::kF64, DType::kI64, DType::kBF16, DType::kF16}) {
    for (int members : {1, 2, 16}) {
      SCOPED_TRACE(absl::StrCat(NameOf(dtype), ", ", members, " members"));
      ExpectSame(Bucket({SumOf(70001, dtype, members), SumOf(5, dtype, members)}, true, &random),
                 &random);
    }
  }
}

TEST(CudaExchanges, RefusesWhatItDoesNotTake) {
  for (int members : {16, 17}) {
    Exchange x = SumOf(0, DType::kF32, members);
    const std::vector<const char*> inputs(x.piece.size());
    const std::vector<char*> outputs(x.piece.size());
    const TiledExchange tiled = {&x, inputs, outputs};
    EXPECT_EQ(cuda::CheckIssuable(x).ok(), members == 16);
    EXPECT_EQ(cuda::IssueExchanges(nullptr, {&tiled, 1}),
              members == 16 ? cudaSuccess : cudaErrorInvalidValue);
    x.kind = CollectiveKind::kLift;
    EXPECT_EQ(cuda::CheckIssuable(x).code(), absl::StatusCode::kUnimplemented);
  }
}

}  // namespace
}  // namespace mgc
