#include "runtime/comm/mpi/mpi_link.h"

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime/comm/mpi/mpi_library.h"

namespace mgc {

// What the ends of channels have in common with their link.
struct MpiLink::Shared {
  explicit Shared(MpiCommunicator& c) : communicator(c) {}

  // With the communicator's mutex: whether a call went well. The first error stays.
  bool Check(int code, const char* what, int peer, int tag) {
    if (code == MPI_SUCCESS) return true;
    status.Update(ToStatus(code, absl::StrCat(what, " process ", peer, ", channel ", tag)));
    failed.store(true, std::memory_order_release);
    return false;
  }

  MpiCommunicator& communicator;
  absl::Status status;  // with the mutex
  std::atomic<bool> failed{false};
  std::atomic<int> sending{0};  // messages that MPI may not have done with
};

namespace {

// The buffers of one end of a channel. They come to be with its first message: most processes have
// channels for what a plan could send, and use few.
struct Slots {
  char* At(uint64_t message) const { return bytes.get() + Index(message) * kMessageBytes; }
  MPI_Request& RequestOf(uint64_t message) { return requests[Index(message)]; }
  void Allocate() {
    bytes = std::shared_ptr<char[]>(new char[kSlots * kMessageBytes]);
    requests.fill(MPI_REQUEST_NULL);
  }
  static size_t Index(uint64_t message) { return static_cast<size_t>(message % kSlots); }

  std::shared_ptr<char[]> bytes;
  std::array<MPI_Request, kSlots> requests;
};

// Lets go of requests, cancelled ones or not. Buffers that MPI still uses stay where they are.
void LetGo(MpiCommunicator& communicator, Slots* slots) {
  bool in_use = false;
  for (MPI_Request& request : slots->requests) {
    if (request == MPI_REQUEST_NULL) continue;
    int done = 0;
    if (MPI_Test(&request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && done != 0) continue;
    in_use = true;
    if (request != MPI_REQUEST_NULL) MPI_Request_free(&request);
  }
  if (in_use) communicator.kept.push_back(slots->bytes);
}

}  // namespace

class MpiLink::MpiSender : public Sender {
 public:
  MpiSender(Shared& shared, int peer, int tag) : shared_(shared), peer_(peer), tag_(tag) {}
  ~MpiSender() override {
    if (slots_.bytes == nullptr) return;
    std::lock_guard<std::mutex> lock(shared_.communicator.mutex);
    LetGo(shared_.communicator, &slots_);
  }

  char* Room() override {
    if (sent_ - done_.load(std::memory_order_acquire) == kSlots) {
      std::lock_guard<std::mutex> lock(shared_.communicator.mutex);
      Retire();
    }
    if (sent_ - done_.load(std::memory_order_acquire) == kSlots) return nullptr;
    if (slots_.bytes == nullptr) slots_.Allocate();
    return slots_.At(sent_);
  }

  void Send(int64_t bytes) override {
    std::lock_guard<std::mutex> lock(shared_.communicator.mutex);
    const int code = MPI_Isend(slots_.At(sent_), static_cast<int>(bytes), MPI_BYTE, peer_, tag_,
                               shared_.communicator.comm, &slots_.RequestOf(sent_));
    shared_.Check(code, "sending to", peer_, tag_);
    ++sent_;
    shared_.sending.fetch_add(1, std::memory_order_relaxed);
  }

  // With the mutex: looks whether the oldest message is out of its slot, and makes MPI move.
  void Retire() {
    const uint64_t oldest = done_.load(std::memory_order_relaxed);
    if (oldest == sent_ || shared_.failed.load(std::memory_order_relaxed)) return;
    int done = 0;
    const int code = MPI_Test(&slots_.RequestOf(oldest), &done, MPI_STATUS_IGNORE);
    if (!shared_.Check(code, "sending to", peer_, tag_) || done == 0) return;
    shared_.sending.fetch_sub(1, std::memory_order_relaxed);
    done_.store(oldest + 1, std::memory_order_release);
  }
  bool idle() const { return done_.load(std::memory_order_relaxed) == sent_; }

 private:
  Shared& shared_;
  const int peer_;
  const int tag_;
  Slots slots_;
  uint64_t sent_ = 0;              // written by the one thread that sends, with the mutex
  std::atomic<uint64_t> done_{0};  // written with the mutex
};

class MpiLink::MpiReceiver : public Receiver {
 public:
  MpiReceiver(Shared& shared, int peer, int tag) : shared_(shared), peer_(peer), tag_(tag) {}
  ~MpiReceiver() override {
    if (slots_.bytes == nullptr) return;
    std::lock_guard<std::mutex> lock(shared_.communicator.mutex);
    for (MPI_Request& request : slots_.requests) {
      if (request != MPI_REQUEST_NULL) MPI_Cancel(&request);
    }
    LetGo(shared_.communicator, &slots_);
  }

