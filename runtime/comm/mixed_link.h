// Channels of which some go one way, some another: through shared memory to processes of the same
// host, through MPI to all others.

#ifndef MGC_RUNTIME_COMM_MIXED_LINK_H_
#define MGC_RUNTIME_COMM_MIXED_LINK_H_

#include <cstddef>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "runtime/comm/link.h"

namespace mgc {

class MixedLink : public Link {
 public:
  // `is_near` says by process whether `near` leads there; two processes must say the same of each
  // other. Both links must outlive this one.
  MixedLink(std::vector<bool> is_near, Link& near, Link& far)
      : is_near_(std::move(is_near)), near_(near), far_(far) {}

  // Opens both, the near one first, also without channels: opening is waiting for all processes.
  absl::Status Open(absl::Span<const ChannelKey> channels, int self) override;
  Sender& sender(size_t channel) override {
    return places_[channel].link->sender(places_[channel].channel);
  }
  Receiver& receiver(size_t channel) override {
    return places_[channel].link->receiver(places_[channel].channel);
  }
  absl::Status Poll() override;

 private:
  struct Place {
    Link* link;
    size_t channel;  // of that link
  };

  const std::vector<bool> is_near_;
  Link& near_;
  Link& far_;
  std::vector<Place> places_;  // by channel
};

}  // namespace mgc

#endif  // MGC_RUNTIME_COMM_MIXED_LINK_H_
