// Files in the gzip format (RFC 1952).

#ifndef MGC_TOOLS_CLI_GZIP_H_
#define MGC_TOOLS_CLI_GZIP_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace mgc {

// `content` as the file `path` holds it: where the name ends in `.gz` compressed, the same for the
// same content; else as it is. ResourceExhausted without memory for it.
absl::StatusOr<std::string> AsNamed(const std::string& path, std::string content);

// What a file holds whose bytes are `content`, whatever its name: those of a compressed file are
// told by how they begin. InvalidArgument, with the escaped `path`, for one that is damaged or cut,
// ResourceExhausted for more than `most_bytes`.
absl::StatusOr<std::string> AsRead(const std::string& path, std::string content,
                                   size_t most_bytes = size_t{16} << 30);

// `content` in the gzip format.
absl::StatusOr<std::string> Gzip(absl::string_view content);

}  // namespace mgc

#endif  // MGC_TOOLS_CLI_GZIP_H_
