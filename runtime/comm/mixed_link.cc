#include "runtime/comm/mixed_link.h"

#include "graph/base/status.h"

namespace mgc {

absl::Status MixedLink::Open(absl::Span<const ChannelKey> channels, int self) {
  std::vector<ChannelKey> near, far;
  for (const ChannelKey& key : channels) {
    const int peer = key.from == self ? key.to : key.from;
    const bool goes_near = is_near_[static_cast<size_t>(peer)];
    std::vector<ChannelKey>& keys = goes_near ? near : far;
    places_.push_back({goes_near ? &near_ : &far_, keys.size()});
    keys.push_back(key);
  }
  MGC_RETURN_IF_ERROR(near_.Open(near, self));
  return far_.Open(far, self);
}

absl::Status MixedLink::Poll() {
  MGC_RETURN_IF_ERROR(near_.Poll());
  return far_.Poll();
}

}  // namespace mgc
