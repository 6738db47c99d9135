// Context parallelism with gathered keys and values follows from a row `*: seq -> cp`: the
// collectives that come out.

#include <algorithm>
#include <string>

#include "gtest/gtest.h"
#include "tests/derivation/collective_table.h"
#include "tests/derivation/local_training.h"

namespace mgc {
namespace {

ParallelConfig ContextConfig(int64_t cp, ParallelConfig config) {
  config.cp = cp;
  config.world_size *= cp;
  return config;
}

TinyModel LlamaOf(int64_t kv_heads) {
  TinyModel model = TinyLlama();
  model.config.kv_heads = kv_heads;
  return model;
}

void ExpectLayer(const Graph& local, const CollectiveTable& forward,
                 const CollectiveTable& backward) {
  EXPECT_EQ(KindsOf(CollectivesOf(local, Phase::kForward, 0)), forward);
  EXPECT_EQ(KindsOf(CollectivesOf(local, Phase::kBackward, 0)), backward);
}

TEST(ContextParallelTest, ALayerGathersKeysAndValues) {
  for (const TinyModel& model : {TinyGpt(), TinyLlama(), LlamaOf(1)}) {
    for (const int64_t cp : {2, 4}) {
      ExpectLayer(LocalGraph(model, ContextConfig(cp, ConfigOf(1, 2, false, 0))),
                  {{"all-gather cp", 2}}, {{"all-gather cp", 2}, {"reduce-scatter cp", 2}});
    }
  }
}

TEST(ContextParallelTest, BesideTensorAndSequenceParallelism) {
  for (const TinyModel& model : {TinyGpt(), TinyLlama()}) {
    ExpectLayer(LocalGraph(model, ContextConfig(2, ConfigOf(2, 1, false, 0))),
                {{"all-gather cp", 2}, {"all-reduce tp", 2}},
                {{"all-gather cp", 2}, {"all-reduce tp", 2}, {"reduce-scatter cp", 2}});
    ExpectLayer(LocalGraph(model, ContextConfig(2, ConfigOf(2, 1, true, 0))),
                {{"all-gather cp", 2}, {"all-gather tp", 2}, {"reduce-scatter tp", 2}},
                {{"all-gather cp", 2},
                 {"all-gather tp", 4},
                 {"reduce-scatter cp", 2},
                 {"reduce-scatter tp", 2}});
  }
}

// A gradient that stays owed over tp.1 is still paid over cp, axis by axis.
TEST(ContextParallelTest, BesideSharedKvHeads) {
  ExpectLayer(LocalGraph(LlamaOf(2), ContextConfig(2, ConfigOf(4, 1, false, 0))),
              {{"all-gather cp", 2}, {"all-reduce tp", 2}},
              {{"all-gather cp", 2}, {"all-reduce tp", 2}, {"reduce-scatter cp", 2}});
}

// Positions are looked up, not added from a table cut otherwise: nothing moves over cp but what is
// owed there at the end of the step.
TEST(ContextParallelTest, EmbeddingAndHeadMoveNothingOverCp) {
  for (const TinyModel& model : {TinyGpt(), TinyLlama()}) {
    const Graph local = LocalGraph(model, ContextConfig(2, ConfigOf(1, 1, false, 0)));
    for (const int layer : {kEmbeddingLayer, local.num_layers()}) {
      for (const Phase phase : {Phase::kForward, Phase::kBackward}) {
        EXPECT_EQ(KindsOf(CollectivesOf(local, phase, layer)), CollectiveTable()) << layer;
      }
    }
  }
}

TEST(ContextParallelTest, GradientsAreOwedOverDataAndContext) {
  const auto kinds = [](int64_t zero, Phase phase) {
    const Graph local = LocalGraph(TinyGpt(), ContextConfig(2, ConfigOf(1, 2, false, zero)));
    return KindsOf(CollectivesOf(local, phase, 0));
  };
  const CollectiveTable plain = kinds(0, Phase::kUpdate);
  const CollectiveTable zero = kinds(1, Phase::kUpdate);
  const CollectiveTable copies = kinds(1, Phase::kPrepare);
  EXPECT_GT(plain.at("all-reduce cp-dp"), 30);  // a gradient each, loss and tokens
  EXPECT_EQ(plain.size(), 1u);
  const int params = zero.at("reduce-scatter cp-dp");
  EXPECT_EQ(zero.at("all-reduce cp-dp"), 2);  // loss and tokens; the norm
  EXPECT_EQ(zero.size(), 2u);
  // The tied table once more, for the head.
  EXPECT_EQ(copies, (CollectiveTable{{"all-gather cp-dp", params + 1}}));
}

TEST(ContextParallelTest, CollectivesSayWhatTheyAreFor) {
  const Graph local = LocalGraph(TinyGpt(), ContextConfig(2, ConfigOf(2, 1, true, 0)));
  for (const CollectiveEntry& entry : CollectivesOfPasses(local)) {
    EXPECT_EQ(entry.label == "context", entry.group == "cp") << entry.name;
  }
}

}  // namespace
}  // namespace mgc
