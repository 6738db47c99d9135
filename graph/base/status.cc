#include "graph/base/status.h"

#include <cstdio>
#include <cstdlib>
#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"

namespace mgc {

absl::Status Annotate(const absl::Status& status, absl::string_view text) {
  if (status.ok() || text.empty()) return status;
  absl::Status annotated(status.code(), absl::StrCat(text, ": ", status.message()));
  status.ForEachPayload([&annotated](absl::string_view url, const absl::Cord& payload) {
    annotated.SetPayload(url, payload);
  });
  return annotated;
}

namespace internal {

CheckFailure::CheckFailure(const char* file, int line, const char* condition) {
  stream_ << file << ":" << line << ": check failed: " << condition << " ";
}

CheckFailure::~CheckFailure() {
  std::fprintf(stderr, "%s\n", stream_.str().c_str());
  std::fflush(stderr);
  std::abort();
}

}  // namespace internal
}  // namespace mgc
