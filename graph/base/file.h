// Whole files in, whole files out.
//
// Every file this project reads or writes for its user passes through here, so that three promises
// hold everywhere: an unreadable path gives one clear error, a write that fails leaves the old file
// (or none) and never half of the new one, and no byte of a file name reaches a terminal unescaped.
#ifndef MGC_GRAPH_BASE_FILE_H_
#define MGC_GRAPH_BASE_FILE_H_

#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace mgc {

// Files above this size are refused unless the caller asks for more: a path that never ends (a
// pipe, a growing log) must give an error before it takes all memory.
inline constexpr int64_t kMaxReadBytes = int64_t{16} << 30;

// `bytes` fit to be shown in a message: printable ASCII stays, a backslash is doubled, all else
// becomes \xNN.
std::string EscapeBytes(absl::string_view bytes);

// Whether `path` itself, not what it links to, is the file opened as `file`: a file that was locked
// may have been moved or replaced before.
bool IsNamed(int file, const std::string& path);

// The content of the regular file or pipe at `path`. Errors name the escaped path: NotFound,
// PermissionDenied, FailedPrecondition for a directory, device or socket, ResourceExhausted above
// `max_bytes`.
absl::StatusOr<std::string> ReadFile(const std::string& path, int64_t max_bytes = kMaxReadBytes);

// Hands the same content to `take` in pieces of 1 MiB, the last may be shorter: for files of which
// not all is to be in memory. OK, or an error as above, behind the pieces that could be read; or
// the first error of `take`, which is given no more then.
absl::Status ReadPieces(const std::string& path,
                        absl::FunctionRef<absl::Status(absl::string_view piece)> take);

// Makes `pieces`, one after the other, the content of `path`. The bytes go to a temporary file in
// the same directory, which is synchronized to disk and renamed over `path`, keeping the
// permissions of a file that was there; after any error the temporary file is gone and `path` is as
// before. What killed writers have left in that directory is removed. A symbolic link is followed.
// A path that exists and is a device or a pipe (/dev/stdout) is written to directly.
absl::Status WriteFileAtomically(const std::string& path,
                                 absl::Span<const absl::string_view> pieces);
absl::Status WriteFileAtomically(const std::string& path, absl::string_view content);

}  // namespace mgc

#endif  // MGC_GRAPH_BASE_FILE_H_
