// The collectives that come out of shardings, by phase and place, with their bytes: equal to closed
// formulas in b, s, h, t. What the sharding rules are for is that exactly these come out.

#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/derivation/collective_table.h"
#include "tests/derivation/local_training.h"

namespace mgc {
namespace {

constexpr int64_t kF32 = 4;  // bytes
constexpr int64_t kF64 = 8;

struct Case {
  const char* name;
  ModelFamily family;
  bool tied;
  int64_t kv_heads;
  int64_t tp;
  int64_t dp;
  int64_t pp;
  bool sp;
  int64_t zero;
};

TinyModel ModelOf(const Case& c) {
  TinyModel model = c.family == ModelFamily::kGpt2 ? TinyGpt() : TinyLlama();
  model.config.tie_embeddings = c.tied;
  model.config.kv_heads = c.kv_heads;
  return model;
}

ParallelConfig ConfigOfCase(const Case& c) {
  ParallelConfig parallel = ConfigOf(c.tp, c.dp, c.sp, c.zero);
  parallel.pp = c.pp;
  parallel.world_size *= c.pp;
  return parallel;
}

// A parameter as the formulas see it.
struct ParamSize {
  std::string name;
  int64_t local = 0;    // elements of a rank's tile
  int64_t shared = 1;   // ranks of tp that hold the same tile and each owe a part of its gradient
  std::string sharing;  // their group
};

class Formulas {
 public:
  explicit Formulas(const Case& c) : c_(c), model_(ModelOf(c)) {
    const ModelConfig& m = model_.config;
    const int64_t b = model_.batch / c.dp;
    stream_ = b * model_.seq * m.hidden * kF32;
    small_ = b * model_.seq * kF32;
    kv_ = b * model_.seq * m.kv_heads * m.head_dim * kF32;
  }

  CollectiveTable Embedding(Phase phase) const {
    CollectiveTable table;
    if (c_.tp == 1) return table;
    if (phase == Phase::kForward) Put(&table, c_.sp ? "reduce-scatter" : "all-reduce", stream_, 1);
    if (phase == Phase::kBackward && c_.sp) Put(&table, "all-gather", stream_, 1);  // dY
    return table;
  }

  CollectiveTable Layer(Phase phase) const {
    CollectiveTable table;
    if (c_.tp == 1) return table;
    if (!c_.sp) {
      Put(&table, "all-reduce", stream_, 2);
      return table;
    }
    Put(&table, "all-gather", stream_, phase == Phase::kForward ? 2 : 4);
    Put(&table, "reduce-scatter", stream_, 2);
    // One kv head for all: k and v are made on sequence shards and gathered, in backward again.
    if (c_.kv_heads == 1) Put(&table, "all-gather", kv_, 2);
    return table;
  }

  CollectiveTable Head(Phase phase) const {
    CollectiveTable table;
    if (c_.tp == 1) return table;
    if (phase == Phase::kForward) {
      Put(&table, "all-reduce-max", small_, 1);
      Put(&table, "all-reduce", small_, 2);
      if (c_.sp) Put(&table, "all-gather", stream_, 1);
    } else if (c_.sp) {
      Put(&table, "reduce-scatter", stream_, 1);
      Put(&table, "all-gather", stream_, 1);
    } else {
      Put(&table, "all-reduce", stream_, 1);
    }
    return table;
  }

  // Parameters stored in pieces are gathered, the tied table for the head again.
  CollectiveTable Prepare() const {
    CollectiveTable table;
    if (!Stored()) return table;
    for (const ParamSize& param : Params()) {
      const bool twice = c_.tied && param.name == "word";
      table[RowOf("all-gather", "dp", param.local * kF32)] += twice ? 2 : 1;
    }
    return table;
  }

  CollectiveTable Update() const {
    CollectiveTable table;
    const std::vector<ParamSize> params = Params();
    for (const ParamSize& param : params) AddGradient(param, &table);
    const std::string count = Join({c_.dp > 1 ? "dp" : "", c_.pp > 1 ? "pp" : ""});
    if (!count.empty()) ++table[RowOf("all-reduce", count, 2 * kF64)];  // loss and tokens
    const std::string norm =
        Join({c_.tp > 1 ? "tp" : "", Stored() ? "dp" : "", c_.pp > 1 ? "pp" : ""});
    const int64_t entries = static_cast<int64_t>(params.size());
    if (!norm.empty()) ++table[RowOf("all-reduce", norm, entries * kF64)];
    return table;
  }

 private:
  static void Put(CollectiveTable* table, const char* kind, int64_t bytes, int count) {
    (*table)[RowOf(kind, "tp", bytes)] += count;
  }

  static std::string Join(const std::vector<std::string>& names) {
    std::string joined;
    for (const std::string& name : names) {
      if (!name.empty()) absl::StrAppend(&joined, joined.empty() ? "" : "-", name);
    }
    return joined;
  }

  bool Stored() const { return c_.zero == 1 && c_.dp > 1; }

