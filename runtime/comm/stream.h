// Pieces of up to a message's size, packed into the messages of a channel.
//
// Both ends know the sizes of all pieces and so where a message ends: a piece that does not fit
// begins the next one.

#ifndef MGC_RUNTIME_COMM_STREAM_H_
#define MGC_RUNTIME_COMM_STREAM_H_

#include <cstdint>

#include "runtime/comm/link.h"

namespace mgc {

// Places of pieces in a message are multiples of it.
inline constexpr int64_t kPieceAlignment = 64;

class PieceWriter {
 public:
  explicit PieceWriter(Sender* sender = nullptr) : sender_(sender) {}

  // Where the next piece is to be written; null while there is no room.
  char* Reserve(int64_t bytes) {
    if (room_ != nullptr && used_ + bytes > kMessageBytes) Flush();
    if (room_ == nullptr) {
      room_ = sender_->Room();
      used_ = 0;
    }
    return room_ == nullptr ? nullptr : room_ + used_;
  }
  // That piece is written. A full message goes at once.
  void Commit(int64_t bytes) {
    used_ += Aligned(bytes);
    if (used_ == kMessageBytes) Flush();
  }
  // Sends what has been written and not sent.
  void Flush() {
    if (room_ == nullptr) return;
    sender_->Send(used_);
    room_ = nullptr;
  }

  static int64_t Aligned(int64_t bytes) {
    return (bytes + kPieceAlignment - 1) / kPieceAlignment * kPieceAlignment;
  }

 private:
  Sender* sender_;
  char* room_ = nullptr;
  int64_t used_ = 0;
};

class PieceReader {
 public:
  explicit PieceReader(Receiver* receiver = nullptr) : receiver_(receiver) {}

  // The next piece; null while it has not come.
  const char* Peek() {
    if (message_.empty()) {
      message_ = receiver_->Message();
      used_ = 0;
    }
    return message_.empty() ? nullptr : message_.data() + used_;
  }
  // That piece, of `bytes`, is taken.
  void Skip(int64_t bytes) {
    used_ += PieceWriter::Aligned(bytes);
    if (used_ < static_cast<int64_t>(message_.size())) return;
    receiver_->Release();
    message_ = {};
  }

 private:
  Receiver* receiver_;
  absl::Span<const char> message_;
  int64_t used_ = 0;
};

}  // namespace mgc

#endif  // MGC_RUNTIME_COMM_STREAM_H_
