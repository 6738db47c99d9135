// Which samples a step works on, and how a rank's tile of them gets into its slot.
//
// Row i of micro-batch m of a step that begins with sample f is sample f + m * rows + i, whatever
// the plan: every plan trains on the same batches. Behind the last sample the first one follows.

#ifndef MGC_RUNTIME_DATA_FEED_H_
#define MGC_RUNTIME_DATA_FEED_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "graph/plan/data_input.h"
#include "graph/plan/plan.h"
#include "graph/types/mesh.h"
#include "runtime/data/data.h"
#include "runtime/data/sample_tensor.h"

namespace mgc {

class TokenBatch;

struct StepData {
  const TokenDataset* data = nullptr;  // the text, or none
  int64_t first_sample = 0;
  // Samples before this one count; later rows only fill up the batch: their weights are zero and
  // their values those of an earlier sample.
  int64_t end_sample = 0;
  // Of each of the plan's data inputs (DataInputsOf), null where none is given; may be empty. A
  // tensor that is given is taken before the text.
  absl::Span<const SampleTensor* const> tensors = {};
  // Of the text, what has been read for this step already (runtime/data/token_batch.h); null: none.
  const TokenBatch* batch = nullptr;
};

// The sample that stands where `sample` would: itself if it counts.
inline int64_t SampleOf(const StepData& step, int64_t sample) {
  return sample < step.end_sample ? sample : 0;
}

// Samples until they begin again: the text's, else those of the tensors; 0 without either.
int64_t SamplesPerEpoch(const StepData& step);

// OK if every input of `plan` is fed: by a tensor of its element type and shape with at least the
// samples of an epoch, or else by the text (FeedOf). InvalidArgument with all that is wrong.
// Allocates nothing unless it fails.
absl::Status CheckFed(const Plan& plan, absl::Span<const DataInput> inputs, const StepData& step);

// Fills `out` with the tile that `rank` holds of data input number `index`. `row_sample` is the
// sample of the micro-batch's row 0; `scratch` has room for the tokens of a sample and one more.
// CheckFed has passed. Errors of reading the text, also where a token is outside of the entries
// that the input is looked up in; the tile is not whole then. Allocates nothing but errors.
absl::Status FillData(absl::Span<const DataInput> inputs, int index, const Slot& slot,
                      const Mesh& mesh, int64_t rank, const StepData& step, int64_t row_sample,
                      absl::Span<int32_t> scratch, char* out);

}  // namespace mgc

#endif  // MGC_RUNTIME_DATA_FEED_H_
