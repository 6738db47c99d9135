// What a process does of the collectives and transfers whose other ends are in other processes.
//
// The step machine says when all members here stand at an item; from then on the communicator moves
// it, piece by piece, whenever somebody lets it: workers that have nothing else to do, or that are
// between two instructions, and a timer during long ones. Nothing waits in here. A rank takes part
// in one item at a time and items end in the plan's order for each rank, whatever moves first.

#ifndef MGC_RUNTIME_COMM_COMMUNICATOR_H_
#define MGC_RUNTIME_COMM_COMMUNICATOR_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "runtime/comm/collective_flow.h"
#include "runtime/comm/link.h"
#include "runtime/comm/process_map.h"
#include "runtime/comm/routes.h"
#include "runtime/load/load_plan.h"

namespace mgc {

class Communicator {
 public:
  // Of process `self` of `map`, for whose ranks `plans` are loaded, as Routes wants them. `map` and
  // `link` must outlive it.
  Communicator(absl::Span<const LoadedPlan* const> plans, const ProcessMap& map, int self,
               Link& link, FlowMeans means);
  // Makes the channels, and the library's groups; waits for the peers. Once, before anything else.
  absl::Status Open();

  const Routes& routes() const { return routes_; }
  const ProcessMap& map() const { return map_; }
  int self() const { return self_; }
  Link& link() { return link_; }

  // Items are named by a place, that of a member among the ranks here, which must be free.

  // Begins a collective over `route`, of which all members here stand at. The spans, as in Share,
  // must stay until it has ended.
  void StartCollective(size_t place, const Route& route, absl::Span<const TiledExchange> exchanges);
  // Begins to send the bytes at `memory`, or to receive them, over one of Routes' channels.
  void StartTransfer(size_t place, size_t channel, bool sends, char* memory, int64_t bytes);

  // Whether anything has begun and not ended.
  bool busy() const { return active_.load(std::memory_order_acquire) > 0; }
  // Moves what can be moved now; calls `ended` for what has ended. Any number of threads. Whether
  // anything moved; the error of a lost connection.
  absl::StatusOr<bool> Progress(absl::FunctionRef<void(size_t place)> ended);

 private:
  enum class State : uint8_t { kFree, kActive, kClaimed };
  struct Item {
    Item(const FlowRoom& room, const FlowMeans& means) : flow(room, means) {}

    std::atomic<State> state{State::kFree};
    bool is_transfer = false;
    CollectiveFlow flow;
    // Of a transfer:
    size_t channel = 0;
    bool sends = false;
    char* memory = nullptr;
    int64_t left = 0;

    void Activate() { state.store(State::kActive, std::memory_order_release); }
  };

  bool AdvanceTransfer(Item& item);
  static bool IsDone(const Item& item);

  const ProcessMap& map_;
  const int self_;
  Link& link_;
  const FlowMeans means_;
  const Routes routes_;
  std::vector<std::unique_ptr<Item>> items_;  // by place
  std::atomic<int> active_{0};
};

}  // namespace mgc

#endif  // MGC_RUNTIME_COMM_COMMUNICATOR_H_
