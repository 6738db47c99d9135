// How many different values the data of a model may hold.

#ifndef MGC_GRAPH_IR_VOCABULARY_H_
#define MGC_GRAPH_IR_VOCABULARY_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "graph/ir/graph.h"

namespace mgc {

// Data inputs that say where the documents of a text lie, beside its tokens
// (graph/ir/step_names.h): i64 [samples, tokens of a sample], which are looked up in no vocabulary.
// How many documents of the sample have ended before a token: attention's segments.
inline constexpr char kDocumentsInput[] = "documents";
// How many tokens of its document stand before a token in the sample.
inline constexpr char kPositionsInput[] = "positions";

// The fewest entries that an index of the data is looked up in, 0 where the model looks none up. A
// lookup is a use of an op with one factor whose place in the whole dim its meaning needs
// (OpDef::offset_factors); the dim's name plays no part. Indices are followed through ops that make
// indices of them.
// With an input `tokens` or `targets` only what these hold counts: the words of a text.
int64_t VocabularyOf(const Graph& logical);
// The same of one data input; 0 where the model has none of this name.
int64_t VocabularyOf(const Graph& logical, absl::string_view input);

// The index that a data input may hold beside those: the attribute `ignore` of an op that reads it.
absl::optional<int64_t> IgnoredIndexOf(const Graph& logical, absl::string_view input);

}  // namespace mgc

#endif  // MGC_GRAPH_IR_VOCABULARY_H_
