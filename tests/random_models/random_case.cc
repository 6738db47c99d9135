#include "tests/random_models/random_case.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/text/printer.h"
#include "passes/compile.h"
#include "passes/config/strategy_text.h"
#include "passes/search/class_layout.h"
#include "tests/fuzz/dice.h"
#include "tests/random_models/random_model.h"

namespace mgc {
namespace {

constexpr int64_t kMostRanks = 16;

struct Axes {
  int64_t tp = 1, cp = 1, dp = 1, pp = 1;
  int64_t Ranks() const { return tp * cp * dp * pp; }
};

Axes RandomAxes(Dice* dice) {
  Axes axes;
  do {
    axes.tp = dice->Of<int64_t>({1, 1, 2, 2, 2, 3, 4});
    axes.cp = dice->Of<int64_t>({1, 1, 1, 1, 1, 2});
    axes.dp = dice->Of<int64_t>({1, 1, 2, 2, 3, 4});
    axes.pp = dice->Of<int64_t>({1, 1, 1, 1, 1, 1, 1, 2, 3});
  } while (axes.Ranks() > kMostRanks || (axes.Ranks() == 1 && !dice->OneIn(4)));
  return axes;
}

ParallelConfig RandomParallel(const Axes& axes, bool attention, Dice* dice) {
  ParallelConfig parallel;
  parallel.tp = axes.tp;
  parallel.cp = axes.cp;
  parallel.pp = axes.pp;
  parallel.world_size = axes.Ranks();
  parallel.sequence_parallel = axes.tp > 1 && dice->OneIn(3);
  if (axes.dp > 1 && dice->Flip()) parallel.zero = 1 + static_cast<int64_t>(dice->Below(3));
  if (parallel.zero > 0 && axes.dp == 4 && dice->Flip()) parallel.zero_group = 2;
  if (dice->OneIn(4)) parallel.schedule = ScheduleKind::kGpipe;
  if (axes.pp > 1 && dice->OneIn(3)) {
    parallel.schedule = ScheduleKind::kInterleaved;
    parallel.vp = 2;
  }
  if (dice->OneIn(5)) parallel.recompute = RecomputeKind::kFull;
  if (attention && dice->OneIn(2)) parallel.recompute = RecomputeKind::kSelective;
  if (axes.tp > 1 && dice->OneIn(4)) parallel.split_products = dice->Of<int64_t>({2, 3, 4});
  parallel.micro_batch_size = 1 + static_cast<int64_t>(dice->Below(2));
  const int64_t micro_batches = 1 + static_cast<int64_t>(dice->Below(4));
  parallel.global_batch_size = parallel.micro_batch_size * axes.dp * micro_batches;
  return parallel;
}

// The classes that rows may speak of: those that tp divides, and that of the sequence, if any.
struct RowClasses {
  std::vector<std::string> divided;
  std::string tokens;
};

RowClasses RowClassesOf(const Graph& named, int64_t tp) {
  RowClasses rows;
  const DimClasses classes(named);
  for (const DimClass& dims : classes.classes()) {
    if (dims.name == kSampleDim || dims.size <= 2) continue;  // 2: parts of a packed weight
    const auto is_input = [&](const DimOfValue& dim, InputKind kind) {
      const GraphInput* input = named.FindInput(dim.value);
      return input != nullptr && input->kind == kind;
    };
    const bool of_param = std::any_of(dims.dims.begin(), dims.dims.end(), [&](const auto& dim) {
      return is_input(dim, InputKind::kParam);
    });
    if (of_param && dims.size % tp == 0) rows.divided.push_back(dims.name);
    const bool of_data = std::any_of(dims.dims.begin(), dims.dims.end(), [&](const auto& dim) {
      return dim.dim == 1 && named.type(dim.value).ndim() > 1 && is_input(dim, InputKind::kData);
    });
    if (of_data && rows.tokens.empty()) rows.tokens = dims.name;
  }
  return rows;
}

// tp on one or two classes of the model, cp on the sequence; the stream brought home to cp and tp
// on the sequence where that is asked for.
StrategySpec RandomRows(const Graph& named, DimNaming naming, const ParallelConfig& parallel,
                        Dice* dice) {
  const RowClasses classes = RowClassesOf(named, parallel.tp);
  std::vector<std::string> cut;
  const size_t rows = 1 + dice->Below(2);
  for (size_t i = 0; i < rows && !classes.divided.empty(); ++i) {
    cut.push_back(dice->Of(classes.divided));
  }
  StrategySpec spec = ClassStrategy(cut);
  spec.name = "random";
  if (!classes.tokens.empty()) spec.rows.front().dims.push_back({classes.tokens, {"cp"}});
  if (parallel.sequence_parallel) {
    StrategyRowSpec home;
    home.pattern = StreamDims(naming);
    home.home = true;
    home.when = StrategyCondition::kSequenceParallel;
    home.dims = {{home.pattern[1], {"cp", "tp"}}};
    spec.rows.insert(spec.rows.begin(), std::move(home));
  }
  return spec;
}

// The tokens of a sample, 1 where the model has no sequence.
int64_t TokensOf(const Graph& model) {
  for (const auto& [name, ndim] : {std::make_pair("tokens", 2), std::make_pair("features", 3)}) {
    const ValueId id = model.FindValue(name);
    if (id != kNone) return model.type(id).ndim() == ndim ? model.type(id).dims[1].size : 1;
  }
  return 1;
}

}  // namespace

RandomCase MakeRandomCase(uint64_t seed) {
  Dice dice(seed);
  Axes axes = RandomAxes(&dice);
  RandomModelOptions options;
  options.attention = dice.OneIn(4);
  RandomCase c;
  c.seed = seed;
  c.parallel = RandomParallel(axes, options.attention, &dice);
  const int64_t chunks = axes.pp * std::max<int64_t>(c.parallel.vp, 1);
  options.layers =
      static_cast<int>(axes.pp == 1 ? dice.Below(4) : static_cast<size_t>(chunks) + dice.Below(2));
  options.tokens = axes.cp > 1 || c.parallel.sequence_parallel;
  options.samples = c.parallel.micro_batch_size * axes.dp;
  options.unit = axes.tp * axes.cp;
  options.skips = axes.pp == 1 || dice.OneIn(4);
  if (axes.pp > 1) options.shared_one_in = 1000;
  if (axes.dp > 1) options.pins.emplace_back("dp", axes.dp);
  if (axes.tp > 1) options.pins.emplace_back("tp", axes.tp);
  const auto naming = dice.Of<DimNaming>(
      {DimNaming::kMegatron, DimNaming::kMegatron, DimNaming::kOwn, DimNaming::kNone});
  const bool own_rows =
      naming == DimNaming::kMegatron ? dice.OneIn(3) : axes.cp > 1 || !dice.OneIn(4);
  // Sequence parallelism is asked for where rows can speak of the stream.
  if (naming == DimNaming::kNone || (naming == DimNaming::kOwn && !own_rows)) {
    c.parallel.sequence_parallel = false;
  }
  c.model = RandomModel(options, naming, &dice);
  c.parallel.seq_length = TokensOf(c.model);
  std::vector<std::string> notes;
  if (own_rows) {
    c.strategy = RandomRows(PrepareModel(c.model, &notes), naming, c.parallel, &dice);
  }
  return c;
}

std::string TextOf(const RandomCase& c) {
  const ParallelConfig& p = c.parallel;
  std::string command = absl::StrCat(
      "mgc-compile model.mgc --world-size ", p.world_size, " --tp ", p.tp, " --cp ", p.cp, " --pp ",
      p.pp, p.vp > 0 ? absl::StrCat(" --vp ", p.vp) : "", " --schedule ", ToString(p.schedule),
      " --micro-batch-size ", p.micro_batch_size, " --global-batch-size ", p.global_batch_size,
      " --recompute ", ToString(p.recompute), " --zero ", p.zero,
      p.split_products > 1 ? absl::StrCat(" --split-products ", p.split_products) : "",
      p.zero_group > 0 ? absl::StrCat(" --zero-group ", p.zero_group) : "",
      p.sequence_parallel ? " --sequence-parallel" : "");
  std::string text = PrintGraph(c.model);
  if (c.strategy) {
    absl::StrAppend(&text, PrintStrategy(*c.strategy));
    absl::StrAppend(&command, " --strategy rows.mgc");
  }
  return absl::StrCat("// seed ", c.seed, "\n// ", command, " -o plan\n", text);
}

}  // namespace mgc
