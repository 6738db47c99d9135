// Of models whose dims have no names that mgc knows, what `--auto` finds, tp and rows of dim
// classes together, against all sizes of tp with all tables of rows.

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "graph/base/file.h"
#include "graph/base/status.h"
#include "graph/text/parser.h"
#include "graph/types/machine.h"
#include "gtest/gtest.h"
#include "passes/config/config_flags.h"
#include "passes/graph/resize.h"
#include "passes/search/plans/search_plans.h"
#include "tests/class_layouts/trials.h"

namespace mgc {
namespace {

constexpr int64_t kSamples = 2;  // of a rank's micro-batch where tp is 1

// A model with other names in the place of those that the default strategy knows.
absl::StatusOr<Graph> ReadUnnamed(const std::string& file) {
  MGC_ASSIGN_OR_RETURN(std::string text, ReadFile(file));
  for (const std::string name : {"mlp", "embed", "heads", "kv_heads", "vocab", "seq"}) {
    const std::string other = absl::StrCat("its_", name);
    text = absl::StrReplaceAll(text,
                               {{absl::StrCat("[", name, "="), absl::StrCat("[", other, "=")},
                                {absl::StrCat(",", name, "="), absl::StrCat(",", other, "=")},
                                {absl::StrCat("\"", name, "\""), absl::StrCat("\"", other, "\"")}});
  }
  MGC_ASSIGN_OR_RETURN(const Graph read, ParseGraph(text, file));
  std::vector<std::string> notes;
  return PrepareModel(read, &notes);
}

SearchRequest RequestFor(const Graph& model, int64_t ranks) {
  SearchRequest request;
  request.options.machine = FindMachinePreset("h100x8").value();
  ParallelConfig& parallel = request.options.parallel;
  parallel.world_size = ranks;
  parallel.global_batch_size = kSamples * ranks;
  parallel.seq_length = std::max<int64_t>(TokensOf(model).size, 1);
  request.dims.layers = model.num_layers();
  request.fixed.pp = request.fixed.cp = request.fixed.zero = request.fixed.recompute = true;
  request.fixed.sequence_parallel = request.fixed.order = true;
  request.build = [model](const ParallelConfig& of) -> absl::StatusOr<Graph> {
    const int64_t samples = of.micro_batch_size * DataParallelSize(of);
    Resized resized = Resize(model, SamplesOf(model), samples, "T1");
    MGC_RETURN_IF_ERROR(resized.violations.ToStatus());
    return *std::move(resized.graph);
  };
  return request;
}

struct Fastest {
  int64_t step_ns = 0;
  size_t tables = 0;
};

// Over all sizes of tp and micro-batches, of the tables that cut parameters as far as they can.
Fastest FindFastest(const SearchRequest& request) {
  Fastest fastest;
  const SearchSpace space = ListCandidates(request.options.parallel, request.fixed, request.dims,
                                           request.options.machine);
  for (size_t g = 0; g < space.groups.size(); ++g) {
    CompileOptions options = request.options;
    options.parallel = space.ConfigOf(g, 0);
    const absl::StatusOr<Graph> model = request.build(options.parallel);
    if (!model.ok()) continue;
    LayoutTrial trial;
    if (!TryTables(*model, request.dims, options, &trial).ok()) continue;
    // Ranks of a tp that divides nothing would all do the same.
    if (trial.classes == 0 && options.parallel.tp > 1) continue;
    fastest.tables += trial.tables;
    const int64_t step_ns = trial.best.step_ns;
    if (fastest.step_ns == 0 || step_ns < fastest.step_ns) fastest.step_ns = step_ns;
  }
  return fastest;
}

TEST(SearchLayouts, AreNearTheBestOfAllTables) {
  const std::string own = "tests/own_models/";
  for (const std::string& file :
       {std::string("tests/class_layouts/wide_mixer.mgc"), own + "classifier.mgc",
        std::string("tests/class_layouts/two_towers.mgc"), own + "nested_skips.mgc",
        own + "encoder_decoder.mgc"}) {
    const absl::StatusOr<Graph> model = ReadUnnamed(file);
    ASSERT_TRUE(model.ok()) << file << ": " << model.status();
    for (const int64_t ranks : {8, 64}) {
      const SearchRequest request = RequestFor(*model, ranks);
      const absl::StatusOr<FoundPlans> found = SearchPlans(request);
      ASSERT_TRUE(found.ok()) << file << ": " << found.status();
      const FoundPlan& best = found->ranked.front();
      const Fastest fastest = FindFastest(request);
      const double slower =
          static_cast<double>(best.step_ns) / static_cast<double>(fastest.step_ns);
      EXPECT_LE(slower, 1.05) << file;
      std::cout << absl::StrFormat("%-40s %3d ranks %5d tables %8d ns found %8d ns  %s\n", file,
                                   ranks, fastest.tables, fastest.step_ns, best.step_ns,
                                   FlagsText(best.config));
    }
  }
}

}  // namespace
}  // namespace mgc
