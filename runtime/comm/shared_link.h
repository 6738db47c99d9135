// Channels through memory that processes of one host share.
//
// Every process makes one region with the slots of all channels that begin in it; their readers map
// it. A channel is a ring with two counters, each written by one side only. Nothing has a name in
// the file system, so nothing is left behind, whatever dies.

#ifndef MGC_RUNTIME_COMM_SHARED_LINK_H_
#define MGC_RUNTIME_COMM_SHARED_LINK_H_

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "runtime/comm/link.h"
#include "runtime/comm/shared_regions.h"

namespace mgc {

class SharedLink : public Link {
 public:
  // `regions` must outlive the link.
  explicit SharedLink(SharedRegions& regions) : regions_(regions) {}

  absl::Status Open(absl::Span<const ChannelKey> channels, int self) override;
  Sender& sender(size_t channel) override { return *senders_[channel]; }
  Receiver& receiver(size_t channel) override { return *receivers_[channel]; }
  absl::Status Poll() override { return regions_.Check(); }

 private:
  SharedRegions& regions_;
  std::vector<std::unique_ptr<Sender>> senders_;  // null for channels that end here
  std::vector<std::unique_ptr<Receiver>> receivers_;
};

}  // namespace mgc

#endif  // MGC_RUNTIME_COMM_SHARED_LINK_H_
