// Reads the text of coming steps on a thread of its own, while the current step runs.
//
// What a step is fed with is the same with and without: a row that is not there, or whose reading
// failed, is read by who needs it, with the same bytes or the same error (FillData).

#ifndef MGC_RUNTIME_DATA_BATCH_READER_H_
#define MGC_RUNTIME_DATA_BATCH_READER_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "runtime/data/feed.h"
#include "runtime/data/token_batch.h"

namespace mgc {

// One thread uses it, beside its own; its texts outlive it. A batch that is being read when it is
// destroyed is left at its next row.
class BatchReader {
 public:
  // Reads `rows` (TextRowsOf) of batches of `batch_size` rows. Without rows, and where the system
  // gives no thread, it reads nothing.
  BatchReader(std::vector<int64_t> rows, int64_t batch_size, int64_t seq_length);
  ~BatchReader();
  BatchReader(const BatchReader&) = delete;
  BatchReader& operator=(const BatchReader&) = delete;

  // The step's text, as long as it is the last one taken; null if nothing is read, or the step has
  // no text. Waits until it is there, which it is at once if it was announced in time.
  const TokenBatch* Take(const StepData& step);

  // Has a step's text read while another one runs: of a training and of an evaluation each one
  // can be announced at a time, more replace the earlier ones.
  void Announce(const StepData& step);

 private:
  enum class Stage { kFree, kAnnounced, kReading, kRead };
  // A step of a text, and what has been read of it.
  struct Entry {
    explicit Entry(TokenBatch room) : batch(std::move(room)) {}

    TokenBatch batch;
    Stage stage = Stage::kFree;
    StepData step;
    int64_t number = 0;  // announcements count up
  };

  void Run();
  void ReadRows(Entry& entry);
  Entry* Find(const StepData& step);
  Entry* Oldest(Stage stage);
  void Post(const StepData& step);

  const std::vector<int64_t> rows_;
  std::mutex mutex_;
  std::condition_variable posted_, read_;
  // Guarded by the mutex; the batch of an entry that is being read is the thread's own.
  std::vector<Entry> entries_;
  Entry* taken_ = nullptr;
  int64_t announcements_ = 0;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace mgc

#endif  // MGC_RUNTIME_DATA_BATCH_READER_H_
