// A strategy as its file says it: which axes cut which dims, in names. It knows no mesh;
// passes/graph/shard/strategy.h binds it to one. Text form: passes/config/strategy_text.h.
//
// Rows are read in order. An axis cuts a value at most once, and the first row that gives a dim
// axes wins. Data, tensor, sequence, vocabulary and context parallelism are rows and nothing else.

#ifndef MGC_PASSES_CONFIG_STRATEGY_SPEC_H_
#define MGC_PASSES_CONFIG_STRATEGY_SPEC_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace mgc {

// What must have been asked for that a row holds: nothing, --sequence-parallel, --zero 1 or more, 2
// or more, 3.
enum class StrategyCondition : uint8_t { kAlways, kSequenceParallel, kZero, kZero2, kZero3 };

// A dim's axes, major first: `cp*tp`. None: the dim stays whole, whatever later rows say.
struct DimAxes {
  std::string dim;
  std::vector<std::string> axes;
};

struct StrategyRowSpec {
  // The names of all dims of a value, in order; an empty name stands for any. Empty: any value.
  std::vector<std::string> pattern;
  // Only values whose name, or whose op's origin, matches: `*` stands for any text. Empty: all.
  std::string scope;
  bool home = false;  // forward values that match are brought to what the rows give them
  StrategyCondition when = StrategyCondition::kAlways;
  std::vector<DimAxes> dims;
};

// How it is taken when an op has to gather a dim.
enum class GatherTaken : uint8_t { kSilent, kNote, kError };

struct GatherSpec {
  std::vector<std::string> dims;
  GatherTaken taken = GatherTaken::kNote;
};

// What is stored in pieces over axes that cut none of its dims: optimizer states, with the
// parameters themselves between steps; sums of gradients, in every micro-batch; and parameters,
// which forward and backward then gather each time.
enum class StoredKind : uint8_t { kStates, kGradients, kParameters };

struct StoreSpec {
  StoredKind kind = StoredKind::kStates;
  std::string scope;  // parameters, as in a row
  StrategyCondition when = StrategyCondition::kAlways;
  std::vector<std::string> axes;
};

// An axis is axis.0 * axis.1. By a dim: axis.0 is as wide as the axis and the dim's size can share
// evenly (their greatest common divisor), axis.1 is the rest. In ZeRO groups: axis.1 is the
// neighbouring ranks of --zero-group, all of the axis where that is not given.
struct AxisSplit {
  std::string axis;
  std::string dim;  // empty: in ZeRO groups
};

struct StrategySpec {
  std::string name;
  std::vector<AxisSplit> splits;
  std::vector<GatherSpec> gathers;  // of dims that are not listed: a note
  // Dims that may be cut into unequal pieces: all ranks make room for as much, rounded up, and of
  // the last ones some stays empty. Others are cut evenly or refused.
  std::vector<std::string> uneven;
  std::vector<StrategyRowSpec> rows;
  std::vector<StoreSpec> stores;
};

absl::string_view WordOf(StrategyCondition condition);  // empty for kAlways
absl::string_view WordOf(GatherTaken taken);
absl::string_view WordOf(StoredKind kind);

// The strategies that ship with mgc, the files of passes/config/strategies: `megatron`.
struct StrategyPreset {
  const char* name;
  const char* text;
};
absl::Span<const StrategyPreset> StrategyPresets();

// The preset of that name, or NotFound with the names that exist.
absl::StatusOr<StrategySpec> FindStrategyPreset(absl::string_view name);

// What a compilation uses that names no strategy.
inline constexpr char kDefaultStrategy[] = "megatron";
const StrategySpec& DefaultStrategy();

// Whether `text` is the pattern with every `*` replaced by some text, none included.
bool MatchesGlob(absl::string_view pattern, absl::string_view text);

}  // namespace mgc

#endif  // MGC_PASSES_CONFIG_STRATEGY_SPEC_H_
