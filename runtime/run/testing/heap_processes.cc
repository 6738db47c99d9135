#include "runtime/run/testing/heap_processes.h"

#include <thread>
#include <vector>

#include "graph/base/status.h"
#include "runtime/comm/shared_link.h"
#include "runtime/comm/testing/heap_regions.h"

namespace mgc {

void InHeapProcesses(int64_t ranks, int processes, bool mapped,
                     const std::function<void(const ProcessPlace& place)>& body) {
  const auto map = ProcessMap::Create(ranks, processes);
  MGC_CHECK(map.ok()) << map.status();
  HeapWorld channels(processes), arenas(processes);
  std::vector<std::thread> threads;
  for (int p = 0; p < processes; ++p) {
    threads.emplace_back([&, p] {
      HeapRegions own_channels(channels, p), own_arena(arenas, p);
      SharedLink link(own_channels);
      body({&*map, p, &link, mapped ? &own_arena : nullptr});
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace mgc
