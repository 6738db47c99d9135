// Channels through memory that processes of one host share.
//
// Every process makes one region with the slots of all channels that begin in it; their readers map
// it. A channel is a ring with two counters, each written by one side only. Nothing has a name in
// the file system, so nothing is left behind, whatever dies.

#ifndef MGC_RUNTIME_COMM_SHARED_LINK_H_
#define MGC_RUNTIME_COMM_SHARED_LINK_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/comm/link.h"

namespace mgc {

// Memory, one region a process, that all of them can reach. Who makes it, a launcher decides.
class SharedRegions {
 public:
  virtual ~SharedRegions() = default;
  virtual int processes() const = 0;
  // This process's region: zeroed, aligned to a page. Once.
  virtual absl::StatusOr<char*> Make(int64_t bytes) = 0;
  // To be called when it is filled: others may have it now.
  virtual absl::Status Publish() = 0;
  // Another process's region, waited for until it is published.
  virtual absl::StatusOr<char*> Of(int process) = 0;
  // The error that ends the run, of whichever process.
  virtual absl::Status Check() = 0;
};

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
