#include "runtime/comm/run_exchanges.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/eval/eval.h"
#include "graph/types/bfloat16.h"
#include "graph/types/float16.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu_kernels.h"
#include "runtime/load/exchange.h"
#include "runtime/load/local_move.h"
#include "runtime/run/workers.h"

namespace mgc {
namespace {

absl::Status RunOne(const Exchange& exchange, absl::Span<const char* const> inputs,
                    absl::Span<char* const> outputs, Parallel& parallel) {
  const TiledExchange tiled = {&exchange, inputs, outputs};
  return RunExchanges({&tiled, 1}, parallel);
}

// Runs the ranges of a call one after the other, the last one first.
class Backwards : public Parallel {
 public:
  int width() const override { return 4; }
  void ForChunks(int64_t n, int64_t chunk,
                 absl::FunctionRef<void(int64_t begin, int64_t end, int slot)> body) override {
    for (int64_t begin = (n - 1) / chunk * chunk; begin >= 0; begin -= chunk) {
      body(begin, std::min(begin + chunk, n), 0);
      ++ranges;
    }
  }

  int ranges = 0;
};

// One change of sharding of a value, as sharding texts.
struct Case {
  const char* op;
  const char* from;
  const char* to;
};

struct Shardings {
  Mesh mesh;
  TensorType type;
  Sharding from;
  Sharding to;
};

Shardings MakeShardings(const Case& c, DType dtype, int64_t vocab) {
  const std::vector<MeshAxis> axes = {{"tp", 2}, {"dp", 3}};
  Shardings shardings;
  shardings.mesh = *Mesh::Create(axes);
  shardings.type = {dtype, {{vocab, "vocab"}, {6, "seq"}, {12, "embed"}}};
  shardings.from = *ParseSharding(c.from, shardings.mesh);
  shardings.to = *ParseSharding(c.to, shardings.mesh);
  return shardings;
}

// A local graph of the one collective.
Graph GraphOf(const Shardings& s, const char* op) {
  GraphBuilder builder("g", Level::kLocal);
  builder.set_mesh(s.mesh);
  const ValueId x = builder.AddInput("x", s.type, InputKind::kData, {}, s.from);
  Node node;
  node.op = FindOp(op);
  node.inputs = {x};
  Value y;
  y.name = "y";
  y.type = s.type;
  y.sharding = s.to;
  builder.AppendRaw(node, {y});
  return std::move(builder).Finish();
}

// Tiles of one value on all ranks, as doubles; padding included.
using Tiles = std::vector<std::vector<double>>;

// What reference evaluation makes of random tiles, and the tiles themselves.
void Reference(const Graph& graph, int seed, Tiles* in, Tiles* out) {
  GraphEvaluator<DoubleModel> evaluator(graph, DoubleModel(), 0);
  const ValueId x = graph.FindValue("x");
  const ValueId y = graph.FindValue("y");
  evaluator.SetZero(x);
  std::mt19937 random(seed);
  for (int64_t rank = 0; rank < graph.mesh().world_size(); ++rank) {
    // The evaluator hands out its tiles read-only; a test may fill them.
    auto& tile = const_cast<HostTensor<double>&>(evaluator.Tile(x, rank));
    for (double& element : tile.real) element = std::uniform_real_distribution<>(-1, 1)(random);
    in->push_back(tile.real);
  }
  evaluator.Run({Phase::kForward}, 0);
  for (int64_t rank = 0; rank < graph.mesh().world_size(); ++rank) {
    out->push_back(evaluator.Tile(y, rank).real);
  }
}

class Exchanges : public testing::TestWithParam<Case> {};

TEST_P(Exchanges, EqualReferenceEvaluation) {
  for (int64_t vocab : {6, 13}) {
    const Shardings s = MakeShardings(GetParam(), DType::kF64, vocab);
    if (absl::StrContains(GetParam().op, "to_all") && vocab == 13) continue;
    Tiles in;
    Tiles want;
    Reference(GraphOf(s, GetParam().op), 17, &in, &want);
    const auto collective = CollectiveBetween(s.from, s.to, GetParam().op);
    ASSERT_TRUE(collective.ok()) << collective.status();
    const Exchange exchange = ExchangeOf(*collective, s.type, s.from, s.to, s.mesh);
    SerialParallel serial;
    for (int64_t rank = 0; rank < s.mesh.world_size(); ++rank) {
      const std::vector<int64_t> group = s.mesh.Group(rank, exchange.axes);
      if (group[0] != rank) continue;
      std::vector<const char*> inputs;
      Tiles made;
      std::vector<char*> outputs;
      made.reserve(group.size());
      for (int64_t member : group) {
        inputs.push_back(reinterpret_cast<const char*>(in[member].data()));
        made.emplace_back(want[member].size() + 1, 77.0);
        outputs.push_back(reinterpret_cast<char*>(made.back().data()));
      }
      ASSERT_TRUE(RunOne(exchange, inputs, outputs, serial).ok());
      for (size_t m = 0; m < group.size(); ++m) {
        EXPECT_EQ(made[m].back(), 77.0) << "written behind the tile";
        made[m].pop_back();
        EXPECT_EQ(made[m], want[group[m]]) << "rank " << group[m] << ", vocabulary " << vocab;
      }
    }
  }
}

// Whole tiles of a size that is worth cutting, and one that ends within a unit.
TEST_P(Exchanges, AnyCutGivesTheSameBits) {
  for (int64_t vocab : {6000, 6007}) {
    const Shardings s = MakeShardings(GetParam(), DType::kF32, vocab);
    if (absl::StrContains(GetParam().op, "to_all") && vocab == 6007) continue;
    const Exchange exchange =
        ExchangeOf(*CollectiveBetween(s.from, s.to, GetParam().op), s.type, s.from, s.to, s.mesh);
    const size_t in_size = static_cast<size_t>(LocalElements(s.type, s.from, s.mesh));
    const size_t out_size = static_cast<size_t>(LocalElements(s.type, s.to, s.mesh));
    const size_t members = exchange.piece.size();
    std::mt19937 random(17);
    std::vector<std::vector<float>> in(members, std::vector<float>(in_size));
    for (auto& tile : in) {
      for (float& x : tile) x = std::uniform_real_distribution<float>(-1, 1)(random);
    }
    const auto run = [&](Parallel& parallel) {
      std::vector<std::vector<float>> out(members, std::vector<float>(out_size, 77));
      std::vector<const char*> inputs;
      std::vector<char*> outputs;
      for (size_t m = 0; m < members; ++m) {
        inputs.push_back(reinterpret_cast<const char*>(in[m].data()));
        outputs.push_back(reinterpret_cast<char*>(out[m].data()));
      }
      EXPECT_TRUE(RunOne(exchange, inputs, outputs, parallel).ok());
      return out;
    };
    SerialParallel serial;
    Backwards backwards;
    EXPECT_EQ(run(serial), run(backwards)) << "vocabulary " << vocab;
    EXPECT_GT(backwards.ranges, 4);
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, Exchanges,
    testing::Values(
        Case{"all_reduce", "-,-,-+tp", "-,-,-"}, Case{"all_reduce", "tp,-,-+dp", "tp,-,-"},
        Case{"all_reduce", "-,-,-+tp*dp", "-,-,-"}, Case{"all_reduce", "-,-,-^tp", "-,-,-"},
        Case{"all_reduce", "-,-,-+tp*dp", "-,-,-+dp"}, Case{"all_gather", "tp,-,-", "-,-,-"},
        Case{"all_gather", "-,tp,-", "-,-,-"}, Case{"all_gather", "-,dp*tp,-", "-,dp,-"},
        Case{"all_gather", "-,-,tp*dp", "-,-,-"}, Case{"all_gather", "-,-,-/dp", "-,-,-"},
        Case{"all_gather", "tp,-,-/dp", "tp,-,-"}, Case{"reduce_scatter", "-,-,-+tp", "-,tp,-"},
        Case{"reduce_scatter", "-,dp,-+tp", "-,dp*tp,-"},
        Case{"reduce_scatter", "-,-,-+tp*dp", "-,-,dp*tp"},
        Case{"reduce_scatter", "-,-,-+dp", "-,-,-/dp"},
        Case{"reduce_scatter", "tp,-,-+dp", "tp,-,-/dp"}, Case{"all_to_all", "-,tp,-", "-,-,tp"},
        Case{"all_to_all", "-,-,tp", "-,tp,-"}, Case{"all_to_all", "tp,-,-", "-,-,tp"},
        Case{"all_to_all", "-,-,dp", "dp,-,-"}, Case{"all_to_all", "-,tp*dp,-", "-,tp,dp"}));

// The CPU's.
std::unique_ptr<Kernel> KernelOf(const char* op, const LocalMove& move) {
  KernelSpec spec;
  spec.op = FindOp(op);
  spec.move = move;
  for (const KernelEntry& entry : CpuKernels()) {
    if (entry.op == spec.op->name) return *entry.make(spec);
  }
  return nullptr;
}

class LocalMoves : public testing::TestWithParam<Case> {};

TEST_P(LocalMoves, EqualReferenceEvaluation) {
  for (int64_t vocab : {6, 13}) {
    const Shardings s = MakeShardings(GetParam(), DType::kF64, vocab);
    Tiles in;
    Tiles want;
    Reference(GraphOf(s, GetParam().op), 18, &in, &want);
    SerialParallel serial;
    for (int64_t rank = 0; rank < s.mesh.world_size(); ++rank) {
      const auto move = LocalMoveOf(s.type, s.from, s.to, GetParam().op, s.mesh, rank);
      ASSERT_TRUE(move.ok()) << move.status();
      const auto kernel = KernelOf(GetParam().op, *move);
      std::vector<double> made(want[rank].size() + 1, 77.0);
      void* inputs[] = {in[rank].data()};
      void* outputs[] = {made.data()};
      ASSERT_TRUE(kernel->Run({inputs, outputs, nullptr, 0}, serial).ok());
      EXPECT_EQ(made.back(), 77.0) << "written behind the tile";
      made.pop_back();
      EXPECT_EQ(made, want[rank]) << "rank " << rank << ", vocabulary " << vocab;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, LocalMoves,
                         testing::Values(Case{"shard_slice", "-,-,-", "tp,-,-"},
                                         Case{"shard_slice", "-,-,-", "-,-,dp*tp"},
                                         Case{"shard_slice", "-,dp,-", "-,dp*tp,-"},
                                         Case{"shard_slice", "tp,-,-", "tp,-,-/dp"},
                                         Case{"lift", "-,-,-", "-,-,-+dp"},
                                         Case{"lift", "-,tp,-", "-,tp,-+dp"}));

// Sums of floats follow the group's order, in place and for any split.
TEST(ExchangeTest, SumsInPlaceInGroupOrder) {
  const Mesh mesh = *Mesh::Create({{"dp", 3}});
  constexpr int64_t kElements = 5000;
  const TensorType type{DType::kF32, {{kElements, ""}}};
  const Sharding owed = *ParseSharding("-+dp", mesh);
  const Sharding whole = *ParseSharding("-", mesh);
  const Exchange exchange =
      ExchangeOf(*CollectiveBetween(owed, whole, "all_reduce"), type, owed, whole, mesh);
  const auto seed = static_cast<unsigned>(GTEST_FLAG_GET(random_seed));
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  std::mt19937 random(seed);
  std::vector<std::vector<float>> tiles(3, std::vector<float>(kElements));
  for (auto& tile : tiles) {
    for (float& x : tile) x = std::uniform_real_distribution<float>(-1, 1)(random);
  }
  std::vector<float> want(kElements);
  for (int64_t i = 0; i < kElements; ++i) want[i] = (tiles[0][i] + tiles[1][i]) + tiles[2][i];
  std::vector<const char*> inputs;
  std::vector<char*> outputs;
  for (auto& tile : tiles) {
    inputs.push_back(reinterpret_cast<const char*>(tile.data()));
    outputs.push_back(reinterpret_cast<char*>(tile.data()));
  }
  Workers workers(3, 3);
  ASSERT_TRUE(RunOne(exchange, inputs, outputs, workers).ok());
  for (const auto& tile : tiles) EXPECT_EQ(tile, want);
}

Exchange SumOfTwo(DType dtype) {
  Exchange exchange;
  exchange.dtype = dtype;
  exchange.whole = exchange.room = 1;
  exchange.piece = {0, 0};
  return exchange;
}

// Sums of three terms by an exchange of `dtype`, whose elements are of T.
template <class T>
void ExpectSum(DType dtype, T first, T other, float sum) {
  constexpr int kMembers = 3;
  constexpr int64_t kElements = 2500;
  std::vector<std::vector<T>> tiles;
  for (const T term : {first, other, other}) tiles.emplace_back(kElements, term);
  std::vector<const char*> inputs;
  std::vector<char*> outputs;
  for (auto& tile : tiles) {
    inputs.push_back(reinterpret_cast<const char*>(tile.data()));
    outputs.push_back(reinterpret_cast<char*>(tile.data()));
  }
  Exchange exchange = SumOfTwo(dtype);
  exchange.whole = exchange.room = kElements;
  exchange.piece.assign(kMembers, 0);
  Workers workers(kMembers, kMembers);
  ASSERT_TRUE(RunOne(exchange, inputs, outputs, workers).ok());
  for (const auto& tile : tiles) {
    for (const T x : tile) ASSERT_EQ(ToFloat(x), sum);
  }
}

// Added in f32 and rounded once: the sum would stay the first term if each sum were rounded.
TEST(ExchangeTest, NarrowSumsAreRoundedOnce) {
  ExpectSum(DType::kBF16, ToBfloat16(256), ToBfloat16(1), 258);
  ExpectSum(DType::kF16, ToFloat16(2048), ToFloat16(1), 2050);
}

// What a collective moves is shared as a whole: operands too small to be cut go to several threads.
TEST(ExchangeTest, ManySmallOperandsAreSharedToo) {
  constexpr size_t kOperands = 64;
  constexpr size_t kElements = 5000;
  Exchange sum = SumOfTwo(DType::kF32);
  sum.whole = sum.room = kElements;
  std::vector<std::vector<float>> tiles;
  for (size_t i = 0; i < 2 * kOperands; ++i) {
    tiles.emplace_back(kElements, static_cast<float>(i));
  }
  std::vector<const char*> inputs;
  std::vector<char*> outputs;
  for (auto& tile : tiles) {
    inputs.push_back(reinterpret_cast<const char*>(tile.data()));
    outputs.push_back(reinterpret_cast<char*>(tile.data()));
  }
  std::vector<TiledExchange> exchanges;
  for (size_t i = 0; i < kOperands; ++i) {
    exchanges.push_back({&sum, {&inputs[2 * i], 2}, {&outputs[2 * i], 2}});
  }
  Backwards backwards;
  ASSERT_TRUE(RunExchanges(exchanges, backwards).ok());
  EXPECT_EQ(backwards.ranges, 16);  // four for each thread
  for (size_t i = 0; i < 2 * kOperands; ++i) {
    const size_t pair = i / 2;
    const std::vector<float> want(kElements, static_cast<float>(pair * 4 + 1));
    EXPECT_EQ(tiles[i], want) << i;
  }
}

// 2^53 + 1, which a double cannot hold.
TEST(ExchangeTest, SumsIndicesAsIntegers) {
  const int64_t terms[] = {int64_t{1} << 53, 1};
  int64_t sums[] = {0, 0};
  const std::vector<const char*> inputs = {reinterpret_cast<const char*>(&terms[0]),
                                           reinterpret_cast<const char*>(&terms[1])};
  const std::vector<char*> outputs = {reinterpret_cast<char*>(&sums[0]),
                                      reinterpret_cast<char*>(&sums[1])};
  SerialParallel serial;
  ASSERT_TRUE(RunOne(SumOfTwo(DType::kI64), inputs, outputs, serial).ok());
  EXPECT_EQ(sums[0], terms[0] + 1);
  EXPECT_EQ(sums[1], terms[0] + 1);
}

// A type that nobody has thought of is refused, not summed as if it were another.
TEST(ExchangeTest, RefusesAnUnknownElementTypeAndLocalMoves) {
  int64_t tile = 0;
  const std::vector<const char*> inputs(2, reinterpret_cast<const char*>(&tile));
  const std::vector<char*> outputs(2, reinterpret_cast<char*>(&tile));
  SerialParallel serial;
  EXPECT_EQ(RunOne(SumOfTwo(static_cast<DType>(200)), inputs, outputs, serial).code(),
            absl::StatusCode::kUnimplemented);
  for (CollectiveKind kind : {CollectiveKind::kSlice, CollectiveKind::kLift}) {
    Exchange exchange = SumOfTwo(DType::kF32);
    exchange.kind = kind;
    EXPECT_EQ(RunOne(exchange, inputs, outputs, serial).code(), absl::StatusCode::kUnimplemented);
  }
}

}  // namespace
}  // namespace mgc
