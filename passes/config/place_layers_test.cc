#include "passes/config/place_layers.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "passes/config/layout_string.h"
#include "passes/plan/testing/vectors.h"

namespace mgc {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<int64_t> Counts(const LayerPlacement& placement) {
  std::vector<int64_t> counts;
  for (const StageContent& stage : placement.stages) counts.push_back(stage.num_layers);
  return counts;
}

std::vector<std::string> Rules(const LayerPlacementSpec& spec) {
  std::vector<std::string> rules;
  for (const Diagnostic& violation : PlaceLayers(spec).violations) rules.push_back(violation.label);
  return rules;
}

LayerPlacementSpec WithLayout(int64_t layers, int64_t pp, const std::string& layout) {
  LayerPlacementSpec spec{layers, 0, pp, 0, {}};
  spec.flags.layout = layout;
  return spec;
}

// Every layer once and in order, embedding before and head after them.
void ExpectComplete(const LayerPlacementSpec& spec, const LayerPlacement& placement) {
  ASSERT_EQ(static_cast<int64_t>(placement.stages.size()), placement.pp * placement.vp);
  int64_t next = 0;
  int embeddings = 0;
  int heads = 0;
  for (const StageContent& stage : placement.stages) {
    embeddings += stage.has_embedding ? 1 : 0;
    if (stage.num_layers > 0) {
      EXPECT_EQ(embeddings - heads, 1);
    }
    heads += stage.has_head ? 1 : 0;
    EXPECT_EQ(stage.first_layer, next);
    EXPECT_GE(stage.num_layers, 0);
    next += stage.num_layers;
  }
  EXPECT_EQ(next, spec.num_layers);
  EXPECT_EQ(embeddings, 1);
  EXPECT_EQ(heads, 1);
}

// A row `counts layers pp vp first last embedding loss expected`, 0 = not given.
void CheckCountsRow(const std::vector<std::string>& row) {
  ASSERT_EQ(row.size(), 9u);
  LayerPlacementSpec spec{ToInt(row[1]), 0, ToInt(row[2]), ToInt(row[3]), {}};
  if (row[4] != "0") spec.flags.decoder_first_layers = ToInt(row[4]);
  if (row[5] != "0") spec.flags.decoder_last_layers = ToInt(row[5]);
  spec.flags.account_for_embedding = row[6] == "1";
  spec.flags.account_for_loss = row[7] == "1";
  const LayerPlacementResult result = PlaceLayers(spec);
  const bool flags = row[4] != "0" || row[5] != "0" || row[6] == "1" || row[7] == "1";
  const int64_t stages = spec.pp * std::max<int64_t>(spec.vp, 1);
  // Without flags only an empty chunk is refused here, where Megatron wants equal chunks.
  const bool refused =
      row[8] == "reject" && (flags || spec.num_layers < std::min(stages, stages - 2));
  EXPECT_EQ(!result.violations.empty(), refused) << result.violations.ToString();
  if (refused || !result.violations.empty()) return;
  ExpectComplete(spec, result.placement);
  if (row[8] != "accept" && row[8] != "reject") {
    EXPECT_EQ(Counts(result.placement), ToInts(row[8]));
  }
}

bool HasEmptyEnd(absl::string_view layout) {
  return absl::StartsWith(layout, "|") || absl::EndsWith(layout, "|");
}

// A row `layout string layers mtp_layers pp vp expected`.
void CheckShardingRow(const std::vector<std::string>& row) {
  ASSERT_EQ(row.size(), 7u);
  LayerPlacementSpec spec = WithLayout(ToInt(row[2]), ToInt(row[4]), row[1]);
  spec.mtp_layers = ToInt(row[3]);
  spec.vp = ToInt(row[5]);
  const LayerPlacementResult result = PlaceLayers(spec);
  // Megatron lets the last stage be empty.
  const bool refused = row[6] == "reject" || HasEmptyEnd(row[1]);
  EXPECT_EQ(!result.violations.empty(), refused) << result.violations.ToString();
  if (!result.violations.empty()) return;
  ExpectComplete(spec, result.placement);
  if (row[6] != "accept") {
    EXPECT_EQ(Counts(result.placement), ToInts(row[6]));
  }
}

TEST(PlaceLayersTest, MatchesMegatron) {
  for (const std::vector<std::string>& row : ReadVectorRows("layer_placement.txt")) {
    SCOPED_TRACE(absl::StrJoin(row, " "));
    if (row[0] == "counts") {
      CheckCountsRow(row);
    } else if (row[0] == "layout") {
      CheckShardingRow(row);
    } else {
      ASSERT_EQ(row[0], "parse");
      const auto stages = ParseLayoutString(row[1]);
      ASSERT_TRUE(stages.ok()) << stages.status();
      EXPECT_EQ(absl::StrJoin(*stages, "|"), row[2]);
    }
  }
}

TEST(PlaceLayersTest, TheEndsAreShort) {
  EXPECT_THAT(Counts(PlaceLayers({126, 0, 16, 1, {}}).placement),
              ElementsAre(7, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 7));
  EXPECT_THAT(Counts(PlaceLayers({9, 0, 4, 0, {}}).placement), ElementsAre(2, 3, 2, 2));
  EXPECT_THAT(Counts(PlaceLayers({11, 0, 4, 0, {}}).placement), ElementsAre(3, 3, 3, 2));
  const LayerPlacementResult llama = PlaceLayers({126, 0, 16, 8, {}});
  EXPECT_TRUE(llama.violations.empty()) << llama.violations.ToString();
  const std::vector<int64_t> counts = Counts(llama.placement);
  EXPECT_EQ(counts.front(), 0);
  EXPECT_EQ(counts.back(), 0);
  EXPECT_EQ(std::count(counts.begin(), counts.end(), 1), 126);
}

// A model without embedding or head has nothing to put on an end alone.
TEST(PlaceLayersTest, EndsThatTheModelLacksHoldLayers) {
  const ModelLayers none{true, false, false};
  const LayerPlacementResult two = PlaceLayers({2, 0, 2, 1, {}, none});
  EXPECT_THAT(Counts(two.placement), ElementsAre(1, 1));
  EXPECT_FALSE(two.placement.stages[0].has_embedding);
  EXPECT_FALSE(two.placement.stages[1].has_head);
  EXPECT_THAT(Counts(PlaceLayers({1, 0, 2, 1, {}, {true, true, false}}).placement),
              ElementsAre(0, 1));
  EXPECT_THAT(Counts(PlaceLayers({1, 0, 2, 1, {}, {true, false, true}}).placement),
              ElementsAre(1, 0));
  EXPECT_EQ(Rules({1, 0, 2, 1, {}, none}), (std::vector<std::string>{"P18"}));
  LayerPlacementSpec empty_end{2, 0, 2, 0, {}, none};
  empty_end.flags.layout = "E|ttL";
  EXPECT_THAT(PlaceLayers(empty_end).violations.ToString(),
              HasSubstr("the first of 2 stages holds nothing; the model has no embedding [P18]"));
}

TEST(PlaceLayersTest, AModelThatNamesNoLayersHasOneForEachStage) {
  const ModelLayers unnamed{false, false, false};
  EXPECT_THAT(Counts(PlaceLayers({1, 0, 1, 1, {}, unnamed}).placement), ElementsAre(1));
  EXPECT_THAT(Counts(PlaceLayers({1, 0, 2, 2, {}, unnamed}).placement), ElementsAre(1, 1, 1, 1));
  LayerPlacementSpec by_hand{1, 0, 2, 0, {}, unnamed};
  by_hand.flags.layout = "Et|L";
  EXPECT_THAT(PlaceLayers(by_hand).violations.ToString(),
              HasSubstr("names a layer, so that there is none to place [P18]"));
}

TEST(PlaceLayersTest, CutsAreNamedWhereNoLayersAre) {
  LayerPlacementSpec unnamed{1, 0, 2, 0, {}, {false, false, false}};
  unnamed.flags.cuts = {"a"};
  EXPECT_TRUE(PlaceLayers(unnamed).violations.empty());
  LayerPlacementSpec named{4, 0, 2, 0, {}};
  named.flags.cuts = {"a"};
  EXPECT_THAT(PlaceLayers(named).violations.ToString(),
              HasSubstr("this model names 4 and is cut between them [P18]; nearest legal: "
                        "--pipeline-layout"));
}

TEST(PlaceLayersTest, WithoutFlagsEveryLayerIsPlacedOnceAndEvenly) {
  for (int64_t layers = 1; layers <= 200; ++layers) {
    for (int64_t pp : {1, 2, 3, 4, 5, 8, 16}) {
      for (int64_t vp : {1, 2, 3, 4, 8}) {
        SCOPED_TRACE(absl::StrCat(layers, " layers, pp ", pp, ", vp ", vp));
        const LayerPlacementSpec spec{layers, 0, pp, vp, {}};
        const LayerPlacementResult result = PlaceLayers(spec);
        if (layers < pp * vp - 2) {
          EXPECT_EQ(Rules(spec), (std::vector<std::string>{"P18"}));
          continue;
        }
        ASSERT_TRUE(result.violations.empty()) << result.violations.ToString();
        ExpectComplete(spec, result.placement);
        const std::vector<int64_t> counts = Counts(result.placement);
        const auto [least, most] = std::minmax_element(counts.begin(), counts.end());
        EXPECT_LE(*most - *least, 1);
        // Short stages are a head and a tail of the list, the tail as long or one longer.
        const auto first_full = std::find(counts.begin(), counts.end(), *most);
        const auto last_full = std::find(counts.rbegin(), counts.rend(), *most);
        const int64_t head = first_full - counts.begin();
        const int64_t tail = last_full - counts.rbegin();
        EXPECT_TRUE(tail == head || tail == head + 1);
        EXPECT_EQ(head + tail, *most * pp * vp - layers);
      }
    }
  }
}

TEST(PlaceLayersTest, WithFlagsEveryLayerIsPlacedOnceOrRefused) {
  int placed = 0;
  for (int64_t layers = 1; layers <= 24; ++layers) {
    for (int64_t pp = 1; pp <= 4; ++pp) {
      for (int64_t vp = 1; vp <= 3; ++vp) {
        for (int64_t first = 0; first <= 8; ++first) {
          for (int64_t last = 0; last <= 8; ++last) {
            LayerPlacementSpec spec{layers, 0, pp, vp, {}};
            if (first > 0) spec.flags.decoder_first_layers = first;
            if (last > 0) spec.flags.decoder_last_layers = last;
            const LayerPlacementResult result = PlaceLayers(spec);
            if (!result.violations.empty()) continue;
            SCOPED_TRACE(absl::StrCat(layers, " layers, pp ", pp, ", vp ", vp, ", first ", first,
                                      ", last ", last));
            ExpectComplete(spec, result.placement);
            ++placed;
          }
        }
      }
    }
  }
  EXPECT_GT(placed, 1000);
}

TEST(PlaceLayersTest, RefusesWhatMegatronLetsPass) {
  // Its defect: -2 middle layers on 2 ranks, layers 2 and 3 built twice.
  LayerPlacementSpec spec{5, 0, 4, 1, {}};
  spec.flags.decoder_first_layers = 4;
  spec.flags.decoder_last_layers = 3;
  const Diagnostics violations = PlaceLayers(spec).violations;
  ASSERT_EQ(violations.size(), 1u);
  EXPECT_EQ(ToString(violations[0]),
            "first and last ranks take 7 layers: -2 of 5 layers are left for 2 middle ranks "
            "[P8]; nearest legal: first and last counts of 3 or less in all");
}

TEST(PlaceLayersTest, NamesEveryBrokenRule) {
  const auto counts = [](int64_t layers, int64_t pp, int64_t vp, int64_t first, int64_t last) {
    LayerPlacementSpec spec{layers, 0, pp, vp, {}};
    spec.flags.decoder_first_layers = first;
    spec.flags.decoder_last_layers = last;
    return spec;
  };
  using Labels = std::vector<std::string>;
  EXPECT_EQ(Rules(counts(8, 4, 1, 0, -1)), (Labels{"P7", "P7"}));
  EXPECT_EQ(Rules(counts(8, 2, 1, 3, 4)), (Labels{"P7"}));
  EXPECT_EQ(Rules(counts(8, 4, 1, 4, 4)), (Labels{"P7"}));
  EXPECT_EQ(Rules(counts(8, 4, 1, 4, 1)), (Labels{"P7"}));
  EXPECT_EQ(Rules(counts(8, 1, 1, 4, 4)), (Labels{"P7"}));
  EXPECT_EQ(Rules(counts(14, 4, 2, 3, 5)), (Labels{"P6", "P6", "P6"}));
  EXPECT_EQ(Rules(counts(8, 4, 1, INT64_MAX, INT64_MAX)), (Labels{"P8"}));
  LayerPlacementSpec spec = counts(8, 4, 1, 2, 2);
  spec.flags.account_for_loss = true;
  EXPECT_EQ(Rules(spec), (Labels{"P9"}));
  spec.flags.layout = "Ettt|tt";
  EXPECT_EQ(Rules(spec), (Labels{"P4", "P9", "P2", "P3", "P3"}));
  LayerPlacementSpec accounting{30, 0, 4, 3, {}};
  accounting.flags.account_for_embedding = true;
  EXPECT_EQ(Rules(accounting), (Labels{"P5"}));
  accounting.flags.account_for_loss = true;
  EXPECT_EQ(Rules(accounting), (Labels{"P6"}));
  EXPECT_EQ(PlaceLayers(accounting).violations[0].hint, "layers 22, 34");
  EXPECT_EQ(Rules({0, 0, 0, -1, {}}), (Labels{"P0", "P0", "P0"}));
  EXPECT_EQ(Rules({4, 0, 1 << 16, 1 << 16, {}}), (Labels{"P0"}));
}

TEST(PlaceLayersTest, EmbeddingAndHeadMayStandAlone) {
  LayerPlacementSpec spec{2, 0, 4, 1, {}};
  spec.flags.account_for_embedding = true;
  spec.flags.account_for_loss = true;
  const LayerPlacementResult result = PlaceLayers(spec);
  ASSERT_TRUE(result.violations.empty()) << result.violations.ToString();
  EXPECT_THAT(Counts(result.placement), ElementsAre(0, 1, 1, 0));
  EXPECT_FALSE(result.placement.stages[0].IsEmpty());
}

TEST(PlaceLayersTest, LayoutStringsDecideVp) {
  const LayerPlacementResult result = PlaceLayers(WithLayout(8, 2, "Et*3|(tt|)*2tL"));
  ASSERT_TRUE(result.violations.empty()) << result.violations.ToString();
  EXPECT_EQ(result.placement.vp, 2);
  EXPECT_THAT(Counts(result.placement), ElementsAre(3, 2, 2, 1));
  LayerPlacementSpec other = WithLayout(8, 2, "Et*3|(tt|)*2tL");
  other.vp = 1;
  EXPECT_EQ(Rules(other), (std::vector<std::string>{"P2"}));
}

TEST(PlaceLayersTest, RefusesEndsThatHoldNothing) {
  using Labels = std::vector<std::string>;
  EXPECT_EQ(Rules(WithLayout(4, 2, "EttttL|")), (Labels{"P18"}));
  EXPECT_EQ(Rules(WithLayout(4, 2, "|EttttL")), (Labels{"P18"}));
  EXPECT_EQ(Rules(WithLayout(4, 2, "E|tttt|L|")), (Labels{"P18"}));
  EXPECT_EQ(Rules(WithLayout(4, 4, "|Et|tt|tL")), (Labels{"P18"}));
  EXPECT_EQ(Rules(WithLayout(4, 2, "Et||ttt|L")), (Labels{}));
  EXPECT_EQ(Rules(WithLayout(4, 2, "||")), (Labels{"P2", "P3"}));
  const auto text = [](absl::string_view layout) {
    return PlaceLayers(WithLayout(4, 2, std::string(layout))).violations.ToString();
  };
  EXPECT_THAT(text("EttttL|||"), HasSubstr("the last of 4 stages holds nothing"));
  EXPECT_THAT(text("|EttttL"), HasSubstr("the first of 2 stages holds nothing"));
}

TEST(LayoutStringTest, LocatesErrors) {
  const auto error = [](absl::string_view layout) {
    const auto stages = ParseLayoutString(layout);
    return stages.ok() ? "" : std::string(stages.status().message());
  };
  EXPECT_THAT(error("Et|xL"), HasSubstr("column 4: 'x' is not one of"));
  EXPECT_THAT(error("E(tt|L"), HasSubstr("the group is not closed"));
  EXPECT_THAT(error("E(t)L"), HasSubstr("column 5: a group needs a count"));
  EXPECT_THAT(error("E((t)*2)*2L"), HasSubstr("column 3: groups do not nest"));
  EXPECT_THAT(error("E()*2L"), HasSubstr("the group is empty"));
  EXPECT_THAT(error("Et*L"), HasSubstr("column 4: a count must follow"));
  EXPECT_THAT(error("Et*99999999999999999999L"), HasSubstr("the count is too large"));
  EXPECT_THAT(error("E(t*60000)*60000L"), HasSubstr("letters written out"));
  EXPECT_THAT(error("E)L"), HasSubstr("column 2: ')'"));
  EXPECT_THAT(error(absl::string_view("E\0\x1b", 3)),
              HasSubstr(absl::string_view("column 2: '\0' is", 15)));
  EXPECT_EQ(error(""), "");
  EXPECT_EQ(error("E,t,*,2|,L"), "");
}

}  // namespace
}  // namespace mgc
