// The tensors that a user gives for the data inputs of a plan, checked against it before the run.

#ifndef MGC_RUNTIME_DATA_INPUT_FILES_H_
#define MGC_RUNTIME_DATA_INPUT_FILES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "graph/plan/data_input.h"
#include "graph/plan/plan.h"
#include "runtime/data/data.h"
#include "runtime/data/sample_tensor.h"

namespace mgc {

struct InputFile {
  std::string input;  // of the model
  TensorPlace place;
};

// Of each of the plan's data inputs (DataInputsOf), none where no file is given.
using InputTensors = std::vector<absl::optional<SampleTensor>>;

// Reads the files of at least `least_samples` samples. `text`, which may be null, feeds what it can
// of the other inputs (FeedOf). Errors of ReadSampleTensor, and InvalidArgument with all that is
// wrong with what the files hold or leave out, and with a list of the inputs: an unknown or
// repeated name, another element type or shape than [samples, the input's], fewer samples than that
// or than an epoch of the text, tensors that hold different numbers of samples, indices outside
// what they are looked up in, an input that nothing feeds.
absl::StatusOr<InputTensors> ReadInputs(const Plan& plan, absl::Span<const InputFile> files,
                                        const TokenDataset* text, int64_t least_samples);

}  // namespace mgc

#endif  // MGC_RUNTIME_DATA_INPUT_FILES_H_
