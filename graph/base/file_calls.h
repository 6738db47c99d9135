// System calls on files as this folder makes them: with errors that name the path.

#ifndef MGC_GRAPH_BASE_FILE_CALLS_H_
#define MGC_GRAPH_BASE_FILE_CALLS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace mgc {

// The error of a failed system call: "cannot <action> <path>: <the system's reason>".
absl::Status SystemError(int error, absl::string_view action, absl::string_view path);

// InvalidArgument for a path that no system call would take whole.
absl::Status CheckNoZeroByte(absl::string_view action, absl::string_view path);

// Writes all bytes at the file's position; `path` is named in errors.
absl::Status WriteAll(int file, absl::string_view bytes, absl::string_view path);

}  // namespace mgc

#endif  // MGC_GRAPH_BASE_FILE_CALLS_H_
