// Random legal configurations of tiny models compile, always to the same plan, whose parts fit
// together: order, memory, ownership of parameters.

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "frontends/model_config.h"
#include "frontends/models.h"
#include "graph/plan/plan_check.h"
#include "graph/plan/text/plan_text.h"
#include "graph/types/machine.h"
#include "graph/verify/memory/memory.h"
#include "graph/verify/order/order.h"
#include "gtest/gtest.h"
#include "passes/compile.h"
#include "passes/config/check_config.h"

namespace mgc {
namespace {

constexpr uint32_t kSeed = 4;
constexpr int kPlans = 320;

struct GridCase {
  std::string model;
  ModelConfig config;
  ParallelConfig parallel;
  int64_t vocab_multiple = 1;
};

std::string NameOf(const GridCase& c) {
  const ParallelConfig& p = c.parallel;
  return absl::StrCat(
      c.model, " layers ", c.config.layers, " kv ", c.config.kv_heads, " vocab ", c.config.vocab,
      "%", c.vocab_multiple, c.config.tie_embeddings ? " tied" : " untied", " world ", p.world_size,
      " tp ", p.tp, " pp ", p.pp, " vp ", p.vp, p.sequence_parallel ? " sp" : "", " mbs ",
      p.micro_batch_size, " gbs ", p.global_batch_size, " ", ToString(p.schedule), " recompute ",
      ToString(p.recompute), " zero ", p.zero, " order ", p.order, " layout ",
      p.layout.layout.value_or(absl::StrCat(p.layout.decoder_first_layers.value_or(-1), "/",
                                            p.layout.account_for_embedding, "/",
                                            p.layout.account_for_loss)));
}

class RandomCases {
 public:
  explicit RandomCases(uint32_t seed) : random_(seed) {
    for (const ModelPreset& preset : ModelPresets()) {
      if (absl::EndsWith(preset.name, "-tiny")) models_.emplace_back(preset.name);
    }
  }

  GridCase Next() {
    GridCase c;
    c.model = models_[random_() % models_.size()];
    c.config = *LoadModelPreset(c.model);
    c.config.layers = Draw({1, 2, 3, 4, 5, 7});
    c.config.vocab = Draw({257, 256, 5, 61});
    c.config.tie_embeddings = Draw({0, 1}) == 1;
    if (c.config.kv_heads != c.config.heads) c.config.kv_heads = Draw({1, 2, 4, 8});
    c.vocab_multiple = Draw({1, 1, 8});
    ParallelConfig& p = c.parallel;
    p.tp = Draw({1, 1, 2, 4, 8});
    p.pp = Draw({1, 2, 2, 3, 4});
    p.schedule = static_cast<ScheduleKind>(Draw({0, 1, 2}));
    p.vp = p.schedule == ScheduleKind::kInterleaved ? Draw({1, 2, 3}) : 1;
    const int64_t dp = Draw({1, 1, 2, 3, 4});
    p.world_size = p.tp * p.pp * dp;
    p.sequence_parallel = p.tp > 1 && Draw({0, 1}) == 1;
    p.micro_batch_size = Draw({1, 2});
    p.global_batch_size = p.micro_batch_size * dp * Draw({1, 2, 3, 4, 5, 8});
    p.seq_length = 16;
    p.recompute = static_cast<RecomputeKind>(Draw({0, 1, 2}));
    p.zero = Draw({0, 1});
    if (Draw({0, 0, 1}) == 1) p.order = "tp-cp-ep-pp-dp";
    DrawLayout(c.config.layers, &p);
    return c;
  }

 private:
  int64_t Draw(const std::vector<int64_t>& choices) { return choices[random_() % choices.size()]; }

  void DrawLayout(int64_t layers, ParallelConfig* p) {
    switch (Draw({0, 0, 0, 1, 2, 3, 4})) {
      case 1:
        p->layout.account_for_embedding = true;
        break;
      case 2:
        p->layout.account_for_loss = true;
        break;
      case 3:
        p->layout.decoder_first_layers = 1;
        break;
      case 4: {  // all layers on the first stage, or on the last but one
        std::vector<std::string> stages(static_cast<size_t>(p->pp * p->vp));
        stages.front() = "E";
        stages[Draw({0, 1}) == 0 || stages.size() < 3 ? 0 : stages.size() - 2] +=
            absl::StrCat("t*", layers);
        stages.back() += "L";
        p->layout.layout = absl::StrJoin(stages, "|");
        break;
      }
      default:
        break;
    }
  }

