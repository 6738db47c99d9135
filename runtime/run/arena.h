// A rank's memory: one block of zeros whose bytes the plan has given out.

#ifndef MGC_RUNTIME_RUN_ARENA_H_
#define MGC_RUNTIME_RUN_ARENA_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/parallel.h"

namespace mgc {

class Arena {
 public:
  // `bytes` zeros, aligned to a page, in huge pages where the system has them. All pages are there
  // when it returns (`parallel`'s threads fetch them), so that a later step cannot run out of
  // memory. ResourceExhausted when the system has no room.
  static absl::StatusOr<Arena> Create(int64_t bytes, Parallel& parallel);
  // The same in memory that others have too: `bytes` at `memory`, a page, which outlives the arena
  // and which nobody has written to.
  static absl::StatusOr<Arena> CreateIn(char* memory, int64_t bytes, Parallel& parallel);

  Arena(Arena&& other) noexcept;
  Arena& operator=(Arena&& other) noexcept;
  ~Arena();

  char* data() const { return data_; }
  int64_t size() const { return size_; }

 private:
  Arena(char* data, int64_t size, bool owns) : data_(data), size_(size), owns_(owns) {}
  absl::Status FetchAll(Parallel& parallel) const;

  char* data_;
  int64_t size_;
  bool owns_;
};

// Makes `bytes` from `to` on zero, past the caches: for stretches larger than these, which nothing
// reads soon. Needs no alignment.
void ZeroStretch(char* to, int64_t bytes);

}  // namespace mgc

#endif  // MGC_RUNTIME_RUN_ARENA_H_
