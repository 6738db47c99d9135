// Programs: lists of actions and transfers as repeats.

#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/plan/plan_fold.h"
#include "graph/plan/plan_refs.h"
#include "graph/plan/proto/plan_wire_internal.h"

namespace mgc {
namespace {

using Numbers = google::protobuf::RepeatedField<int64_t>;

constexpr int kRefNumbers = 3;   // kind, chunk, micro-batch
constexpr int64_t kAbsent = -1;  // the address of what an action does not have

absl::Status Refuse(absl::string_view message) {
  return absl::InvalidArgumentError(absl::StrCat(message, " [wire_c5]"));
}

template <typename Ref>
void AddRef(const Ref& ref, Numbers* out) {
  out->Add(static_cast<int64_t>(ref.kind));
  out->Add(ref.chunk);
  out->Add(ref.micro_batch);
}
template <typename Ref>
void AddRefs(const std::vector<Ref>& refs, Numbers* out) {
  for (const Ref& ref : refs) AddRef(ref, out);
}

// Reads the ref whose numbers begin at `at`.
template <typename Ref>
absl::Status ReadRef(const Numbers& numbers, int at, Ref* out) {
  if (at + kRefNumbers > numbers.size()) return Refuse("a ref has three numbers");
  const int64_t kind = numbers.Get(at);
  const int64_t chunk = numbers.Get(at + 1);
  if (kind < 0 || kind >= kNumRefKinds || chunk < 0 || chunk > std::numeric_limits<int>::max()) {
    return Refuse(absl::StrCat("kind ", kind, " or chunk ", chunk, " of a ref"));
  }
  out->kind = static_cast<decltype(out->kind)>(kind);
  out->chunk = static_cast<int>(chunk);
  out->micro_batch = numbers.Get(at + 2);
  return absl::OkStatus();
}
template <typename Ref>
absl::Status ReadRefs(const Numbers& numbers, std::vector<Ref>* out) {
  for (int at = 0; at < numbers.size(); at += kRefNumbers) {
    out->emplace_back();
    MGC_RETURN_IF_ERROR(ReadRef(numbers, at, &out->back()));
  }
  return absl::OkStatus();
}

// Addresses up to the last that there is.
template <typename Entry, typename Message>
void AddAddresses(const Entry& entry, Message* out) {
  const auto addresses = AddressesOf(&entry);
  size_t count = addresses.size();
  while (count > 0 && *addresses[count - 1] == kAbsent) --count;
  for (size_t i = 0; i < count; ++i) out->add_addresses(*addresses[i]);
}

template <typename Message, typename Entry>
absl::Status ReadAddresses(const Message& message, Entry* out) {
  const auto addresses = AddressesOf(out);
  if (message.addresses_size() > static_cast<int>(addresses.size())) {
    return Refuse(absl::StrCat(message.addresses_size(), " addresses of ", addresses.size()));
  }
  for (size_t i = 0; i < addresses.size(); ++i) {
    const bool given = static_cast<int>(i) < message.addresses_size();
    *addresses[i] = given ? message.addresses(static_cast<int>(i)) : kAbsent;
  }
  return absl::OkStatus();
}

void ToWire(const Action& action, wire::Action* out) {
  AddRef(action.ref, out->mutable_ref());
  AddAddresses(action, out);
  AddRefs(action.waits, out->mutable_waits());
}

absl::Status FromWire(const wire::Action& message, Action* out) {
  MGC_RETURN_IF_ERROR(ReadRef(message.ref(), 0, &out->ref));
  MGC_RETURN_IF_ERROR(ReadAddresses(message, out));
  return ReadRefs(message.waits(), &out->waits);
}

void ToWire(const Transfer& transfer, wire::Transfer* out) {
  AddRef(transfer.ref, out->mutable_ref());
  AddAddresses(transfer, out);
  out->set_bytes(transfer.bytes);
  out->set_peer(transfer.peer);
  AddRef(transfer.anchor, out->mutable_anchor());
  out->set_issued(transfer.issued);
  AddRefs(transfer.after, out->mutable_after());
  AddRefs(transfer.after_transfers, out->mutable_after_transfers());
}

absl::Status FromWire(const wire::Transfer& message, Transfer* out) {
  MGC_RETURN_IF_ERROR(ReadRef(message.ref(), 0, &out->ref));
  MGC_RETURN_IF_ERROR(ReadAddresses(message, out));
  MGC_RETURN_IF_ERROR(ReadRef(message.anchor(), 0, &out->anchor));
  out->bytes = message.bytes();
  out->peer = message.peer();
  out->issued = message.issued();
  MGC_RETURN_IF_ERROR(ReadRefs(message.after(), &out->after));
  return ReadRefs(message.after_transfers(), &out->after_transfers);
}

// Differences wrap around.
void ToWire(const AddressCycle& cycle, wire::AddressCycle* out) {
  out->set_entry(cycle.entry);
  out->set_which(cycle.which);
  uint64_t last = 0;
  for (int64_t address : cycle.addresses) {
    out->add_addresses(static_cast<int64_t>(static_cast<uint64_t>(address) - last));
    last = static_cast<uint64_t>(address);
  }
}

AddressCycle FromWire(const wire::AddressCycle& message) {
  AddressCycle cycle{message.entry(), message.which(), {}};
  uint64_t last = 0;
  for (int64_t difference : message.addresses()) {
    last += static_cast<uint64_t>(difference);
    cycle.addresses.push_back(static_cast<int64_t>(last));
  }
  return cycle;
}

template <typename Entry, typename Messages>
void AddRepeats(const std::vector<Entry>& entries, Messages* out) {
  for (const Repeat<Entry>& repeat : Fold(entries)) {
    auto* to = out->Add();
    for (const Entry& entry : repeat.body) ToWire(entry, to->add_body());
    to->set_times(repeat.times);
    to->set_shift(repeat.shift);
    for (const AddressCycle& cycle : repeat.cycles) ToWire(cycle, to->add_cycles());
  }
}

template <typename Messages, typename Entry>
absl::Status ReadRepeats(const Messages& messages, int64_t* room, std::vector<Entry>* out) {
  for (const auto& message : messages) {
    Repeat<Entry> repeat;
    for (const auto& entry : message.body()) {
      repeat.body.emplace_back();
      MGC_RETURN_IF_ERROR(FromWire(entry, &repeat.body.back()));
    }
    repeat.times = message.times();
    repeat.shift = message.shift();
    for (const wire::AddressCycle& cycle : message.cycles()) {
      repeat.cycles.push_back(FromWire(cycle));
    }
    if (!Unfold(repeat, room, out)) {
      return Refuse(absl::StrCat("a list of actions repeats ", repeat.times, " times by ",
                                 repeat.shift, ": too long, or a number is out of range"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

void ToWire(const Program& program, wire::Program* out) {
  AddRepeats(program.compute, out->mutable_compute());
  AddRepeats(program.transfers, out->mutable_transfers());
}

absl::Status FromWire(const wire::Program& message, int64_t* room, Program* out) {
  MGC_RETURN_IF_ERROR(ReadRepeats(message.compute(), room, &out->compute));
  return ReadRepeats(message.transfers(), room, &out->transfers);
}

}  // namespace mgc
