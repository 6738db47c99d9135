#include "runtime/comm/shared_link.h"

#include <atomic>
#include <cstring>
#include <new>

#include "graph/base/status.h"

namespace mgc {
namespace {

constexpr size_t kLine = 64;

// What a ring's two sides tell each other, behind which its slots lie.
struct Ring {
  alignas(kLine) std::atomic<uint64_t> sent{0};   // messages, written by the sender
  alignas(kLine) std::atomic<uint64_t> taken{0};  // written by the receiver
  alignas(kLine) int64_t bytes[kSlots] = {};      // of the message in each slot
};
static_assert(std::atomic<uint64_t>::is_always_lock_free, "counters are shared by processes");

constexpr int64_t kRingBytes = kRegionPage + kSlots * kMessageBytes;
static_assert(sizeof(Ring) <= kRegionPage, "a ring's slots begin on a page");

char* SlotOf(Ring* ring, uint64_t message) {
  return reinterpret_cast<char*>(ring) + kRegionPage +
         static_cast<int64_t>(message % kSlots) * kMessageBytes;
}

class SharedSender : public Sender {
 public:
  explicit SharedSender(Ring* ring) : ring_(ring) {}
  char* Room() override {
    if (sent_ - taken_ == kSlots) taken_ = ring_->taken.load(std::memory_order_acquire);
    return sent_ - taken_ == kSlots ? nullptr : SlotOf(ring_, sent_);
  }
  void Send(int64_t bytes) override {
    ring_->bytes[sent_ % kSlots] = bytes;
    ring_->sent.store(++sent_, std::memory_order_release);
  }

 private:
  Ring* ring_;
  uint64_t sent_ = 0;
  uint64_t taken_ = 0;  // as last seen
};

class SharedReceiver : public Receiver {
 public:
  explicit SharedReceiver(Ring* ring) : ring_(ring) {}
  absl::Span<const char> Message() override {
    if (sent_ == taken_) sent_ = ring_->sent.load(std::memory_order_acquire);
    if (sent_ == taken_) return {};
    return {SlotOf(ring_, taken_), static_cast<size_t>(ring_->bytes[taken_ % kSlots])};
  }
  void Release() override { ring_->taken.store(++taken_, std::memory_order_release); }

 private:
  Ring* ring_;
  uint64_t sent_ = 0;  // as last seen
  uint64_t taken_ = 0;
};

// The region begins with where the rings to each process begin.
int64_t TableBytes(int processes) {
  const int64_t bytes = processes * static_cast<int64_t>(sizeof(int64_t));
  return WholePages(bytes);
}

}  // namespace

absl::Status SharedLink::Open(absl::Span<const ChannelKey> channels, int self) {
  senders_.resize(channels.size());
  receivers_.resize(channels.size());
  int64_t at = TableBytes(regions_.processes());
  std::vector<int64_t> begins(static_cast<size_t>(regions_.processes()), -1);
  std::vector<std::pair<size_t, int64_t>> rings;  // of channels that begin here
  for (size_t c = 0; c < channels.size(); ++c) {
    if (channels[c].from != self) continue;
    int64_t& begin = begins[static_cast<size_t>(channels[c].to)];
    if (begin < 0) begin = at;
    rings.emplace_back(c, at);
    at += kRingBytes;
  }
  MGC_ASSIGN_OR_RETURN(char* const own, regions_.Make(at));
  std::memcpy(own, begins.data(), begins.size() * sizeof(int64_t));
  for (const auto& [channel, place] : rings) {
    senders_[channel] = std::make_unique<SharedSender>(new (own + place) Ring);
  }
  MGC_RETURN_IF_ERROR(regions_.Publish());
  std::vector<int64_t> next(begins.size(), -1);  // by peer: its next ring to this process
  std::vector<char*> regions(begins.size());
  for (size_t c = 0; c < channels.size(); ++c) {
    if (channels[c].to != self) continue;
    const size_t peer = static_cast<size_t>(channels[c].from);
    if (next[peer] < 0) {
      MGC_ASSIGN_OR_RETURN(regions[peer], regions_.Of(channels[c].from));
      std::memcpy(&next[peer], regions[peer] + self * sizeof(int64_t), sizeof(int64_t));
    }
    receivers_[c] =
        std::make_unique<SharedReceiver>(reinterpret_cast<Ring*>(regions[peer] + next[peer]));
    next[peer] += kRingBytes;
  }
  return absl::OkStatus();
}

}  // namespace mgc
