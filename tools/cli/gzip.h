// Files that are compressed because of their name.

#ifndef MGC_TOOLS_CLI_GZIP_H_
#define MGC_TOOLS_CLI_GZIP_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace mgc {

// `content` as the file `path` holds it: where the name ends in `.gz` in the gzip format (RFC
// 1952), the same for the same content; else as it is. ResourceExhausted without memory for it.
absl::StatusOr<std::string> AsNamed(const std::string& path, std::string content);

// `content` in the gzip format.
absl::StatusOr<std::string> Gzip(absl::string_view content);

}  // namespace mgc

#endif  // MGC_TOOLS_CLI_GZIP_H_
