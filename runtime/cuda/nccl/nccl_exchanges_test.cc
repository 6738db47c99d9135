// Exchanges and transfers by NCCL: those that only move, and sums of whole numbers, bit for bit as
// RunExchanges makes them; other sums within rounding, and the same on all members.
#include "runtime/cuda/nccl/nccl_exchanges.h"

#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/types/bfloat16.h"
#include "graph/types/float16.h"
#include "gtest/gtest.h"
#include "runtime/comm/testing/flow_cases.h"
#include "runtime/cuda/nccl/nccl_world.h"
#include "runtime/cuda/testing/device_tiles.h"

#ifdef MGC_CUDA_EMULATED
#include "kernels/cuda/emulator/watch.h"
#endif

namespace mgc {
namespace {

using Random = std::mt19937_64;

uint64_t Seed() { return static_cast<uint64_t>(GTEST_FLAG_GET(random_seed)); }

// Ranks that may have a GPU each.
int MostRanks() {
#ifdef MGC_CUDA_EMULATED
  cuda::emulator::SetDevices(20);
#endif
  int gpus = 0;
  cudaGetDeviceCount(&gpus);
  return gpus;
}

// All ranks in this process, with a stream each.
class Ranks {
 public:
  explicit Ranks(int ranks, const std::vector<NcclGroups>& sets = {}) {
    std::vector<NcclPlace> here;
    for (int r = 0; r < ranks; ++r) here.push_back({r, r});
    auto world = NcclWorld::Create(ranks, here, sets,
                                   [](absl::Span<char> /*id*/) { return absl::OkStatus(); });
    EXPECT_TRUE(world.ok()) << world.status();
    world_ = *std::move(world);
    streams_.resize(static_cast<size_t>(ranks));
    for (int r = 0; r < ranks; ++r) {
      CheckCuda(cudaSetDevice(r));
      CheckCuda(
          cudaStreamCreateWithFlags(&streams_[static_cast<size_t>(r)], cudaStreamNonBlocking));
    }
  }
  ~Ranks() {
    world_ = nullptr;
    for (cudaStream_t stream : streams_) cudaStreamDestroy(stream);
  }

  NcclWorld& world() { return *world_; }
  NcclEnd End(size_t rank) const {
    return {static_cast<int>(rank), world_->all(rank), streams_[rank]};
  }
  void Await() const {
    for (cudaStream_t stream : streams_) CheckCuda(cudaStreamSynchronize(stream));
  }

