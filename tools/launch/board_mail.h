// Boards of processes that share no memory: each tells the first what its ranks are at, and the
// first tells each that it lives.

#ifndef MGC_TOOLS_LAUNCH_BOARD_MAIL_H_
#define MGC_TOOLS_LAUNCH_BOARD_MAIL_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "runtime/comm/communicator.h"
#include "runtime/watch/board.h"

namespace mgc {

// What a board says of a process and its ranks, put on another board of the same host.
void CopyProcess(const Board& from, int process, const Board& to, int64_t now_ns);

class BoardMail {
 public:
  // The first two must outlive it; `communicator` is open. Processes that `is_read` are read by the
  // first process in another way.
  BoardMail(Communicator& communicator, const Board& board, std::vector<bool> is_read)
      : communicator_(communicator), board_(board), is_read_(std::move(is_read)) {}

  // Sends what there is to tell and takes what has come. From time to time, by one thread.
  void Exchange(int64_t now_ns);

 private:
  void SendTo(int process, int64_t now_ns);
  void TakeFrom(int process, int64_t now_ns);

  Communicator& communicator_;
  const Board& board_;
  const std::vector<bool> is_read_;
};

}  // namespace mgc

#endif  // MGC_TOOLS_LAUNCH_BOARD_MAIL_H_