  std::mt19937 random_;
  std::vector<std::string> models_;  // the tiny presets: all families
};

absl::StatusOr<Plan> CompileCase(const GridCase& c) {
  ModelOptions options;
  options.vocab_multiple = c.vocab_multiple;
  const int64_t batch = c.parallel.micro_batch_size * DataParallelSize(c.parallel);
  absl::StatusOr<Graph> model = BuildModel(c.config, batch, c.parallel.seq_length, options);
  if (!model.ok()) return model.status();
  CompileOptions compile;
  compile.parallel = c.parallel;
  compile.machine = *FindMachinePreset("cpu-threads");
  return Compile(*model, DimsOf(c.config), compile);
}

struct Region {
  std::string name;
  int64_t begin = 0;
  int64_t end = 0;
};

// The first two regions that overlap, or nothing.
std::string Overlap(std::vector<Region> regions) {
  std::sort(regions.begin(), regions.end(),
            [](const Region& a, const Region& b) { return a.begin < b.begin; });
  for (size_t i = 0; i + 1 < regions.size(); ++i) {
    if (regions[i].end > regions[i + 1].begin) {
      return absl::StrCat(regions[i].name, " and ", regions[i + 1].name, " at ",
                          regions[i + 1].begin);
    }
  }
  return "";
}

// One class' arena as its lists use it.
class ArenaMap {
 public:
  ArenaMap(const Plan& plan, const PlanClass& c) : plan_(plan), class_(c) {}

  void Check() {
    std::vector<Region> all = Persistent();
    const std::vector<Region> kinds = {Frames(), Boundaries(), Transients(class_.chunks)};
    for (const Region& region : kinds) {
      if (region.end > region.begin) all.push_back(region);
    }
    EXPECT_EQ(Overlap(all), "");
    int64_t end = 0;
    for (const Region& region : all) end = std::max(end, region.end);
    EXPECT_LE(end, class_.memory.peak);
    for (const Region& region : all) EXPECT_GE(region.begin, 0) << region.name;
    // Evaluation's transients lie where training has frames, inside the arena.
    const Region eval = Transients(class_.eval_chunks);
    EXPECT_LE(eval.end, class_.memory.peak);
    std::vector<Region> beside = Persistent();
    if (eval.end > eval.begin) beside.push_back(eval);
    EXPECT_EQ(Overlap(beside), "");
    CheckLiveFrames();
  }

 private:
  std::vector<Region> Persistent() const {
    std::vector<Region> regions;
    for (const HeldBlock& held : class_.blocks) {
      const ParamBlock& block = plan_.blocks[held.block];
      const std::string name = absl::StrCat(block.name, " ", held.layer);
      regions.push_back({name + " params", held.param_base, held.param_base + block.param_bytes});
      regions.push_back({name + " grads", held.grad_base, held.grad_base + block.grad_bytes});
      regions.push_back({name + " states", held.state_base, held.state_base + block.state_bytes});
    }
    std::set<int64_t> numbers;
    for (const NamedAddress& scalar : class_.scalars) numbers.insert(scalar.address);
    for (const NamedAddress& report : class_.reports) numbers.insert(report.address);
    for (const NamedAddress& report : class_.eval_reports) numbers.insert(report.address);
    for (int64_t address : numbers) regions.push_back({"a number", address, address + 8});
    regions.erase(std::remove_if(regions.begin(), regions.end(),
                                 [](const Region& region) { return region.begin == region.end; }),
                  regions.end());
    return regions;
  }

  Region Frames() const {
    Region hull{"frames", INT64_MAX, 0};
    for (const Action& action : class_.train.compute) {
      if (action.frame < 0) continue;
      hull.begin = std::min(hull.begin, action.frame);
      hull.end = std::max(hull.end, action.frame + class_.chunks[action.ref.chunk].frame_bytes);
    }
    return hull;
  }

