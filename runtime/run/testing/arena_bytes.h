// For tests that compare whole arenas.

#ifndef MGC_RUNTIME_RUN_TESTING_ARENA_BYTES_H_
#define MGC_RUNTIME_RUN_TESTING_ARENA_BYTES_H_

#include <cstdint>
#include <string>

#include "runtime/run/executor.h"

namespace mgc {

// The first `bytes` of a rank's arena.
inline std::string ArenaBytes(const Executor& executor, int64_t rank, int64_t bytes) {
  std::string all(static_cast<size_t>(bytes), '\0');
  executor.Get(rank, 0, bytes, &all[0]);
  return all;
}

}  // namespace mgc

#endif  // MGC_RUNTIME_RUN_TESTING_ARENA_BYTES_H_
