// The sizes, addresses and segments of ChainPlan.

#ifndef MGC_RUNTIME_RUN_TESTING_CHAIN_PLACES_H_
#define MGC_RUNTIME_RUN_TESTING_CHAIN_PLACES_H_

#include <cstdint>
#include <vector>

#include "graph/plan/plan.h"
#include "runtime/run/testing/chain_plan.h"

namespace mgc {

// Segments of the plan, in this order.
enum ChainSegment { kFeed, kForward, kLoss, kBackward, kReduce, kStep, kPayLoss };

struct ChainPlaces {
  explicit ChainPlaces(const ChainOptions& options);

  ChainOptions o;
  Mesh mesh;
  AxisSet tp;
  AxisSet dp;
  TensorType rows;    // of a micro-batch
  TensorType weight;  // of a stage
  Sharding row_sharding;
  int64_t tile = 0;    // bytes of a rank's rows, aligned
  int64_t vector = 0;  // of a weight
  int depth = 2;       // slots of a boundary
  // Addresses in every rank's arena.
  int64_t grad_at = 0;
  int64_t param_at = 0;
  int64_t frames_at = 0;
  int64_t slots_at = 0;
  int64_t scratch_at = 0;
};

std::vector<Segment> ChainSegments(const ChainPlaces& places);

}  // namespace mgc

#endif  // MGC_RUNTIME_RUN_TESTING_CHAIN_PLACES_H_
