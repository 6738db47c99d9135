// Channels through MPI: point-to-point messages over one communicator.
//
// A channel's tag is its number among those of the same two processes, which both ends derive from
// the sorted channels. The sender has kSlots buffers, each with a request of its own; the receiver
// has kSlots receives posted, from its first Message on, and MPI keeps both in order. No call waits
// for a peer but Open.

#ifndef MGC_RUNTIME_COMM_MPI_MPI_LINK_H_
#define MGC_RUNTIME_COMM_MPI_MPI_LINK_H_

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "runtime/comm/link.h"
#include "runtime/comm/mpi/mpi_world.h"

namespace mgc {

class MpiLink : public Link {
 public:
  // `world` must outlive the link; Open waits so long for the peers.
  MpiLink(MpiWorld& world, std::chrono::milliseconds patience);
  // Gives up receives that nothing has come for. Sends that are under way go on. No thread may be
  // in the link.
  ~MpiLink() override;

  // Processes are ranks of the world; all of them must call it, with channels or without. Another
  // link over the same world may be opened when this one is gone.
  absl::Status Open(absl::Span<const ChannelKey> channels, int self) override;
  Sender& sender(size_t channel) override;
  Receiver& receiver(size_t channel) override;
  // Also lets MPI move what has been sent, so that it moves while its sender does other things.
  absl::Status Poll() override;

 private:
  struct Shared;
  class MpiSender;
  class MpiReceiver;

  MpiWorld& world_;
  const std::chrono::milliseconds patience_;
  const std::unique_ptr<Shared> shared_;
  std::vector<std::unique_ptr<MpiSender>> senders_;  // null for channels that end here
  std::vector<std::unique_ptr<MpiReceiver>> receivers_;
  std::vector<MpiSender*> all_senders_;  // without nulls
  size_t polled_ = 0;                    // of these, with the communicator's mutex
};

}  // namespace mgc

#endif  // MGC_RUNTIME_COMM_MPI_MPI_LINK_H_