  Region Boundaries() const {
    Region hull{"boundaries", INT64_MAX, 0};
    for (const Program* program : {&class_.train, &class_.eval}) {
      for (const Transfer& transfer : program->transfers) {
        hull.begin = std::min(hull.begin, transfer.address);
        hull.end = std::max(hull.end, transfer.address + transfer.bytes);
      }
    }
    return hull;
  }

  Region Transients(const std::vector<Chunk>& chunks) const {
    Region hull{"transients", INT64_MAX, 0};
    const auto add = [&](const std::vector<Call>& calls) {
      for (const Call& call : calls) {
        const Segment& segment = plan_.segments[call.segment];
        if (segment.transient_bytes == 0) continue;
        EXPECT_EQ(call.bindings[0].base, BaseKind::kAbsolute);
        hull.begin = std::min(hull.begin, call.bindings[0].offset);
        hull.end = std::max(hull.end, call.bindings[0].offset + segment.transient_bytes);
      }
    };
    for (const Chunk& chunk : chunks) {
      for (const auto* calls : ListsOf(chunk)) add(*calls);
    }
    if (&chunks == &class_.chunks) add(class_.update);
    return hull;
  }

  // A frame is alone from its forward to its backward.
  void CheckLiveFrames() const {
    std::map<std::pair<int, int64_t>, Region> live;
    for (const Action& action : class_.train.compute) {
      const std::pair<int, int64_t> key{action.ref.chunk, action.ref.micro_batch};
      if (action.ref.kind == ActionKind::kForward) {
        const int64_t bytes = class_.chunks[action.ref.chunk].frame_bytes;
        std::vector<Region> regions = {{"new frame", action.frame, action.frame + bytes}};
        for (const auto& [other, region] : live) regions.push_back(region);
        EXPECT_EQ(Overlap(regions), "");
        live[key] = {absl::StrCat("frame of ", key.first, " ", key.second), action.frame,
                     action.frame + bytes};
      } else if (action.ref.kind == ActionKind::kBackward) {
        EXPECT_EQ(live.count(key), 1u);
        EXPECT_EQ(live[key].begin, action.frame);
        live.erase(key);
      }
    }
    EXPECT_TRUE(live.empty());
  }

  const Plan& plan_;
  const PlanClass& class_;
};

// Every parameter of the model is counted and reported by exactly one class.
void CheckOwners(const Plan& plan) {
  std::map<std::string, int> owners;
  for (const PlanClass& c : plan.classes) {
    for (const HeldBlock& held : c.blocks) {
      for (const ParamEntry& entry : plan.blocks[held.block].entries) {
        owners[NameForLayer(entry.name, held.layer)] += held.owner ? 1 : 0;
      }
    }
  }
  std::map<std::string, int> expected;
  for (const GraphInput& input : plan.model.inputs()) {
    if (input.kind == InputKind::kParam) expected[plan.model.value(input.value).name] = 1;
  }
  EXPECT_EQ(owners, expected);
}

TEST(CompileGridTest, LegalConfigurationsCompile) {
  SCOPED_TRACE(absl::StrCat("seed ", kSeed));
  RandomCases cases(kSeed);
  std::set<std::string> seen;
  int drawn = 0;
  while (static_cast<int>(seen.size()) < kPlans) {
    ASSERT_LT(++drawn, 100 * kPlans);
    const GridCase c = cases.Next();
    if (!CheckConfig(c.parallel, DimsOf(c.config)).violations.empty()) continue;
    if (!seen.insert(NameOf(c)).second) continue;
    SCOPED_TRACE(NameOf(c));
    const absl::StatusOr<Plan> plan = CompileCase(c);
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_TRUE(CheckPlan(*plan).ok()) << CheckPlan(*plan);
    Diagnostics findings;
    CheckOrder(*plan, &findings);
    CheckMemory(*plan, &findings);
    for (const Diagnostic& finding : findings) ADD_FAILURE() << ToString(finding);
    for (const PlanClass& made : plan->classes) {
      SCOPED_TRACE(absl::StrCat("class ", made.coordinate));
      ArenaMap(*plan, made).Check();
    }
    CheckOwners(*plan);
    if (seen.size() % 4 == 0) {
      const absl::StatusOr<Plan> again = CompileCase(c);
      ASSERT_TRUE(again.ok());
      EXPECT_EQ(PrintPlan(*plan), PrintPlan(*again));
    }
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace mgc
