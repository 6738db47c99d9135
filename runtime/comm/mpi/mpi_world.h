// The processes that an MPI launcher has started together: their beginning and their end, and what
// they tell each other before there are channels.
//
// One world per process and program: MPI can be initialized once. A process that ends with neither
// Finalize nor Abort is taken for a failed one by the launcher, which ends the others.

#ifndef MGC_RUNTIME_COMM_MPI_MPI_WORLD_H_
#define MGC_RUNTIME_COMM_MPI_MPI_WORLD_H_

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace mgc {

struct MpiCommunicator;  // runtime/comm/mpi/mpi_library.h

class MpiWorld {
 public:
  // Waits for all processes. FailedPrecondition where the library lets the main thread only call
  // it, or where MPI has been initialized already.
  static absl::StatusOr<std::unique_ptr<MpiWorld>> Create();
  ~MpiWorld();
  MpiWorld(const MpiWorld&) = delete;
  MpiWorld& operator=(const MpiWorld&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  MpiCommunicator& communicator() { return *communicator_; }

  // What every process gives, in their order. All call it, and in the same order if several times.
  // DeadlineExceeded when they have not within that time; after this the world is good for Abort
  // only. Other threads may use links meanwhile.
  absl::StatusOr<std::vector<std::string>> Gather(absl::string_view mine,
                                                  std::chrono::milliseconds deadline);

  // The good end, behind that of all links: waits until all processes are there.
  absl::Status Finalize();
  // The bad end of all processes, with `code` as the launcher's exit code. Flushes first what this
  // process has written.
  [[noreturn]] void Abort(int code);

 private:
  MpiWorld();

  std::unique_ptr<MpiCommunicator> communicator_;
  int rank_ = 0;
  int size_ = 1;
};

}  // namespace mgc

#endif  // MGC_RUNTIME_COMM_MPI_MPI_WORLD_H_
