// Messages between the processes of a run: what shared memory and MPI have in common.
//
// A channel leads from one process to another and keeps messages in order. The sender fills a slot
// in place, the receiver reads it in place; a channel has a few slots, so that a sender runs ahead
// by these and no more, and nothing is written into a rank that does not expect it. Nothing here
// blocks: who finds no room or no message comes again.
//
// All messages of one channel are made and taken in the plan's order of communication, so that no
// message says what it is. Which channels there are both ends derive from the plan
// (runtime/comm/routes.h).

#ifndef MGC_RUNTIME_COMM_LINK_H_
#define MGC_RUNTIME_COMM_LINK_H_

#include <cstdint>
#include <tuple>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace mgc {

inline constexpr int64_t kMessageBytes = int64_t{64} << 10;  // of a slot
inline constexpr int kSlots = 4;                             // of a channel

enum class ChannelKind : uint8_t {
  kControl,   // between any process and the first
  kLine,      // between neighbours in a group's line of processes
  kDirect,    // between any two processes of a group
  kTransfer,  // between two ranks
  kWatch,     // between any process and the first: what each is at
};

// A channel's name, the same at both ends.
struct ChannelKey {
  int from = 0;  // processes
  int to = 0;
  ChannelKind kind = ChannelKind::kControl;
  int a = 0;  // the set of axes of a group, or the sending rank
  int b = 0;  // a group's first rank, or the receiving rank

  friend bool operator<(const ChannelKey& x, const ChannelKey& y) {
    return std::tie(x.from, x.to, x.kind, x.a, x.b) < std::tie(y.from, y.to, y.kind, y.a, y.b);
  }
  friend bool operator==(const ChannelKey& x, const ChannelKey& y) {
    return std::tie(x.from, x.to, x.kind, x.a, x.b) == std::tie(y.from, y.to, y.kind, y.a, y.b);
  }
};

// One thread at a time uses an end of a channel.
class Sender {
 public:
  virtual ~Sender() = default;
  // Where the next message, of up to kMessageBytes, is to be written; null while the receiver has
  // not taken enough of those before. The same place until Send.
  virtual char* Room() = 0;
  virtual void Send(int64_t bytes) = 0;
};

class Receiver {
 public:
  virtual ~Receiver() = default;
  // The next message; empty while it has not come. Valid until Release.
  virtual absl::Span<const char> Message() = 0;
  virtual void Release() = 0;
};

class Link {
 public:
  virtual ~Link() = default;
  // Makes the channels that begin or end in this process, `self`: sorted, no two the same. Waits
  // for the peers to do so. Once.
  virtual absl::Status Open(absl::Span<const ChannelKey> channels, int self) = 0;
  // By place in what Open was given; the one end that is here.
  virtual Sender& sender(size_t channel) = 0;
  virtual Receiver& receiver(size_t channel) = 0;
  // Does what must be done from time to time; the error of a connection that is lost. Any thread.
  virtual absl::Status Poll() = 0;
};

}  // namespace mgc

#endif  // MGC_RUNTIME_COMM_LINK_H_
