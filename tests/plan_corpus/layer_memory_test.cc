// What a layer keeps between forward and backward of a micro-batch: no more than the formula of
// Korthikanti et al., "Reducing Activation Recomputation in Large Transformer Models" (arXiv
// 2205.05198), for 16-bit values, sequence parallelism and selective recomputation.

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/plan_forms/corpus.h"

namespace mgc {
namespace {

// s, b, h and t of the formula.
struct Sizes {
  std::string model;
  int64_t seq = 0;
  int64_t embed = 0;
  int64_t tp = 1;
  int64_t pp = 1;
};

// Where the frame of each layer's forward begins in that of a chunk.
std::vector<int64_t> LayerFrames(const Plan& plan, const Chunk& chunk) {
  std::vector<int64_t> begins;
  for (const Call& call : chunk.forward) {
    const Segment& segment = plan.segments[static_cast<size_t>(call.segment)];
    for (size_t f = 0; f < segment.formals.size(); ++f) {
      const bool layer =
          segment.name == "layer.forward" && call.bindings[f].base == BaseKind::kFrame;
      if (layer && segment.formals[f].region == Region::kFrame) {
        begins.push_back(call.bindings[f].offset);
      }
    }
  }
  return begins;
}

TEST(LayerMemoryTest, ALayerKeepsNoMoreThanTheFormulaSays) {
  constexpr int64_t kBytesPerElement = 34;
  for (const Sizes& sizes :
       {Sizes{"gpt2-124m", 1024, 768, 2, 1}, Sizes{"gpt2-124m", 1024, 768, 4, 1},
        Sizes{"gpt3-175b", 2048, 12288, 8, 8}}) {
    PlanCase plan_case;
    plan_case.model = sizes.model;
    plan_case.tp = sizes.tp;
    plan_case.pp = sizes.pp;
    plan_case.micro_batches = sizes.pp;
    plan_case.sequence_parallel = true;
    plan_case.recompute = RecomputeKind::kSelective;
    plan_case.bf16 = true;
    const Plan plan = CompilePlanCase(plan_case);
    ASSERT_EQ(plan.micro_batch_size, 1);
    ASSERT_EQ(plan.seq_length, sizes.seq);
    const int64_t most = kBytesPerElement * sizes.seq * sizes.embed / sizes.tp;
    int64_t layers = 0;
    for (const PlanClass& plan_class : plan.classes) {
      const std::vector<int64_t> frames = LayerFrames(plan, plan_class.chunks[0]);
      for (size_t i = 1; i < frames.size(); ++i, ++layers) {
        EXPECT_LE(frames[i] - frames[i - 1], most) << sizes.model << ", tp " << sizes.tp;
        EXPECT_GE(frames[i] - frames[i - 1], most / 2) << "not all that the layer keeps";
      }
    }
    EXPECT_GE(layers, 11) << sizes.model;
  }
}

}  // namespace
}  // namespace mgc
