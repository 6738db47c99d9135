// Reads the outside test vectors of tests/data; formats are described in tests/data/README.md.

#ifndef MGC_PASSES_PLAN_TESTING_VECTORS_H_
#define MGC_PASSES_PLAN_TESTING_VECTORS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace mgc {

// The content of tests/data/`name`. A failure of the running test, and empty, if it cannot be read.
std::string ReadVectors(const std::string& name);

// Its lines, split at spaces. Fails the running test when there is none.
std::vector<std::vector<std::string>> ReadVectorRows(const std::string& name);

// The number a field holds; fails the running test for other text.
int64_t ToInt(absl::string_view field);

// Numbers separated by commas.
std::vector<int64_t> ToInts(absl::string_view field);

}  // namespace mgc

#endif  // MGC_PASSES_PLAN_TESTING_VECTORS_H_
