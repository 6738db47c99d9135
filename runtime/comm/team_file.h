// A file that the processes of a run write together.

#ifndef MGC_RUNTIME_COMM_TEAM_FILE_H_
#define MGC_RUNTIME_COMM_TEAM_FILE_H_

#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "graph/base/shared_file.h"
#include "runtime/comm/team.h"

namespace mgc {

// Makes a file of `bytes` the content of `path`: every process calls this, with the same path and
// size, and `write` puts what it has into its places. Either all return OK and the file is whole,
// or all return the error that Team::Agree chooses, `path` is as before and no temporary file is
// left. A device or a pipe is InvalidArgument for more than one process.
absl::Status WriteTogether(Team& team, const std::string& path, int64_t bytes,
                           absl::FunctionRef<absl::Status(SharedFile&)> write);

}  // namespace mgc

#endif  // MGC_RUNTIME_COMM_TEAM_FILE_H_
