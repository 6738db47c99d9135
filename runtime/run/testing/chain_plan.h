// A plan made by hand, small enough to follow: a chain of elementwise products.
//
// Stage p multiplies its input by its parameter `layers.<p>.w` [seq], element by element and for
// every row; the first input is the data input `weights` (ones, 0 for rows that fill up a batch)
// and the loss is half the sum of squares of the last output. With tensor parallelism every rank
// makes 1/tp of a product and an all-reduce pays the sum; with data parallelism rows are split and
// the gradients, owed over dp, are summed after the last backward. The update is w -= lr *
// gradient. Micro-batches run in 1F1B order, boundaries go through two slots each.

#ifndef MGC_RUNTIME_RUN_TESTING_CHAIN_PLAN_H_
#define MGC_RUNTIME_RUN_TESTING_CHAIN_PLAN_H_

#include <cstdint>

#include "graph/plan/plan.h"

namespace mgc {

struct ChainOptions {
  int tp = 1;
  int dp = 1;
  int pp = 1;
  int64_t micro_batches = 4;
  int64_t rows = 4;  // of a micro-batch, over all dp ranks
  int64_t seq = 6;
};

// Scalar input `lr`; reports `loss` (the half sum) and, of an evaluation, `loss` and `tokens`.
Plan ChainPlan(const ChainOptions& options);

}  // namespace mgc

#endif  // MGC_RUNTIME_RUN_TESTING_CHAIN_PLAN_H_
