// Exchanges between ranks of one GPU, bit for bit as RunExchanges makes them of the same tiles.
#include "runtime/cuda/exchange/exchanges.h"

#include <random>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/types/tensor_type.h"
#include "gtest/gtest.h"
#include "kernels/cuda/api.h"
#include "runtime/comm/testing/flow_cases.h"
#include "runtime/cuda/testing/device_tiles.h"

namespace mgc {
namespace {

using Random = std::mt19937_64;

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
  CheckCuda(cudaStreamCreate(&stream));
  ASSERT_EQ(cuda::IssueExchanges(stream, tiled), 0);
  CheckCuda(cudaStreamSynchronize(stream));
  CheckCuda(cudaStreamDestroy(stream));
  EXPECT_EQ(DeviceFault(), "");
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
  for (int i = 0; i < 100; ++i) {
    const FlowCase c = DrawFlowCase(1 + static_cast<int>(random() % 5), false, &random);
    if (BytesOf(c.parts) > kSmallBytes) continue;
    SCOPED_TRACE(absl::StrCat("case ", i, ", ", c.Describe()));
    SetDeviceOrder(random());
    for (const Exchange& x : c.parts) ASSERT_TRUE(cuda::CheckIssuable(x).ok());
    ExpectSame(Bucket(c.parts, c.in_place, false, &random), &random);
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
  ExpectSame(Bucket(exchanges, false, false, &random), &random);
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
      ExpectSame(
          Bucket({SumOf(70001, dtype, members), SumOf(5, dtype, members)}, true, false, &random),
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
