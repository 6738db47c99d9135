// Which token follows, of the logits that a model gives.

#ifndef MGC_RUNTIME_GENERATE_CHOOSE_TOKEN_H_
#define MGC_RUNTIME_GENERATE_CHOOSE_TOKEN_H_

#include <cstdint>

#include "absl/types/span.h"
#include "graph/base/diagnostic.h"

namespace mgc {

struct SamplingOptions {
  double temperature = 0;  // logits are divided by it; 0: the most probable token, nothing is drawn
  int64_t top_k = 0;       // only the k most probable tokens; 0: all
  // Only the most probable tokens, as few as together have at least this probability (Holtzman et
  // al., arXiv 1904.09751); 1: all. Of the tokens that top_k leaves, as transformers does it.
  double top_p = 1;
  uint64_t seed = 0;  // of the request
};

// What is wrong with them: one line each.
Diagnostics CheckSampling(const SamplingOptions& options);

// The token behind `position` tokens of a request, of options without violations. Of equal logits
// the lower token comes first. What is drawn is a function of logits, seed and position alone: the
// same in every layout that gives the same logits. -1 where a logit is not a number.
int64_t ChooseToken(absl::Span<const float> logits, const SamplingOptions& options,
                    int64_t position);

}  // namespace mgc

#endif  // MGC_RUNTIME_GENERATE_CHOOSE_TOKEN_H_
