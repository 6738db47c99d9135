// A run in several processes that are threads of a test: a process is an object.

#ifndef MGC_RUNTIME_RUN_TESTING_HEAP_PROCESSES_H_
#define MGC_RUNTIME_RUN_TESTING_HEAP_PROCESSES_H_

#include <cstdint>
#include <functional>

#include "runtime/run/executor.h"

namespace mgc {

// Calls `body` with the place of each of so many processes of a run, each on a thread of its own,
// and waits for all. With `mapped` they have each other's arenas in reach.
void InHeapProcesses(int64_t ranks, int processes, bool mapped,
                     const std::function<void(const ProcessPlace& place)>& body);

}  // namespace mgc

#endif  // MGC_RUNTIME_RUN_TESTING_HEAP_PROCESSES_H_
