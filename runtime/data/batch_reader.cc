#include "runtime/data/batch_reader.h"

#include <algorithm>
#include <system_error>
#include <utility>

namespace mgc {
namespace {

// The one that is taken, and one each of training and evaluation that is announced.
constexpr int kEntries = 3;

bool IsSame(const StepData& a, const StepData& b) {
  return a.data == b.data && a.first_sample == b.first_sample && a.end_sample == b.end_sample;
}

}  // namespace

BatchReader::BatchReader(std::vector<int64_t> rows, int64_t batch_size, int64_t seq_length)
    : rows_(std::move(rows)) {
  if (rows_.empty()) return;
  entries_.assign(kEntries, Entry(TokenBatch(rows_, batch_size, seq_length)));
  try {
    thread_ = std::thread([this] { Run(); });
  } catch (const std::system_error&) {
    // Steps read for themselves.
  }
}

BatchReader::~BatchReader() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  posted_.notify_all();
  if (thread_.joinable()) thread_.join();
}

BatchReader::Entry* BatchReader::Find(const StepData& step) {
  for (Entry& entry : entries_) {
    if (entry.stage != Stage::kFree && IsSame(entry.step, step)) return &entry;
  }
  return nullptr;
}

BatchReader::Entry* BatchReader::Oldest(Stage stage) {
  Entry* oldest = nullptr;
  for (Entry& entry : entries_) {
    if (entry.stage != stage || &entry == taken_) continue;
    if (oldest == nullptr || entry.number < oldest->number) oldest = &entry;
  }
  return oldest;
}

// Into an entry that nobody waits for: a free one, else the one that was announced first.
void BatchReader::Post(const StepData& step) {
  Entry* entry = Oldest(Stage::kFree);
  if (entry == nullptr) entry = Oldest(Stage::kRead);
  if (entry == nullptr) entry = Oldest(Stage::kAnnounced);
  if (entry == nullptr) return;
  entry->step = step;
  entry->step.tensors = {};
  entry->number = ++announcements_;
  entry->stage = Stage::kAnnounced;
  posted_.notify_one();
}

const TokenBatch* BatchReader::Take(const StepData& step) {
  if (!thread_.joinable() || step.data == nullptr) return nullptr;
  std::unique_lock<std::mutex> lock(mutex_);
  Entry* entry = Find(step);
  if (entry != taken_ && taken_ != nullptr) taken_->stage = Stage::kFree;
  taken_ = nullptr;
  if (entry == nullptr) {
    Post(step);
    entry = Find(step);
  }
  if (entry == nullptr) return nullptr;
  taken_ = entry;
  read_.wait(lock, [entry] { return entry->stage == Stage::kRead; });
  return &entry->batch;
}

void BatchReader::Announce(const StepData& step) {
  if (!thread_.joinable() || step.data == nullptr) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (Find(step) == nullptr) Post(step);
}

void BatchReader::Run() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    Entry* entry = nullptr;
    posted_.wait(lock, [&] {
      // What a step waits for comes before what is only announced.
      const bool awaited = taken_ != nullptr && taken_->stage == Stage::kAnnounced;
      entry = awaited ? taken_ : Oldest(Stage::kAnnounced);
      return stopping_ || entry != nullptr;
    });
    if (stopping_) return;
    entry->stage = Stage::kReading;
    lock.unlock();
    ReadRows(*entry);
    lock.lock();
    entry->stage = Stage::kRead;
    read_.notify_all();
  }
}

void BatchReader::ReadRows(Entry& entry) {
  entry.batch.Clear();
  for (const int64_t row : rows_) {
    if (stopping_) return;
    entry.batch.Read(*entry.step.data, row, SampleOf(entry.step, entry.step.first_sample + row));
  }
}

}  // namespace mgc
