// For tests that read arrays of NumPy.

#ifndef MGC_RUNTIME_DATA_TESTING_NPY_TEXT_H_
#define MGC_RUNTIME_DATA_TESTING_NPY_TEXT_H_

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace mgc {

// The bytes of an .npy file; `shape` as within its parentheses: `3,` or `3, 2`.
template <typename Number>
std::string NpyText(absl::string_view descr, absl::string_view shape,
                    const std::vector<Number>& values) {
  const std::string header =
      absl::StrCat("{'descr': '", descr, "', 'fortran_order': False, 'shape': (", shape, "), }\n");
  std::string file("\x93NUMPY\x01\x00", 8);
  file += static_cast<char>(header.size() & 255);
  file += static_cast<char>(header.size() >> 8);
  absl::StrAppend(&file, header,
                  absl::string_view(reinterpret_cast<const char*>(values.data()),
                                    values.size() * sizeof(Number)));
  return file;
}

}  // namespace mgc

#endif  // MGC_RUNTIME_DATA_TESTING_NPY_TEXT_H_
