// Arrays in NumPy's format
// (https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html).
//
// A file is `\x93NUMPY`, the version, the header's length (u16, little endian), a header that is
// the text of a Python dict with `descr`, `fortran_order` and `shape`, and the values.

#ifndef MGC_RUNTIME_DATA_NPY_H_
#define MGC_RUNTIME_DATA_NPY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/data/sample_tensor.h"

namespace mgc {

struct NpyHeader {
  std::string descr;  // the type
  bool fortran_order = false;
  std::vector<int64_t> shape;
  int64_t bytes = 0;  // before the values
};

// No header of version 1.0 is longer.
inline constexpr int64_t kMostNpyHeaderBytes = 10 + 65535;

// The header of a file in C order that begins with `bytes`. Errors as of ParseNpy.
absl::StatusOr<NpyHeader> ParseNpyHeader(absl::string_view bytes, absl::string_view name);

// The array that `bytes`, the content of a file named `name`, hold: version 1.0, in C order, `<f4`,
// `<i8` or `<i4` (widened to i64). InvalidArgument for all else: another version, order or type, a
// header that is no such dict, values that are too few or too many.
absl::StatusOr<SampleTensor> ParseNpy(absl::string_view bytes, absl::string_view name);

}  // namespace mgc

#endif  // MGC_RUNTIME_DATA_NPY_H_
