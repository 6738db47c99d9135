#include "passes/config/place_layers.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "passes/config/layout_string.h"
#include "passes/config/nearest_legal.h"

namespace mgc {
namespace {

// Layers per stage, by stage number.
using Counts = std::vector<int64_t>;

LayerPlacement PlacementFromCounts(const LayerPlacementSpec& spec, int64_t vp,
                                   const Counts& counts) {
  LayerPlacement placement{spec.pp, vp, {}, {}};
  int64_t first = 0;
  for (int64_t count : counts) {
    placement.stages.push_back({false, false, first, count, 0});
    first += count;
  }
  placement.stages.front().has_embedding = spec.places.embedding;
  placement.stages.back().has_head = spec.places.head;
  return placement;
}

// Rank counts, each spread evenly over its chunks.
Counts SpreadOverChunks(const Counts& by_rank, int64_t vp) {
  Counts counts;
  for (int64_t chunk = 0; chunk < vp; ++chunk) {
    for (int64_t layers : by_rank) counts.push_back(layers / vp);
  }
  return counts;
}

// P18: a first or last stage that holds nothing, with which no pipeline can begin or end. Between
// others a stage may be empty: what it receives it passes on.
void CheckEndsFilled(const LayerPlacementSpec& spec, const LayerPlacement& placement,
                     Diagnostics* violations) {
  const std::vector<StageContent>& stages = placement.stages;
  if (stages.size() < 2) return;
  const bool first = stages.front().IsEmpty();
  if (!first && !stages.back().IsEmpty()) return;
  const absl::string_view end = first ? "first" : "last";
  const bool has_end = first ? spec.places.embedding : spec.places.head;
  std::string what = absl::StrCat(spec.flags.layout ? "layout: " : "", "the ", end, " of ",
                                  stages.size(), " stages holds nothing");
  if (!has_end) absl::StrAppend(&what, "; the model has no ", first ? "embedding" : "head");
  const absl::string_view content = !has_end ? "a layer" : first ? "E" : "L";
  violations->Add({"P18", std::move(what), absl::StrCat(content, " in the ", end, " stage")});
}

// ---- without flags -------------------------------------------------------------------------

LayerPlacementResult PlaceEvenly(const LayerPlacementSpec& spec, int64_t vp) {
  const int64_t stages = spec.pp * vp;
  Counts counts(static_cast<size_t>(stages), (spec.num_layers + stages - 1) / stages);
  const int64_t missing = counts[0] * stages - spec.num_layers;
  const bool from_last = spec.places.head || !spec.places.embedding;
  for (int64_t i = 0; i < missing; ++i) {
    const int64_t stage = (i % 2 == 0) == from_last ? stages - 1 - i / 2 : i / 2;
    --counts[static_cast<size_t>(stage)];
  }
  const int64_t ends = (spec.places.embedding ? 1 : 0) + (spec.places.head ? 1 : 0);
  LayerPlacementResult result{PlacementFromCounts(spec, vp, counts), {}};
  const auto empty = std::count_if(result.placement.stages.begin(), result.placement.stages.end(),
                                   [](const StageContent& stage) { return stage.IsEmpty(); });
  if (empty > 0) {
    const std::string legal_vp =
        NearestLegal(vp, vp, [&](int64_t v) { return spec.pp * v <= spec.num_layers + ends; });
    std::string hint = absl::StrCat("at least ", stages - ends, " layers");
    if (!legal_vp.empty()) absl::StrAppend(&hint, ", or vp ", legal_vp);
    absl::StrAppend(&hint, ", or pp * vp of ", spec.num_layers + ends, " or less");
    result.violations.Add(
        {"P18",
         absl::StrCat(spec.num_layers, " layers on pp ", spec.pp, " * vp ", vp, " = ", stages,
                      " chunks leave ", empty, " chunks ",
                      ends == 2 ? "between the first and the last " : "", "empty"),
         hint});
  }
  return result;
}

// ---- account_for_embedding, account_for_loss -----------------------------------------------

// The nearest numbers of layers that with `extra` more are divisible.
std::string DivisibleLayers(const LayerPlacementSpec& spec, int64_t extra, int64_t divisor) {
  return absl::StrCat(
      "layers ", NearestLegal(spec.num_layers, kMaxPipelineSize,
                              [&](int64_t layers) { return (layers + extra) % divisor == 0; }));
}

LayerPlacementResult PlaceWithAccounting(const LayerPlacementSpec& spec, int64_t vp) {
  LayerPlacementResult result;
  const int64_t extra =
      (spec.flags.account_for_embedding ? 1 : 0) + (spec.flags.account_for_loss ? 1 : 0);
  const int64_t units = spec.num_layers + extra;
  if (units % spec.pp != 0) {
    result.violations.Add(
        {"P5",
         absl::StrCat(spec.num_layers, " layers + ", extra,
                      " for embedding and loss are not divisible by pp ", spec.pp),
         DivisibleLayers(spec, extra, spec.pp)});
    return result;
  }
  if (units / spec.pp % vp != 0) {
    result.violations.Add({"P6",
                           absl::StrCat(units / spec.pp, " layers per rank (", extra,
                                        " of them for embedding and loss in all) are not "
                                        "divisible by vp ",
                                        vp),
                           DivisibleLayers(spec, extra, spec.pp * vp)});
    return result;
  }
  Counts counts(static_cast<size_t>(spec.pp * vp), units / (spec.pp * vp));
  if (spec.flags.account_for_embedding) --counts.front();
  if (spec.flags.account_for_loss) --counts.back();
  result.placement = PlacementFromCounts(spec, vp, counts);
  return result;
}

// ---- layer counts of the first and last rank -----------------------------------------------

struct Middle {
  int64_t layers;
  int64_t ranks;
};

void CheckEndCounts(const LayerPlacementSpec& spec, Diagnostics* violations) {
  const std::array<std::pair<const char*, std::optional<int64_t>>, 2> ends = {
      {{"first", spec.flags.decoder_first_layers}, {"last", spec.flags.decoder_last_layers}}};
  for (const auto& [name, count] : ends) {
    if (!count.has_value() || *count > 0) continue;
    violations->Add(
        {"P7", absl::StrCat("--decoder-", name, "-pipeline-num-layers is ", *count), "1"});
  }
}

// P7, P8: whether the layers left fit the ranks left.
void CheckMiddle(const LayerPlacementSpec& spec, const Middle& middle, Diagnostics* violations) {
  const std::string left = absl::StrCat(middle.layers, " of ", spec.num_layers,
                                        " layers are left for ", middle.ranks, " middle ranks");
  const int64_t fixed = spec.num_layers - middle.layers;
  if (middle.ranks < 0) {
    violations->Add({"P7", "first and last layer counts are both given, but pp is 1", "pp 2"});
  } else if (middle.layers < 0) {
    violations->Add({"P8", absl::StrCat("first and last ranks take ", fixed, " layers: ", left),
                     absl::StrCat("first and last counts of ", spec.num_layers - middle.ranks,
                                  " or less in all")});
  } else if ((middle.layers > 0) != (middle.ranks > 0)) {
    violations->Add({"P7", left,
                     middle.ranks == 0
                         ? absl::StrCat("first and last counts of ", spec.num_layers)
                         : absl::StrCat("at least ", fixed + middle.ranks, " layers")});
  } else if (middle.ranks > 0 && middle.layers % middle.ranks != 0) {
    violations->Add(
        {"P7", absl::StrCat(left, ", which does not divide"),
         absl::StrCat("middle layers ", NearestMultiples(middle.layers, middle.ranks))});
  }
}

void CheckChunksOfRank(const char* name, int64_t layers, int64_t vp, Diagnostics* violations) {
  if (layers % vp == 0) return;
  violations->Add({"P6", absl::StrCat(layers, " layers of ", name, " are not divisible by vp ", vp),
                   absl::StrCat("layers ", NearestMultiples(layers, vp))});
}

LayerPlacementResult PlaceWithEndCounts(const LayerPlacementSpec& spec, int64_t vp) {
  LayerPlacementResult result;
  const std::optional<int64_t>& first = spec.flags.decoder_first_layers;
  const std::optional<int64_t>& last = spec.flags.decoder_last_layers;
  CheckEndCounts(spec, &result.violations);
  if (first.value_or(1) > kMaxPipelineSize || last.value_or(1) > kMaxPipelineSize) {
    result.violations.Add(
        {"P8", absl::StrCat("more layers on one rank than the ", spec.num_layers, " of the model"),
         absl::StrCat(spec.num_layers)});
  }
  if (!result.violations.empty()) return result;
  const Middle middle = {spec.num_layers - first.value_or(0) - last.value_or(0),
                         spec.pp - (first ? 1 : 0) - (last ? 1 : 0)};
  CheckMiddle(spec, middle, &result.violations);
  if (first) CheckChunksOfRank("the first rank", *first, vp, &result.violations);
  if (last) CheckChunksOfRank("the last rank", *last, vp, &result.violations);
  const int64_t per_rank = middle.ranks > 0 ? middle.layers / middle.ranks : 0;
  if (per_rank > 0 && middle.layers % middle.ranks == 0) {
    CheckChunksOfRank("each middle rank", per_rank, vp, &result.violations);
  }
  if (!result.violations.empty()) return result;
  Counts by_rank(static_cast<size_t>(spec.pp), per_rank);
  if (first) by_rank.front() = *first;
  if (last) by_rank.back() = *last;
  result.placement = PlacementFromCounts(spec, vp, SpreadOverChunks(by_rank, vp));
  return result;
}

// ---- layout string -------------------------------------------------------------------------

// P3: which letters stand where, in the layout written out without cuts.
void CheckLetters(const LayerPlacementSpec& spec, const std::string& letters,
                  Diagnostics* violations) {
  const auto count = [&letters](char letter) {
    return std::count(letters.begin(), letters.end(), letter);
  };
  const auto refuse = [violations](absl::string_view what, std::string legal) {
    violations->Add({"P3", absl::StrCat("layout: ", what), std::move(legal)});
  };
  if (count('E') != 1 || letters.front() != 'E') {
    refuse(absl::StrCat("E stands ", count('E'), " times, must be the first letter and only there"),
           "E first");
  }
  if (count('L') != 1 || letters.back() != 'L') {
    refuse(absl::StrCat("L stands ", count('L'), " times, must be the last letter and only there"),
           "L last");
  }
  if (count('t') != spec.num_layers) {
    refuse(absl::StrCat(count('t'), " t for a model of ", spec.num_layers, " layers"),
           absl::StrCat(spec.num_layers, " t"));
  }
  if (count('m') != spec.mtp_layers) {
    refuse(absl::StrCat(count('m'), " m for a model of ", spec.mtp_layers,
                        " multi-token-prediction layers"),
           absl::StrCat(spec.mtp_layers, " m"));
  }
  const size_t first_m = letters.find('m');
  const size_t last_t = letters.rfind('t');
  if (first_m != std::string::npos && last_t != std::string::npos && first_m < last_t) {
    refuse("m stands before a t", "every t before the first m");
  }
}

// P3: all multi-token-prediction layers lie together, on a last chunk.
void CheckMtpStage(const LayerPlacement& placement, Diagnostics* violations) {
  const auto has_mtp = [](const StageContent& stage) { return stage.mtp_layers > 0; };
  const auto& stages = placement.stages;
  const auto first = std::find_if(stages.begin(), stages.end(), has_mtp);
  if (first == stages.end()) return;
  const bool split = std::count_if(first, stages.end(), has_mtp) > 1;
  const bool early = first - stages.begin() < placement.pp * (placement.vp - 1);
  if (split || early) {
    violations->Add(
        {"P3", "layout: multi-token-prediction layers are not all in one stage of the last chunks",
         "all m in one of the last pp stages"});
  }
}

LayerPlacement PlacementFromLetters(const LayerPlacementSpec& spec,
                                    const std::vector<std::string>& stages) {
  LayerPlacement placement{spec.pp, static_cast<int64_t>(stages.size()) / spec.pp, {}, {}};
  int64_t layer = 0;
  for (const std::string& stage : stages) {
    StageContent content;
    content.has_embedding = spec.places.embedding && stage.find('E') != std::string::npos;
    content.has_head = spec.places.head && stage.find('L') != std::string::npos;
    content.first_layer = layer;
    content.num_layers = std::count(stage.begin(), stage.end(), 't');
    content.mtp_layers = std::count(stage.begin(), stage.end(), 'm');
    layer += content.num_layers;
    placement.stages.push_back(content);
  }
  return placement;
}

// P2: whether the stages written fit the ranks.
void CheckNumStages(const LayerPlacementSpec& spec, const LayerPlacement& placement,
                    Diagnostics* violations) {
  const int64_t stages = static_cast<int64_t>(placement.stages.size());
  if (stages % spec.pp != 0) {
    violations->Add({"P2",
                     absl::StrCat("layout of ", stages, " stages is not divisible by pp ", spec.pp),
                     absl::StrCat("stages ", NearestMultiples(stages, spec.pp))});
  } else if (spec.vp != 0 && spec.vp != placement.vp) {
    violations->Add({"P2",
                     absl::StrCat("layout of ", stages, " stages on pp ", spec.pp, " has ",
                                  placement.vp, " chunks per rank, but vp is ", spec.vp),
                     absl::StrCat("vp ", placement.vp)});
  }
}

LayerPlacementResult PlaceByLayout(const LayerPlacementSpec& spec) {
  LayerPlacementResult result;
  const auto stages = ParseLayoutString(*spec.flags.layout);
  if (!stages.ok()) {
    result.violations.Add({"P3", std::string(stages.status().message()), ""});
    return result;
  }
  result.placement = PlacementFromLetters(spec, *stages);
  CheckNumStages(spec, result.placement, &result.violations);
  const std::string letters = absl::StrJoin(*stages, "");
  if (letters.empty()) {
    result.violations.Add({"P3", "layout: it holds no layer", "E first, L last"});
    return result;
  }
  CheckLetters(spec, letters, &result.violations);
  CheckEndsFilled(spec, result.placement, &result.violations);
  if (result.placement.vp > 0) CheckMtpStage(result.placement, &result.violations);
  return result;
}

// ---- which of them -------------------------------------------------------------------------

Diagnostics CheckSizes(const LayerPlacementSpec& spec) {
  Diagnostics violations;
  const std::array<std::pair<const char*, int64_t>, 3> sizes = {
      {{"layers", spec.num_layers}, {"pp", spec.pp}, {"vp", spec.vp == 0 ? 1 : spec.vp}}};
  for (const auto& [name, size] : sizes) {
    if (size >= 1 && size <= kMaxPipelineSize) continue;
    violations.Add({"P0",
                    absl::StrCat(name, " is ", size, ", must be between 1 and ", kMaxPipelineSize),
                    absl::StrCat(std::clamp<int64_t>(size, 1, kMaxPipelineSize))});
  }
  if (violations.empty() && spec.pp * spec.vp > kMaxPipelineSize) {
    violations.Add({"P0",
                    absl::StrCat("pp ", spec.pp, " * vp ", spec.vp, " is more than ",
                                 kMaxPipelineSize, " chunks"),
                    absl::StrCat("vp ", kMaxPipelineSize / spec.pp)});
  }
  return violations;
}

// P18: layers are placed by hand where a model has some, and cuts are named where it has none.
void CheckByHand(const LayerPlacementSpec& spec, Diagnostics* violations) {
  const LayoutFlags& flags = spec.flags;
  const bool by_hand = flags.layout || flags.decoder_first_layers || flags.decoder_last_layers ||
                       flags.account_for_embedding || flags.account_for_loss;
  if (!spec.places.named && by_hand) {
    violations->Add({"P18", "no node of the graph names a layer, so that there is none to place",
                     "--cuts, or `layers=N` and `layer I` in the graph"});
  }
  if (spec.places.named && !flags.cuts.empty()) {
    violations->Add({"P18",
                     absl::StrCat("--cuts is for graphs that name no layers; this model names ",
                                  spec.num_layers, " and is cut between them"),
                     "--pipeline-layout"});
  }
}

}  // namespace

LayerPlacementResult PlaceLayers(const LayerPlacementSpec& given) {
  LayerPlacementResult result;
  result.violations = CheckSizes(given);
  if (result.violations.empty()) CheckByHand(given, &result.violations);
  if (!result.violations.empty()) return result;
  LayerPlacementSpec spec = given;
  // One for each stage: passes/cut_layers.h.
  if (!spec.places.named) spec.num_layers = spec.pp * std::max<int64_t>(spec.vp, 1);
  const LayoutFlags& flags = spec.flags;
  const bool end_counts = flags.decoder_first_layers || flags.decoder_last_layers;
  const bool accounting = flags.account_for_embedding || flags.account_for_loss;
  if (flags.layout && (end_counts || accounting)) {
    result.violations.Add(
        {"P4", "a layout string cannot be combined with first or last layer counts or accounting",
         "the layout string alone"});
  }
  if (end_counts && accounting) {
    result.violations.Add(
        {"P9",
         "first or last layer counts cannot be combined with accounting for embedding or loss",
         "one of the two"});
  }
  const int64_t vp = std::max<int64_t>(spec.vp, 1);
  LayerPlacementResult placed = flags.layout ? PlaceByLayout(spec)
                                : end_counts ? PlaceWithEndCounts(spec, vp)
                                : accounting ? PlaceWithAccounting(spec, vp)
                                             : PlaceEvenly(spec, vp);
  if (placed.violations.empty() && !flags.layout) {
    CheckEndsFilled(spec, placed.placement, &placed.violations);
  }
  result.violations.Append(placed.violations);
  result.placement = std::move(placed.placement);
  if (result.violations.empty()) {
    result.placement.places = LoopPlaces(result.placement.pp, result.placement.vp);
  }
  return result;
}

std::vector<StagePlace> LoopPlaces(int64_t pp, int64_t vp) {
  std::vector<StagePlace> places;
  for (int chunk = 0; chunk < vp; ++chunk) {
    for (int rank = 0; rank < pp; ++rank) places.push_back({rank, chunk});
  }
  return places;
}

}  // namespace mgc
