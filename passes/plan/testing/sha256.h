// SHA-256 (FIPS 180-4), to compare long lists with outside vectors that give only their hash.

#ifndef MGC_PASSES_PLAN_TESTING_SHA256_H_
#define MGC_PASSES_PLAN_TESTING_SHA256_H_

#include <string>

#include "absl/strings/string_view.h"

namespace mgc {

// The hash of `text` as 64 hexadecimal digits.
std::string Sha256Hex(absl::string_view text);

}  // namespace mgc

#endif  // MGC_PASSES_PLAN_TESTING_SHA256_H_