  void AddGradient(const ParamSize& param, CollectiveTable* table) const {
    const int64_t bytes = param.local * kF32;
    const std::string shared = param.shared > 1 ? param.sharing : "";
    if (!Stored()) {
      const std::string group = Join({shared, c_.dp > 1 ? "dp" : ""});
      if (!group.empty()) ++(*table)[RowOf("all-reduce", group, bytes)];
      return;
    }
    const int64_t piece = (param.local + c_.dp - 1) / c_.dp * kF32;
    ++(*table)[RowOf("reduce-scatter", "dp", bytes)];
    if (!shared.empty()) ++(*table)[RowOf("all-reduce", shared, piece)];
  }

  std::vector<ParamSize> Params() const {
    const ModelConfig& m = model_.config;
    const bool gpt = c_.family == ModelFamily::kGpt2;
    const int64_t h = m.hidden;
    const int64_t rows = (m.vocab + c_.tp - 1) / c_.tp;
    std::vector<ParamSize> params = {Cut("word", rows * h)};
    if (gpt) params.push_back(Whole("position", m.max_positions * h));
    for (int64_t layer = 0; layer < m.layers; ++layer) AddLayer(gpt, &params);
    AddNorm(gpt, &params);
    if (!c_.tied) params.push_back(Cut("head", rows * h));
    return params;
  }

  void AddLayer(bool gpt, std::vector<ParamSize>* params) const {
    const ModelConfig& m = model_.config;
    const int64_t h = m.hidden;
    const int64_t heads = m.heads * m.head_dim / c_.tp;
    const int64_t mlp = m.ffn / c_.tp;
    AddNorm(gpt, params);
    params->push_back(Cut("q", h * heads));
    params->push_back(Kv(h));
    params->push_back(Kv(h));
    params->push_back(Cut("out", heads * h));
    AddNorm(gpt, params);
    params->push_back(Cut("up", h * mlp));
    params->push_back(Cut("down", mlp * h));
    if (!gpt) params->push_back(Cut("gate", h * mlp));
    if (!gpt) return;
    params->push_back(Cut("q.bias", heads));
    params->push_back(Kv(1));
    params->push_back(Kv(1));
    params->push_back(Whole("out.bias", h));
    params->push_back(Cut("up.bias", mlp));
    params->push_back(Whole("down.bias", h));
  }

  void AddNorm(bool gpt, std::vector<ParamSize>* params) const {
    params->push_back(Whole("norm", model_.config.hidden));
    if (gpt) params->push_back(Whole("norm.bias", model_.config.hidden));
  }

  static ParamSize Cut(const char* name, int64_t local) { return {name, local, 1, ""}; }
  // Held whole by all ranks of tp; under sequence parallelism each sees its tokens only.
  ParamSize Whole(const char* name, int64_t elements) const {
    return {name, elements, c_.sp ? c_.tp : 1, "tp"};
  }
  // A kv head that several ranks of tp use gets a part of its gradient from each of them.
  ParamSize Kv(int64_t in) const {
    const int64_t cut = std::gcd(c_.kv_heads, c_.tp);
    const int64_t local = in * c_.kv_heads / cut * model_.config.head_dim;
    return {"kv", local, c_.tp / cut, cut == 1 ? "tp" : "tp.1"};
  }