 private:
  std::unique_ptr<NcclWorld> world_;
  std::vector<cudaStream_t> streams_;
};

double ValueOf(DType dtype, const char* at) {
  const auto get = [at](auto value) {
    std::memcpy(&value, at, sizeof(value));
    return value;
  };
  switch (dtype) {
    case DType::kF64:
      return get(double());
    case DType::kI64:
      return static_cast<double>(get(int64_t()));
    case DType::kBF16:
      return ToFloat(get(Bfloat16()));
    case DType::kF16:
      return ToFloat(get(Float16()));
    case DType::kI8:
      return get(int8_t());
    case DType::kF32:
      break;
  }
  return get(float());
}

// By what sums of `terms` terms in two orders may differ, each of at most 2, rounded after each.
double Rounding(DType dtype, size_t terms) {
  const double digits = dtype == DType::kF32 ? 24 : dtype == DType::kBF16 ? 8 : 11;
  const auto n = static_cast<double>(terms);
  return dtype == DType::kF64 || dtype == DType::kI64 ? 0x1p-50 * n * n
                                                      : std::exp2(-digits) * 2 * n * n;
}

bool IsNear(DType dtype, const Bytes& got, const Bytes& want, double difference) {
  const auto step = static_cast<size_t>(SizeOf(dtype));
  for (size_t i = 0; i < got.size(); i += step) {
    const double off = std::abs(ValueOf(dtype, &got[i]) - ValueOf(dtype, &want[i]));
    if (!(off <= difference)) return false;
  }
  return true;
}

// What NCCL has made of a bucket, on the device.
class Moved {
 public:
  Moved(const Bucket& bucket, Ranks* ranks) : bucket_(bucket) {
    const size_t parts = bucket.exchanges.size();
    const size_t members = bucket.exchanges[0].piece.size();
    in_.resize(parts);
    out_.resize(parts);
    std::vector<std::vector<const char*>> inputs(parts);
    std::vector<std::vector<char*>> outputs(parts);
    std::vector<TiledExchange> tiled;
    for (size_t e = 0; e < parts; ++e) {
      for (size_t m = 0; m < members; ++m) {
        CheckCuda(cudaSetDevice(static_cast<int>(m)));
        in_[e].emplace_back(bucket.in[e][m], 0);
        inputs[e].push_back(in_[e].back().at());
        if (!bucket.in_place) out_[e].emplace_back(Bytes(bucket.want[e][m].size(), 'x'), 0);
        outputs[e].push_back((bucket.in_place ? in_ : out_)[e].back().at());
      }
      tiled.push_back({&bucket.exchanges[e], inputs[e], outputs[e]});
    }
    const auto bytes = static_cast<size_t>(NcclStagingBytes(bucket.exchanges));
    std::vector<DeviceTile> staging;
    std::vector<NcclMember> here;
    for (size_t m = 0; m < members; ++m) {
      CheckCuda(cudaSetDevice(static_cast<int>(m)));
      staging.emplace_back(Bytes(bytes, 'y'), 256 - kGuardBytes);
      here.push_back({ranks->End(m), static_cast<int64_t>(m), staging.back().at()});
    }
    const absl::Status status = IssueNcclExchanges(tiled, here);
    EXPECT_TRUE(status.ok()) << status;
    ranks->Await();
    for (const DeviceTile& tile : staging) tile.Read();
  }

  Bytes Result(size_t exchange, size_t member) const {
    return (bucket_.in_place ? in_ : out_)[exchange][member].Read();
  }

