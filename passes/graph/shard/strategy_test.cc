#include "passes/graph/shard/strategy.h"

#include <string>

#include "gtest/gtest.h"
#include "passes/config/strategy_text.h"

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

MeshStrategy MustBind(const StrategySpec& spec, const ParallelConfig& config, int64_t kv_heads) {
  const absl::StatusOr<MeshStrategy> bound = BindStrategy(spec, config, {{"kv_heads", kv_heads}});
  EXPECT_TRUE(bound.ok()) << bound.status();
  return bound.ok() ? *bound : MeshStrategy();
}

Mesh MustMesh(const ParallelConfig& config, int64_t kv_heads) {
  return MustBind(DefaultStrategy(), config, kv_heads).mesh;
}

StrategySpec MustParse(const char* text) {
  const absl::StatusOr<StrategySpec> spec = ParseStrategy(text, "mine.mgc");
  EXPECT_TRUE(spec.ok()) << spec.status();
  return spec.ok() ? *spec : StrategySpec();
}

TensorType Named(std::vector<std::string> names) {
  TensorType type;
  for (std::string& name : names) type.dims.push_back({8, std::move(name)});
  return type;
}

// What Megatron's sharding gives values of these dims.
std::string SeedOf(const ParallelConfig& config, int64_t kv_heads,
                   const std::vector<std::string>& dims) {
  const MeshStrategy bound = MustBind(DefaultStrategy(), config, kv_heads);
  return ToString(bound.strategy.Seed(Named(dims)), bound.mesh);
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
  ParallelConfig config = Config(2, 2, false, 1);
  const MeshStrategy zero = MustBind(DefaultStrategy(), config, 2);
  EXPECT_EQ(zero.strategy.StorageOf("any"), zero.mesh.Find("dp").AsSet());
  config.cp = 2;
  config.world_size = 8;
  const MeshStrategy context = MustBind(DefaultStrategy(), config, 2);
  EXPECT_EQ(context.strategy.StorageOf("any"),
            context.mesh.Find("dp").AsSet() | context.mesh.Find("cp").AsSet());
  config.zero = 0;
  EXPECT_TRUE(MustBind(DefaultStrategy(), config, 2).strategy.StorageOf("any").empty());
}

TEST(MegatronStrategyTest, ContextParallelismCutsEverySequence) {
  ParallelConfig config = Config(2, 2, false, 0);
  config.cp = 2;
  config.world_size = 8;
  EXPECT_EQ(SeedOf(config, 8, {"batch", "seq"}), "@m[dp,cp]");
  EXPECT_EQ(SeedOf(config, 8, {"batch", "seq", "embed"}), "@m[dp,cp,-]");
  EXPECT_EQ(SeedOf(config, 8, {"batch", "seq", "vocab"}), "@m[dp,cp,tp]");
  config.sequence_parallel = true;
  EXPECT_EQ(SeedOf(config, 8, {"batch", "seq"}), "@m[dp,cp]");
  EXPECT_EQ(SeedOf(config, 8, {"batch", "seq", "embed"}), "@m[dp,cp*tp,-]");
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
  const Strategy strategy = MustBind(DefaultStrategy(), Config(2, 1, false, 0), 2).strategy;
  EXPECT_TRUE(strategy.HasHome(Named({"batch", "seq", "embed"})));
  EXPECT_FALSE(strategy.HasHome(Named({"batch", "seq", "vocab"})));
  EXPECT_FALSE(strategy.HasHome(Named({"batch", "seq"})));
  EXPECT_FALSE(strategy.HasHome(Named({"batch", "seq", "embed", "embed"})));
}

// The residual row stands first: behind `*: seq -> cp` its dim would have axes already.
TEST(StrategyTest, RowsOfSequenceAndContextParallelismCompose) {
  ParallelConfig config = Config(2, 1, true, 0);
  config.cp = 2;
  config.world_size = 4;
  const char* first = R"(strategy @first {
    row (batch, seq, embed) home when sequence_parallel { seq -> cp*tp }
    row * { seq -> cp }
  })";
  const char* last = R"(strategy @last {
    row * { seq -> cp }
    row (batch, seq, embed) home when sequence_parallel { seq -> cp*tp }
  })";
  const auto seed = [&](const char* text, const std::vector<std::string>& dims) {
    const MeshStrategy bound = MustBind(MustParse(text), config, 2);
    return ToString(bound.strategy.Seed(Named(dims)), bound.mesh);
  };
  EXPECT_EQ(seed(first, {"batch", "seq", "embed"}), "@m[-,cp*tp,-]");
  EXPECT_EQ(seed(first, {"batch", "seq"}), "@m[-,cp]");
  EXPECT_EQ(seed(last, {"batch", "seq", "embed"}), "@m[-,cp,-]");
}

TEST(StrategyTest, ScopesAndWholeDims) {
  const MeshStrategy bound = MustBind(MustParse(R"(strategy @mine {
    row * in "layers.0.*" { mlp -> - }
    row (*, mlp) in "*.up" { mlp -> dp }
    row * { mlp -> tp }
    store states in "layers.*" -> dp
  })"),
                                      Config(2, 2, false, 0), 2);
  const auto seed = [&](const char* name, const char* origin) {
    return ToString(bound.strategy.Seed(Named({"embed", "mlp"}), {name, origin}), bound.mesh);
  };
  EXPECT_EQ(seed("layers.0.mlp.up", ""), "@m[-,-]");
  EXPECT_EQ(seed("layers.1.mlp.up", ""), "@m[-,dp]");
  EXPECT_EQ(seed("layers.1.mlp.gate", ""), "@m[-,tp]");
  EXPECT_EQ(seed("other", "layers.0.mlp"), "@m[-,-]");
  EXPECT_EQ(bound.strategy.StorageOf("layers.1.mlp.up"), bound.mesh.Find("dp").AsSet());
  EXPECT_TRUE(bound.strategy.StorageOf("head").empty());
}

// A condition that is not fulfilled takes its row away, axes of one rank take nothing.
TEST(StrategyTest, RowsThatDoNotHold) {
  const StrategySpec spec = MustParse(R"(strategy @mine {
    row * when zero { mlp -> tp }
    row * { mlp -> cp }
    row * { mlp -> dp }
  })");
  const MeshStrategy bound = MustBind(spec, Config(2, 2, false, 0), 2);
  EXPECT_EQ(ToString(bound.strategy.Seed(Named({"mlp"})), bound.mesh), "@m[dp]");
  const MeshStrategy zero = MustBind(spec, Config(2, 2, false, 1), 2);
  EXPECT_EQ(ToString(zero.strategy.Seed(Named({"mlp"})), zero.mesh), "@m[tp]");
}

TEST(StrategyTest, GathersAreTakenAsSaid) {
  const Strategy strategy = MustBind(DefaultStrategy(), Config(2, 1, false, 0), 2).strategy;
  EXPECT_EQ(strategy.TakenGather("seq"), GatherTaken::kSilent);
  EXPECT_EQ(strategy.TakenGather("kv_heads"), GatherTaken::kError);
  EXPECT_EQ(strategy.TakenGather("mlp"), GatherTaken::kNote);
}

}  // namespace
}  // namespace mgc