  absl::Span<const char> Message() override {
    if (bytes_ == 0) {
      std::lock_guard<std::mutex> lock(shared_.communicator.mutex);
      if (slots_.bytes == nullptr) PostAll();
      TestOldest();
    }
    if (bytes_ == 0) return {};
    return {slots_.At(taken_), static_cast<size_t>(bytes_)};
  }

  void Release() override {
    std::lock_guard<std::mutex> lock(shared_.communicator.mutex);
    Post(taken_);
    ++taken_;
    bytes_ = 0;
  }

 private:
  void PostAll() {
    slots_.Allocate();
    for (uint64_t message = 0; message < kSlots; ++message) Post(message);
  }
  void Post(uint64_t message) {
    if (shared_.failed.load(std::memory_order_relaxed)) return;
    const int code = MPI_Irecv(slots_.At(message), static_cast<int>(kMessageBytes), MPI_BYTE, peer_,
                               tag_, shared_.communicator.comm, &slots_.RequestOf(message));
    shared_.Check(code, "receiving from", peer_, tag_);
  }
  void TestOldest() {
    if (shared_.failed.load(std::memory_order_relaxed)) return;
    int done = 0;
    MPI_Status status;
    const int code = MPI_Test(&slots_.RequestOf(taken_), &done, &status);
    if (!shared_.Check(code, "receiving from", peer_, tag_) || done == 0) return;
    int bytes = 0;
    if (!shared_.Check(MPI_Get_count(&status, MPI_BYTE, &bytes), "measuring a message of", peer_,
                       tag_)) {
      return;
    }
    bytes_ = bytes;
  }

  Shared& shared_;
  const int peer_;
  const int tag_;
  Slots slots_;
  uint64_t taken_ = 0;
  int64_t bytes_ = 0;  // of the message in the oldest slot; 0: none yet
};

MpiLink::MpiLink(MpiWorld& world, std::chrono::milliseconds patience)
    : world_(world), patience_(patience), shared_(std::make_unique<Shared>(world.communicator())) {}

MpiLink::~MpiLink() = default;

absl::Status MpiLink::Open(absl::Span<const ChannelKey> channels, int self) {
  MpiCommunicator& communicator = world_.communicator();
  int most = 0;
  {
    std::lock_guard<std::mutex> lock(communicator.mutex);
    int* value = nullptr;
    int found = 0;
    MGC_RETURN_IF_ERROR(ToStatus(MPI_Comm_get_attr(communicator.comm, MPI_TAG_UB, &value, &found),
                                 "asking for the largest tag"));
    most = found != 0 ? *value : 32767;  // which the standard grants
  }
  senders_.resize(channels.size());
  receivers_.resize(channels.size());
  std::map<std::pair<int, int>, int> tags;  // the next one, by processes
  for (size_t c = 0; c < channels.size(); ++c) {
    const ChannelKey& key = channels[c];
    const int tag = tags[{key.from, key.to}]++;
    if (tag > most) {
      return absl::ResourceExhaustedError(
          absl::StrCat("more than ", most, " channels from process ", key.from, " to process ",
                       key.to, ": this MPI library has no more tags"));
    }
    if (key.from == self) {
      senders_[c] = std::make_unique<MpiSender>(*shared_, key.to, tag);
      all_senders_.push_back(senders_[c].get());
    } else {
      receivers_[c] = std::make_unique<MpiReceiver>(*shared_, key.from, tag);
    }
  }
  // A message must not meet the receives of a link that was here before.
  return world_.Gather("", patience_).status();
}

Sender& MpiLink::sender(size_t channel) { return *senders_[channel]; }

Receiver& MpiLink::receiver(size_t channel) { return *receivers_[channel]; }

absl::Status MpiLink::Poll() {
  MpiCommunicator& communicator = shared_->communicator;
  if (shared_->sending.load(std::memory_order_relaxed) > 0) {
    std::unique_lock<std::mutex> lock(communicator.mutex, std::try_to_lock);
    if (lock.owns_lock()) {
      for (size_t i = 0; i < all_senders_.size() && all_senders_[polled_]->idle(); ++i) {
        polled_ = (polled_ + 1) % all_senders_.size();
      }
      all_senders_[polled_]->Retire();
      polled_ = (polled_ + 1) % all_senders_.size();
    }
  }
  if (!shared_->failed.load(std::memory_order_acquire)) return absl::OkStatus();
  std::lock_guard<std::mutex> lock(communicator.mutex);
  return shared_->status;
}

}  // namespace mgc
