// Recomputation changes what is kept, fusion what is one kernel, neither a value: local graphs
// before and after, on all ranks, in double.

#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/ir/check.h"
#include "graph/ir/op.h"
#include "gtest/gtest.h"
#include "passes/config/place_layers.h"
#include "passes/fold/layer_map.h"
#include "passes/graph/fuse.h"
#include "passes/graph/recompute.h"
#include "passes/plan/stage/bundles.h"
#include "passes/plan/stage/crossings.h"
#include "passes/plan/stage/parts.h"
#include "passes/plan/stage/shared_params.h"
#include "passes/plan/stage/value_places.h"
#include "tests/derivation/collective_table.h"
#include "tests/derivation/local_training.h"

namespace mgc {
namespace {

struct Case {
  const char* name;
  bool gpt;
  int64_t tp;
  int64_t dp;
  bool sp;
  int64_t zero;
};

TinyModel ModelOf(const Case& c) { return c.gpt ? TinyGpt() : TinyLlama(); }

// Values that forward makes in a layer and its own backward reads.
std::set<std::string> Kept(const Graph& local, int layer) {
  std::set<std::string> kept;
  for (const Node& node : local.nodes()) {
    if (node.phase != Phase::kBackward || node.layer != layer) continue;
    for (ValueId id : node.inputs) {
      const NodeId producer = local.value(id).producer;
      if (producer == kNone || local.node(producer).phase != Phase::kForward) continue;
      if (local.node(producer).layer == layer) kept.insert(local.value(id).name);
    }
  }
  return kept;
}

int64_t FrameBytes(const Graph& local, int layer) {
  const Parts parts(local);
  const LayerPlacement placement = PlaceLayers({local.num_layers(), 0, 1, 1, {}, {}}).placement;
  const LayerMap layers(local.num_layers());
  const Crossings crossings(parts, placement, layers, nullptr);
  const Bundles bundles(parts, crossings, layers, /*num_stages=*/1);
  const SharedParams shared(parts, crossings, placement);
  return ValuePlaces(parts, crossings, bundles, layers, shared).frame_bytes(layer);
}

class RewritesTest : public testing::TestWithParam<Case> {
 protected:
  RewritesTest()
      : model_(ModelOf(GetParam())),
        local_(LocalGraph(
            model_, ConfigOf(GetParam().tp, GetParam().dp, GetParam().sp, GetParam().zero))) {}

  // Largest relative error of a value a user sees.
  void ExpectEqual(const Graph& changed, double tolerance) const {
    const StepValues before = RunStep(model_, local_);
    const StepValues after = RunStep(model_, changed);
    ASSERT_EQ(before.values.size(), after.values.size());
    for (const auto& [name, value] : before.values) {
      EXPECT_LE(RelativeError(value, after.values.at(name)), tolerance) << name;
    }
  }

  const TinyModel model_;
  const Graph local_;
};

TEST_P(RewritesTest, RecomputationKeepsEveryBit) {
  for (RecomputeKind kind : {RecomputeKind::kFull, RecomputeKind::kSelective}) {
    SCOPED_TRACE(ToString(kind));
    const Graph again = Recompute(local_, kind);
    EXPECT_TRUE(CheckGraph(again).ok()) << CheckGraph(again);
    EXPECT_GT(again.nodes().size(), local_.nodes().size());
    ExpectEqual(again, 0);
  }
}

// A table's rows are added to its accumulator one by one, not as a sum: rounding may differ. It is
// the only place, and the same in every plan.
TEST_P(RewritesTest, FusionChangesNothingButRounding) {
  const Graph fused = Fuse(local_);
  EXPECT_LT(fused.nodes().size(), local_.nodes().size());
  EXPECT_TRUE(CheckGraph(fused).ok()) << CheckGraph(fused);
  ExpectEqual(fused, 1e-13);
  ExpectEqual(Fuse(Recompute(local_, RecomputeKind::kFull)), 1e-13);
}

// Nothing made inside a layer waits for its backward: the frame holds no more than the boundaries.
TEST_P(RewritesTest, FullRecomputationKeepsOnlyInputs) {
  EXPECT_FALSE(Kept(local_, 0).empty());
  const Graph full = Recompute(local_, RecomputeKind::kFull);
  for (int layer = 0; layer < model_.config.layers; ++layer) {
    EXPECT_EQ(Kept(full, layer), std::set<std::string>()) << layer;
    EXPECT_EQ(FrameBytes(full, layer), 0) << layer;
  }
}

TEST_P(RewritesTest, SelectiveRecomputationKeepsNothingOfAttention) {
  const Graph selective = Recompute(local_, RecomputeKind::kSelective);
  const std::set<std::string> before = Kept(local_, 0);
  std::set<std::string> gone = before;
  for (const std::string& name : Kept(selective, 0)) {
    EXPECT_EQ(before.count(name), 1u) << name;
    gone.erase(name);
  }
  EXPECT_EQ(gone, (std::set<std::string>{"layers.0.attention.attention",
                                         "layers.0.attention.attention.lse"}));
  EXPECT_LT(FrameBytes(selective, 0), FrameBytes(local_, 0));
}

// What is computed again communicates again, but for what is gathered already; what is not does
// not.
TEST_P(RewritesTest, RecomputationCommunicatesAsForward) {
  const Graph full = Recompute(local_, RecomputeKind::kFull);
  const Graph selective = Recompute(local_, RecomputeKind::kSelective);
  for (Phase phase : {Phase::kForward, Phase::kBackward}) {
    EXPECT_EQ(TableOf(CollectivesOf(selective, phase, 0)),
              TableOf(CollectivesOf(local_, phase, 0)));
  }
  EXPECT_EQ(TableOf(CollectivesOf(full, Phase::kForward, 0)),
            TableOf(CollectivesOf(local_, Phase::kForward, 0)));
  CollectiveTable expected = KindsOf(CollectivesOf(local_, Phase::kBackward, 0));
  // The layer's last reduction makes its output, which its backward does not read. What its forward
  // gathers backward gathers anyway.
  if (GetParam().tp > 1 && GetParam().sp) {
    expected["reduce-scatter tp"] += 1;
  } else if (GetParam().tp > 1) {
    expected["all-reduce tp"] += 1;
  }
  EXPECT_EQ(KindsOf(CollectivesOf(full, Phase::kBackward, 0)), expected);
}

INSTANTIATE_TEST_SUITE_P(Configs, RewritesTest,
                         testing::Values(Case{"gpt", true, 1, 1, false, 0},
                                         Case{"gpt_tp2", true, 2, 1, false, 0},
                                         Case{"gpt_tp2_dp2_sp_zero1", true, 2, 2, true, 1},
                                         Case{"llama", false, 1, 1, false, 0},
                                         Case{"llama_tp4_sp", false, 4, 1, true, 0},
                                         Case{"llama_tp2_dp2", false, 2, 2, false, 0}),
                         [](const testing::TestParamInfo<Case>& info) {
                           return std::string(info.param.name);
                         });

}  // namespace
}  // namespace mgc
