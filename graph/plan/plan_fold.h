// Action lists written down short: a run of entries that repeats, each time for later
// micro-batches, is stored once, with the addresses that come round in cycles beside it. A plan of
// hundreds of micro-batches so has files of the size of its warm-up.

#ifndef MGC_GRAPH_PLAN_PLAN_FOLD_H_
#define MGC_GRAPH_PLAN_PLAN_FOLD_H_

#include <cstdint>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "graph/plan/plan.h"

namespace mgc {

// Addresses of one entry of a repeat, in turn: the n-th time it is addresses[n % size]. Frames and
// inboxes are rings of different sizes, so that whole entries would seldom repeat.
struct AddressCycle {
  int entry = 0;  // of the body
  int which = 0;  // of AddressesOf
  std::vector<int64_t> addresses;
};

// `body`, `times` times, with every micro-batch number `shift` higher each time. Refs of what
// runs once a step name no micro-batch and do not move.
template <typename Entry>
struct Repeat {
  std::vector<Entry> body;
  int64_t times = 1;
  int64_t shift = 0;
  std::vector<AddressCycle> cycles;  // by entry, then address; each of at least two
};

// Frame, input, output, grad_input and grad_output of an action; the address of a transfer.
inline constexpr int kMaxAddresses = 5;
template <typename Address>
using AddressList = absl::InlinedVector<Address*, kMaxAddresses>;
AddressList<int64_t> AddressesOf(Action* action);
AddressList<int64_t> AddressesOf(Transfer* transfer);
AddressList<const int64_t> AddressesOf(const Action* action);
AddressList<const int64_t> AddressesOf(const Transfer* transfer);

// Entries, and refs in them, that the lists of a plan may have together when it is read; keeps a
// short hostile file from filling the memory.
inline constexpr int64_t kMaxPlanEntries = int64_t{1} << 23;

// A short list of repeats that unfolds to `entries`. Not always the shortest.
std::vector<Repeat<Action>> Fold(absl::Span<const Action> entries);
std::vector<Repeat<Transfer>> Fold(absl::Span<const Transfer> entries);

// Appends what a repeat stands for and takes its entries and refs from `room`. False when there is
// not room enough, `times` is below 1, a number is out of range or a cycle belongs to no address.
bool Unfold(const Repeat<Action>& repeat, int64_t* room, std::vector<Action>* entries);
bool Unfold(const Repeat<Transfer>& repeat, int64_t* room, std::vector<Transfer>* entries);

}  // namespace mgc

#endif  // MGC_GRAPH_PLAN_PLAN_FOLD_H_
