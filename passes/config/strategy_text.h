// The text form of strategies (docs/text.md).
//
//   strategy @mine {
//     split tp by kv_heads
//     split dp in zero_groups
//     gather seq silent
//     gather heads, kv_heads error
//     uneven vocab
//     row (batch, seq, embed) home when sequence_parallel { seq -> cp*tp }
//     row * in "layers.0.*" { mlp -> - }
//     row * { batch -> dp, heads -> tp, kv_heads -> tp.0, mlp -> tp }
//     store states -> cp*dp.1 when zero
//     store gradients -> cp*dp.1 when zero2
//     store parameters -> cp*dp.1 when zero3
//   }
//
// Axes are tp, cp, dp and, where an axis is split, its two parts. Labels:
//   strategy_c1  an axis that does not exist
//   strategy_c2  said twice
//   strategy_c3  parameters or gradients stored otherwise than the states are
//   strategy_c4  a row that can never match: it gives axes to a dim that its pattern does not name

#ifndef MGC_PASSES_CONFIG_STRATEGY_TEXT_H_
#define MGC_PASSES_CONFIG_STRATEGY_TEXT_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "passes/config/strategy_spec.h"

namespace mgc {

// Splits first, then gathers, uneven dims, rows and stores; ends with a newline.
std::string PrintStrategy(const StrategySpec& spec);

// The part of a row that speaks of one of its dims: `row * { mlp -> tp }`.
std::string RowTextOf(const StrategyRowSpec& row, const DimAxes& dim);
// `store states -> cp*dp when zero`.
std::string StoreText(const StoreSpec& store);

// The strategy in `text`, which holds nothing else. Errors as those of ParseGraph: InvalidArgument,
// all of them, each with file:line:column.
absl::StatusOr<StrategySpec> ParseStrategy(absl::string_view text, absl::string_view filename);

}  // namespace mgc

#endif  // MGC_PASSES_CONFIG_STRATEGY_TEXT_H_
