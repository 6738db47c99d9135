// All-reduces by the MPI library's own MPI_Iallreduce, one communicator for each group.
//
// Processes that share several groups may come to their collectives in different orders; of one
// group all come to them in the same. All calls but Open's return at once: requests are tested.

#ifndef MGC_RUNTIME_COMM_MPI_MPI_ALL_REDUCES_H_
#define MGC_RUNTIME_COMM_MPI_MPI_ALL_REDUCES_H_

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "runtime/comm/all_reduce_library.h"
#include "runtime/comm/mpi/mpi_world.h"

namespace mgc {

class MpiAllReduces : public AllReduceLibrary {
 public:
  // `world` must outlive it.
  explicit MpiAllReduces(MpiWorld& world);
  // Gives the communicators back, but those with pieces under way: MPI cannot give such a piece up,
  // so its memory stays. No thread may be in a group.
  ~MpiAllReduces() override;

  // Processes are ranks of the world. Blocks within MPI: the members must have come to it, or be
  // about to, and what ends a wait in vain is MpiWorld::Abort.
  absl::Status Open(absl::Span<const LibraryGroupKey> groups) override;
  LibraryGroup& group(size_t place) override;
  absl::Status Poll() override;

 private:
  struct Shared;
  class Group;

  const std::unique_ptr<Shared> shared_;
  std::vector<std::unique_ptr<Group>> groups_;
};

}  // namespace mgc

#endif  // MGC_RUNTIME_COMM_MPI_MPI_ALL_REDUCES_H_