  const Case c_;
  const TinyModel model_;
  int64_t stream_;  // bytes of S = b s h elements
  int64_t small_;   // of [b, s]
  int64_t kv_;      // of all kv heads' keys
};

class CollectivesTest : public testing::TestWithParam<Case> {};

TEST_P(CollectivesTest, AreThoseOfTheFormulas) {
  const Case& c = GetParam();
  const TinyModel model = ModelOf(c);
  const Graph local = LocalGraph(model, ConfigOfCase(c));
  const Formulas formulas(c);
  const int head = static_cast<int>(model.config.layers);
  for (Phase phase : {Phase::kForward, Phase::kBackward}) {
    SCOPED_TRACE(NameOf(phase));
    EXPECT_EQ(TableOf(CollectivesOf(local, phase, kEmbeddingLayer)), formulas.Embedding(phase));
    for (int layer = 0; layer < head; ++layer) {
      EXPECT_EQ(TableOf(CollectivesOf(local, phase, layer)), formulas.Layer(phase)) << layer;
    }
    EXPECT_EQ(TableOf(CollectivesOf(local, phase, head)), formulas.Head(phase));
  }
  EXPECT_EQ(TableOf(CollectivesOf(local, Phase::kPrepare, kNoLayer)), formulas.Prepare());
  EXPECT_EQ(TableOf(CollectivesOf(local, Phase::kUpdate, kNoLayer)), formulas.Update());
}

constexpr ModelFamily kGpt = ModelFamily::kGpt2;
constexpr ModelFamily kLlama = ModelFamily::kLlama;

INSTANTIATE_TEST_SUITE_P(
    Configs, CollectivesTest,
    testing::Values(  // family, tied, kv heads, tp, dp, pp, sp, zero
        Case{"gpt_one_rank", kGpt, true, 4, 1, 1, 1, false, 0},
        Case{"gpt_tp2", kGpt, true, 4, 2, 1, 1, false, 0},
        Case{"gpt_tp4", kGpt, true, 4, 4, 1, 1, false, 0},
        Case{"gpt_tp2_sp", kGpt, true, 4, 2, 1, 1, true, 0},
        Case{"gpt_tp4_sp", kGpt, true, 4, 4, 1, 1, true, 0},
        Case{"gpt_untied_tp2", kGpt, false, 4, 2, 1, 1, false, 0},
        Case{"gpt_untied_tp2_sp", kGpt, false, 4, 2, 1, 1, true, 0},
        Case{"gpt_dp2", kGpt, true, 4, 1, 2, 1, false, 0},
        Case{"gpt_dp2_zero1", kGpt, true, 4, 1, 2, 1, false, 1},
        Case{"gpt_dp4_zero1", kGpt, true, 4, 1, 4, 1, false, 1},
        Case{"gpt_tp2_dp2", kGpt, true, 4, 2, 2, 1, false, 0},
        Case{"gpt_tp2_dp2_zero1", kGpt, true, 4, 2, 2, 1, false, 1},
        Case{"gpt_tp2_dp2_sp", kGpt, true, 4, 2, 2, 1, true, 0},
        Case{"gpt_tp4_dp4_sp_zero1", kGpt, true, 4, 4, 4, 1, true, 1},
        Case{"gpt_pp2", kGpt, true, 4, 1, 1, 2, false, 0},
        Case{"gpt_tp2_dp2_pp2_sp_zero1", kGpt, true, 4, 2, 2, 2, true, 1},
        Case{"llama_tp2", kLlama, false, 2, 2, 1, 1, false, 0},
        Case{"llama_tp2_sp", kLlama, false, 2, 2, 1, 1, true, 0},
        Case{"llama_tied_tp2_sp", kLlama, true, 2, 2, 1, 1, true, 0},
        Case{"llama_kv2_tp4", kLlama, false, 2, 4, 1, 1, false, 0},
        Case{"llama_kv2_tp4_sp", kLlama, false, 2, 4, 1, 1, true, 0},
        Case{"llama_kv2_tp8_sp", kLlama, false, 2, 8, 1, 1, true, 0},
        Case{"llama_kv4_tp8_dp2_sp_zero1", kLlama, false, 4, 8, 2, 1, true, 1},
        Case{"llama_kv2_tp4_dp2", kLlama, false, 2, 4, 2, 1, false, 0},
        Case{"llama_mqa_tp4", kLlama, false, 1, 4, 1, 1, false, 0},
        Case{"llama_mqa_tp4_sp", kLlama, false, 1, 4, 1, 1, true, 0},
        Case{"llama_mqa_tp4_dp2_sp_zero1", kLlama, false, 1, 4, 2, 1, true, 1},
        Case{"llama_dp4", kLlama, false, 2, 1, 4, 1, false, 0},
        Case{"llama_tp2_dp2_pp2_sp_zero1", kLlama, false, 2, 2, 2, 2, true, 1}),
    [](const testing::TestParamInfo<Case>& info) { return std::string(info.param.name); });

// f and g of the Megatron-LM paper are conjugate: what one phase reduces, the other gathers.
TEST(LabelTest, LayersCarryFAndG) {
  const auto labels = [](bool sp, Phase phase) {
    CollectiveTable table;
    const Graph local = LocalGraph(TinyGpt(), ConfigOf(2, 1, sp, 0));
    for (const CollectiveEntry& entry : CollectivesOf(local, phase, 0)) {
      ++table[absl::StrCat(entry.kind, " ", entry.label)];
    }
    return table;
  };
  EXPECT_EQ(labels(false, Phase::kForward), (CollectiveTable{{"all-reduce g", 2}}));
  EXPECT_EQ(labels(false, Phase::kBackward), (CollectiveTable{{"all-reduce f", 2}}));
  EXPECT_EQ(labels(true, Phase::kForward),
            (CollectiveTable{{"all-gather f", 2}, {"reduce-scatter g", 2}}));
  EXPECT_EQ(labels(true, Phase::kBackward),
            (CollectiveTable{{"all-gather f", 2}, {"all-gather g", 2}, {"reduce-scatter f", 2}}));
}

// Bytes a rank puts on the wire per layer and micro-batch by ring algorithms, in units of
// S (t - 1) / t: 4 each way without sequence parallelism, 4 and 6 with it.
TEST(VolumeTest, OfALayerIsMegatrons) {
  const auto volume = [](bool sp, Phase phase) {
    int64_t units = 0;
    const Graph local = LocalGraph(TinyGpt(), ConfigOf(4, 1, sp, 0));
    for (const CollectiveEntry& entry : CollectivesOf(local, phase, 0)) {
      units += absl::StartsWith(entry.kind, "all-reduce") ? 2 : 1;
    }
    return units;
  };
  EXPECT_EQ(volume(false, Phase::kForward), 4);
  EXPECT_EQ(volume(false, Phase::kBackward), 4);
  EXPECT_EQ(volume(true, Phase::kForward), 4);
  EXPECT_EQ(volume(true, Phase::kBackward), 6);
}

}  // namespace
}  // namespace mgc
