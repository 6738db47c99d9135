// Boards of processes that share no memory: each tells the first what its ranks are at, and the
// first tells each that it lives.

#ifndef MGC_TOOLS_LAUNCH_BOARD_MAIL_H_
#define MGC_TOOLS_LAUNCH_BOARD_MAIL_H_

#include <cstdint>
#include <vector>

#include "runtime/comm/communicator.h"
#include "runtime/watch/board.h"

namespace mgc {

class BoardMail {
 public:
  // Both must outlive it; `communicator` is open.
  BoardMail(Communicator& communicator, const Board& board)
      : communicator_(communicator), board_(board) {}

  // Sends what there is to tell and takes what has come. From time to time, by one thread.
  void Exchange(int64_t now_ns);

 private:
  void SendTo(int process, int64_t now_ns);
  void TakeFrom(int process, int64_t now_ns);

  Communicator& communicator_;
  const Board& board_;
};

}  // namespace mgc

#endif  // MGC_TOOLS_LAUNCH_BOARD_MAIL_H_