 private:
  const Bucket& bucket_;
  std::vector<std::vector<DeviceTile>> in_, out_;
};

void ExpectSame(const Bucket& bucket, bool exact, Ranks* ranks) {
  const Moved moved(bucket, ranks);
  for (size_t e = 0; e < bucket.exchanges.size(); ++e) {
    const Exchange& x = bucket.exchanges[e];
    for (size_t m = 0; m < x.piece.size(); ++m) {
      const Bytes got = moved.Result(e, m);
      const Bytes& want = bucket.want[e][m];
      EXPECT_TRUE(exact ? got == want
                        : IsNear(x.dtype, got, want, Rounding(x.dtype, x.piece.size())))
          << "exchange " << e << ", member " << m;
      if (IsAllReduce(x.kind)) {
        EXPECT_TRUE(got == moved.Result(e, 0)) << "member " << m;
      }
    }
  }
  EXPECT_EQ(DeviceFault(), "");
}

TEST(NcclExchanges, EqualThoseOfTheCpu) {
  if (MostRanks() < 2) GTEST_SKIP() << "needs two GPUs";
  SCOPED_TRACE(absl::StrCat("seed ", Seed()));
  Random random(Seed());
  std::map<size_t, std::unique_ptr<Ranks>> ranks;  // by how many
  for (int i = 0; i < 100; ++i) {
    const FlowCase c = DrawFlowCase(1 + static_cast<int>(random() % 6), false, &random);
    const bool whole = random() % 2 == 0;
    const size_t members = c.parts[0].piece.size();
    if (static_cast<int>(members) > MostRanks() || BytesOf(c.parts) > kSmallBytes) continue;
    SCOPED_TRACE(absl::StrCat("case ", i, ", ", c.Describe(), whole ? ", whole" : ""));
    SetDeviceOrder(random());
    std::unique_ptr<Ranks>& of_size = ranks[members];
    if (of_size == nullptr) of_size = std::make_unique<Ranks>(static_cast<int>(members));
    const CollectiveKind kind = c.parts[0].kind;
    const bool sums = kind == CollectiveKind::kAllReduce || kind == CollectiveKind::kReduceScatter;
    ExpectSame(Bucket(c.parts, c.in_place, whole, &random), whole || !sums, of_size.get());
  }
}

// More members than the kernels that pack have in one piece of work.
TEST(NcclExchanges, OfManyMembers) {
  if (MostRanks() < 20) GTEST_SKIP() << "needs 20 GPUs";
  SCOPED_TRACE(absl::StrCat("seed ", Seed()));
  Random random(Seed());
  Ranks ranks(20);
  for (CollectiveKind kind :
       {CollectiveKind::kAllGather, CollectiveKind::kReduceScatter, CollectiveKind::kAllToAll}) {
    Exchange x;
    x.kind = kind;
    x.outer = 3;
    x.whole = x.second_whole = 77;
    x.room = x.second_room = 4;
    for (int m = 0; m < 20; ++m) x.piece.push_back(m);
    std::shuffle(x.piece.begin(), x.piece.end(), random);
    ExpectSame(Bucket({x}, false, true, &random), true, &ranks);
  }
}

// Tiles that are their own pieces go without a copy.
TEST(NcclExchanges, StageOnlyWhatIsNotDense) {
  Exchange x;
  x.kind = CollectiveKind::kAllGather;
  x.whole = 12;
  x.room = 4;
  x.inner = 8;
  x.piece = {0, 1, 2};
  EXPECT_EQ(NcclStagingBytes({&x, 1}), 0);
  x.kind = CollectiveKind::kReduceScatter;
  EXPECT_EQ(NcclStagingBytes({&x, 1}), 0);
  x.whole = 11;
  EXPECT_EQ(NcclStagingBytes({&x, 1}), 512);  // 3 · 4 · 8 f32, up to the next place
  x.whole = 12;
  x.piece = {1, 0, 2};
  EXPECT_EQ(NcclStagingBytes({&x, 1}), 512);
  x.kind = CollectiveKind::kAllReduce;
  EXPECT_EQ(NcclStagingBytes({&x, 1}), 0);
}

// Each rank sends to the next one, and gets from the one before.
TEST(NcclTransfers, GoRound) {
  if (MostRanks() < 2) GTEST_SKIP() << "needs two GPUs";
  const int ranks = std::min(MostRanks(), 4);
  Ranks all(ranks);
  constexpr int64_t kBytes = 1001;
  std::vector<DeviceTile> from, to;
  std::vector<NcclTransfer> transfers;
  for (int r = 0; r < ranks; ++r) {
    CheckCuda(cudaSetDevice(r));
    from.emplace_back(Bytes(kBytes, static_cast<char>('a' + r)), 0);
    to.emplace_back(Bytes(kBytes, 'x'), 0);
    const NcclEnd end = all.End(static_cast<size_t>(r));
    transfers.push_back({end, true, (r + 1) % ranks, from.back().at(), kBytes});
    transfers.push_back({end, false, (r + ranks - 1) % ranks, to.back().at(), kBytes});
  }
  ASSERT_TRUE(IssueNcclTransfers(transfers).ok());
  all.Await();
  for (int r = 0; r < ranks; ++r) {
    EXPECT_EQ(to[static_cast<size_t>(r)].Read(),
              Bytes(kBytes, static_cast<char>('a' + (r + ranks - 1) % ranks)));
  }
  EXPECT_EQ(DeviceFault(), "");
}

TEST(NcclExchanges, RefuseWhatNoExchangeDoes) {
  Exchange x;
  x.kind = CollectiveKind::kLift;
  x.piece = {0, 1};
  const TiledExchange tiled = {&x, {}, {}};
  const NcclMember member;
  EXPECT_EQ(IssueNcclExchanges({&tiled, 1}, {&member, 1}).code(), absl::StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace mgc
