// MPI's own types, for the sources of this folder only: others need no <mpi.h>.
//
// MPI is initialized for one calling thread at a time. Whoever calls it, on whatever thread, holds
// the mutex meanwhile, and so makes no call that waits for another process, but when a run begins
// (MpiAllReduces::Open) and ends (MpiWorld::Finalize); MpiWorld::Abort waits for neither.

#ifndef MGC_RUNTIME_COMM_MPI_MPI_LIBRARY_H_
#define MGC_RUNTIME_COMM_MPI_MPI_LIBRARY_H_

#include <mpi/mpi.h>

#include <memory>
#include <mutex>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace mgc {

// What a world and its links have in common.
struct MpiCommunicator {
  std::mutex mutex;
  MPI_Comm comm = MPI_COMM_NULL;  // a duplicate: nobody else's messages are in it
  // Memory that MPI may still read or write, though who asked for it is gone. With `mutex`.
  std::vector<std::shared_ptr<void>> kept;
};

// OK for MPI_SUCCESS, else an error with `what` before MPI's own text.
absl::Status ToStatus(int code, absl::string_view what);

}  // namespace mgc

#endif  // MGC_RUNTIME_COMM_MPI_MPI_LIBRARY_H_
