#include "passes/graph/shard/strategy.h"

#include <string>

#include "gtest/gtest.h"

namespace mgc {
namespace {

ParallelConfig Config(int64_t tp, int64_t dp, bool sp, int64_t zero) {
  ParallelConfig config;
  config.tp = tp;
  config.world_size = tp * dp;
  config.sequence_parallel = sp;
  config.zero = zero;
  return config;
}

Mesh MustMesh(const ParallelConfig& config, int64_t kv_heads) {
  const absl::StatusOr<Mesh> mesh = MeshOf(config, kv_heads);
  EXPECT_TRUE(mesh.ok()) << mesh.status();
  return mesh.ok() ? *mesh : Mesh();
}

TensorType Named(std::vector<std::string> names) {
  TensorType type;
  for (std::string& name : names) type.dims.push_back({8, std::move(name)});
  return type;
}

// What Megatron's sharding gives values of these dims.
std::string SeedOf(const ParallelConfig& config, int64_t kv_heads,
                   const std::vector<std::string>& dims) {
  const Mesh mesh = MustMesh(config, kv_heads);
  return ToString(MegatronStrategy(config, kv_heads, mesh).Seed(Named(dims)), mesh);
}

TEST(MeshOfTest, TpIsSplitWhereKvHeadsAreShared) {
  EXPECT_EQ(MustMesh(Config(4, 2, false, 0), 8).ToString(), "mesh @m [tp=4, dp=2]");
  EXPECT_EQ(MustMesh(Config(4, 2, false, 0), 4).ToString(), "mesh @m [tp=4, dp=2]");
  EXPECT_EQ(MustMesh(Config(8, 1, false, 0), 2).ToString(), "mesh @m [tp.1=4, tp.0=2]");
  EXPECT_EQ(MustMesh(Config(8, 2, false, 0), 4).ToString(), "mesh @m [tp.1=2, tp.0=4, dp=2]");
  EXPECT_EQ(MustMesh(Config(8, 1, false, 0), 1).ToString(), "mesh @m [tp=8]");  // all share it
  EXPECT_EQ(MustMesh(Config(6, 1, false, 0), 4).ToString(), "mesh @m [tp.1=3, tp.0=2]");
}

TEST(MeshOfTest, OrderIsTheConfigurations) {
  ParallelConfig config = Config(2, 2, false, 0);
  config.pp = 2;
  config.world_size = 8;
  EXPECT_EQ(MustMesh(config, 4).ToString(), "mesh @m [tp=2, dp=2, pp=2]");
  config.order = "tp-pp-dp";
  EXPECT_EQ(MustMesh(config, 4).ToString(), "mesh @m [tp=2, pp=2, dp=2]");
}

TEST(MegatronStrategyTest, RowsGiveAxes) {
  const ParallelConfig config = Config(4, 2, false, 0);
  EXPECT_EQ(SeedOf(config, 8, {"batch", "seq"}), "@m[dp,-]");
  EXPECT_EQ(SeedOf(config, 8, {"batch", "seq", "embed"}), "@m[dp,-,-]");
  EXPECT_EQ(SeedOf(config, 8, {"embed", "heads", "head_dim"}), "@m[-,tp,-]");
  EXPECT_EQ(SeedOf(config, 8, {"embed", "kv_heads", "head_dim"}), "@m[-,tp,-]");
  EXPECT_EQ(SeedOf(config, 8, {"mlp", "embed"}), "@m[tp,-]");
  EXPECT_EQ(SeedOf(config, 8, {"vocab", "embed"}), "@m[tp,-]");
  EXPECT_EQ(SeedOf(config, 8, {"embed"}), "@m[-]");
  EXPECT_EQ(SeedOf(config, 8, {"position", "embed"}), "@m[-,-]");
  EXPECT_EQ(SeedOf(config, 8, {"batch", "seq", "vocab"}), "@m[dp,-,tp]");
}

TEST(MegatronStrategyTest, SequenceParallelismIsOfTheStreamOnly) {
  const ParallelConfig config = Config(4, 2, true, 0);
  EXPECT_EQ(SeedOf(config, 8, {"batch", "seq", "embed"}), "@m[dp,tp,-]");
  EXPECT_EQ(SeedOf(config, 8, {"batch", "seq", "vocab"}), "@m[dp,-,tp]");
  EXPECT_EQ(SeedOf(config, 8, {"batch", "seq"}), "@m[dp,-]");
  EXPECT_EQ(SeedOf(config, 8, {"seq", "embed"}), "@m[-,-]");
}

TEST(MegatronStrategyTest, SharedKvHeadsTakeTheMajorSubAxis) {
  EXPECT_EQ(SeedOf(Config(8, 1, false, 0), 2, {"embed", "kv_heads", "head_dim"}), "@m[-,tp.0,-]");
  EXPECT_EQ(SeedOf(Config(8, 1, false, 0), 2, {"embed", "heads", "head_dim"}), "@m[-,tp.0*tp.1,-]");
  EXPECT_EQ(SeedOf(Config(8, 1, false, 0), 1, {"embed", "kv_heads", "head_dim"}), "@m[-,-,-]");
}

TEST(MegatronStrategyTest, ZeroStoresOverTheDataAxes) {
  const ParallelConfig config = Config(2, 2, false, 1);
  const Mesh mesh = MustMesh(config, 2);
  EXPECT_EQ(MegatronStrategy(config, 2, mesh).storage_axes, mesh.Find("dp").AsSet());
  EXPECT_TRUE(MegatronStrategy(Config(2, 2, false, 0), 2, mesh).storage_axes.empty());
}

TEST(StrategyTest, AnAxisServesOnce) {
  const Mesh mesh = MustMesh(Config(4, 2, false, 0), 4);
  const AxisList tp = mesh.Find("tp");
  const AxisList dp = mesh.Find("dp");
  Strategy strategy;
  strategy.rows.push_back({{}, {{"a", tp}, {"b", tp}}});
  strategy.rows.push_back({{"b", "c"}, {{"b", dp}, {"c", dp}}});
  strategy.rows.push_back({{}, {{"c", tp}}});
  const auto seed = [&](const std::vector<std::string>& dims) {
    return ToString(strategy.Seed(Named(dims)), mesh);
  };
  EXPECT_EQ(seed({"a", "b"}), "@m[tp,-]");   // earlier rules first
  EXPECT_EQ(seed({"b", "a"}), "@m[-,tp]");   // of rules, not of dims
  EXPECT_EQ(seed({"b", "c"}), "@m[tp,dp]");  // a dim keeps what an earlier row gave it
  EXPECT_EQ(seed({"c", "b"}), "@m[-,tp]");   // a pattern names all dims, in order
  EXPECT_EQ(seed({"a", "a"}), "@m[tp,-]");
}

TEST(StrategyTest, HomesOfTheirOwn) {
  const Strategy strategy;
  EXPECT_TRUE(strategy.HasHome(Named({"batch", "seq", "embed"})));
  EXPECT_FALSE(strategy.HasHome(Named({"batch", "seq", "vocab"})));
  EXPECT_FALSE(strategy.HasHome(Named({"batch", "seq"})));
  EXPECT_FALSE(strategy.HasHome(Named({"batch", "seq", "embed", "embed"})));
}

}  // namespace
}  // namespace mgc
