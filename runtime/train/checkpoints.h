// When a run saves its state, and from what it goes on.

#ifndef MGC_RUNTIME_TRAIN_CHECKPOINTS_H_
#define MGC_RUNTIME_TRAIN_CHECKPOINTS_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "runtime/run/arena.h"
#include "runtime/run/host.h"
#include "runtime/state/checkpoint.h"
#include "runtime/state/checkpoint_dir.h"
#include "runtime/train/trainer.h"

namespace mgc {

struct CheckpointOptions {
  std::string save_dir;  // empty: nothing is saved
  int64_t interval = 0;  // steps between saves; 0: none but the last
  double seconds = 0;    // after which the next step's end saves; 0: never
  int64_t keep = 0;      // checkpoints that stay; 0: all
  // Checkpoints between steps are written while the next step computes, which leans on the plan's
  // proof (memory_v6, docs/verify.md); else steps wait for them.
  bool in_background = true;
  // These are first copied to memory of their own, if there is as much: no update waits, and they
  // are written for as many steps as it takes.
  bool copies = false;
  std::function<Host()> host;  // what memory there is, for tests; empty: ReadHost
  // What a run begins from: a checkpoint in `load_dir`, where that is empty in `save_dir`.
  std::string load_dir;
  bool resume = true;               // false: from the first values, whatever there is
  bool tell_changes = true;         // options and data that differ from the checkpoint's
  absl::optional<int64_t> at_step;  // none: the last one that is whole
  std::string version;              // of mgc, kept in what is saved
};

// Every process of a run has one and calls the same functions; all end alike. The first one has the
// folder.
class Checkpoints {
 public:
  // All outlive this. `note` takes a line for people.
  Checkpoints(const CheckpointOptions& options, Trainer& trainer,
              std::function<void(const std::string&)> note)
      : options_(options), trainer_(trainer), note_(std::move(note)) {}
  ~Checkpoints();
  Checkpoints(const Checkpoints&) = delete;
  Checkpoints& operator=(const Checkpoints&) = delete;

  // Takes the folder that is saved to, and brings the trainer to where its run stopped. Of
  // checkpoints that are damaged each is noted, and the one before it is taken; without any whole
  // one the last error stands. NotFound when a step, or a folder to load from, has none. Where
  // there is no room for the copies that are asked for, this is noted, and none are made.
  absl::Status Open();

  bool saves() const { return !options_.save_dir.empty(); }
  // Whether the trainer's step is one to save after, by this process's clock.
  bool IsDue() const;
  // Saves this step, unless it is saved; what is still being written is settled first. Where it may
  // be done in the background, it is written while the next step computes, or a copy of it while
  // steps go on.
  absl::Status Save(bool in_background);
  // Behind a step: ends what is being written, if there is anything and it need not be waited for,
  // and removes what is too old. OutOfRange when a tensor is not finite.
  absl::Status SettleWritten();
  // The same, and waits.
  absl::Status Settle();

  // For how long training has not gone on because of checkpoints, since it was last asked.
  int64_t TakeStallNs() { return std::exchange(stall_ns_, 0); }

 private:
  absl::Status Resume();
  absl::Status Load(const std::string& dir, int64_t step);
  void TakeCopy();
  absl::Status MakeRoom();
  void WriteInBackground();
  void Write(absl::FunctionRef<void()> comes_on);
  void AwaitWriter();
  absl::Status End();

  const CheckpointOptions& options_;
  Trainer& trainer_;
  const std::function<void(const std::string&)> note_;
  std::unique_ptr<CheckpointDir> dir_;  // of the first process
  int64_t saved_step_ = -1;
  int64_t saved_ns_ = 0;  // when, or when the run began
  int64_t stall_ns_ = 0;

  std::unique_ptr<PendingCheckpoint> pending_;
  bool copied_ = false;  // what is pending is, in all processes
  std::thread writer_;
  std::atomic<bool> written_{false};
  std::atomic<int64_t> signs_{0};  // that the writer comes on
  int64_t wrote_ns_ = 0;           // how long

  absl::optional<Arena> room_;  // for copies
};

}  // namespace mgc

#endif  // MGC_RUNTIME_TRAIN_CHECKPOINTS_H_
