// A safetensors file that is written tensor by tensor.

#ifndef MGC_RUNTIME_WEIGHTS_WRITE_IN_TURN_H_
#define MGC_RUNTIME_WEIGHTS_WRITE_IN_TURN_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "graph/base/shared_file.h"
#include "runtime/data/safetensors.h"

namespace mgc {

// `write` puts the bytes of a tensor, by its place in `specs`, to `offset` and behind it; tensors
// come in the order of the file. `path` is as it was where that or the file fails.
absl::Status WriteInTurn(
    const std::string& path, absl::Span<const SafetensorsSpec> specs,
    absl::FunctionRef<absl::Status(size_t tensor, int64_t offset, SharedFile& file)> write);

}  // namespace mgc

#endif  // MGC_RUNTIME_WEIGHTS_WRITE_IN_TURN_H_
