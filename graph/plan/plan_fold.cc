#include "graph/plan/plan_fold.h"

#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"

namespace mgc {
namespace {

constexpr size_t kMaxCandidates = 128;  // periods tried at one place
constexpr int64_t kNoAddress = -1;
constexpr int64_t kMaxShift = int64_t{1} << 32;

bool Moves(const ActionRef& ref) { return IsOfMicroBatch(ref.kind); }
bool Moves(const TransferRef&) { return true; }

// Calls fn(field) for every number of an entry that is no micro-batch, and move(field) for every
// micro-batch that a repeat moves. An entry is determined by both and its addresses.
template <typename Ref, typename Fn, typename Move>
void VisitRef(Ref& ref, Fn fn, Move move) {
  fn(static_cast<int64_t>(ref.kind));
  fn(ref.chunk);
  if (Moves(ref)) {
    move(ref.micro_batch);
  } else {
    fn(ref.micro_batch);
  }
}
template <typename Refs, typename Fn, typename Move>
void VisitRefs(Refs& refs, Fn fn, Move move) {
  fn(static_cast<int64_t>(refs.size()));
  for (auto& ref : refs) VisitRef(ref, fn, move);
}
template <typename Fn, typename Move>
void VisitFields(const Action& action, Fn fn, Move move) {
  VisitRef(action.ref, fn, move);
  for (int64_t address :
       {action.frame, action.input, action.output, action.grad_input, action.grad_output}) {
    fn(address == kNoAddress);
  }
  VisitRefs(action.waits, fn, move);
}
template <typename Fn, typename Move>
void VisitFields(const Transfer& transfer, Fn fn, Move move) {
  VisitRef(transfer.ref, fn, move);
  fn(transfer.bytes);
  fn(transfer.peer);
  VisitRef(transfer.anchor, fn, move);
  fn(transfer.issued);
  VisitRefs(transfer.after, fn, move);
  VisitRefs(transfer.after_transfers, fn, move);
}
template <typename Ref>
void ShiftRef(int64_t by, Ref* ref) {
  if (Moves(*ref)) ref->micro_batch += by;
}
void Shift(int64_t by, Action* action) {
  ShiftRef(by, &action->ref);
  for (TransferRef& ref : action->waits) ShiftRef(by, &ref);
}
void Shift(int64_t by, Transfer* transfer) {
  ShiftRef(by, &transfer->ref);
  ShiftRef(by, &transfer->anchor);
  for (ActionRef& ref : transfer->after) ShiftRef(by, &ref);
  for (TransferRef& ref : transfer->after_transfers) ShiftRef(by, &ref);
}

// What is compared of entries: a number for all that must be equal, and the micro-batches.
struct Shape {
  int id = 0;
  absl::Span<const int64_t> micro_batches;
};
struct Shapes {
  std::vector<Shape> of;
  std::vector<int64_t> micro_batches;  // of all entries
};

template <typename Entry>
Shapes ShapesOf(absl::Span<const Entry> entries) {
  Shapes shapes;
  std::vector<size_t> counts;
  absl::flat_hash_map<std::string, int> ids;
  std::string fixed;
  for (const Entry& entry : entries) {
    fixed.clear();
    const size_t before = shapes.micro_batches.size();
    VisitFields(
        entry,
        [&](int64_t field) { fixed.append(reinterpret_cast<const char*>(&field), sizeof(field)); },
        [&](int64_t field) { shapes.micro_batches.push_back(field); });
    counts.push_back(shapes.micro_batches.size() - before);
    const auto found = ids.find(absl::string_view(fixed));
    const int id = found != ids.end() ? found->second : static_cast<int>(ids.size());
    if (found == ids.end()) ids.emplace(fixed, id);
    shapes.of.push_back({id, {}});
  }
  const int64_t* at = shapes.micro_batches.data();
  for (size_t i = 0; i < entries.size(); ++i) {
    shapes.of[i].micro_batches = {at, counts[i]};
    at += counts[i];
  }
  return shapes;
}

// Whether `b` is `a` with its micro-batches moved by `shift`, which is set where it is not known.
bool Follows(const Shape& a, const Shape& b, bool* known, int64_t* shift) {
  if (a.id != b.id) return false;
  for (size_t i = 0; i < a.micro_batches.size(); ++i) {
    const int64_t difference = b.micro_batches[i] - a.micro_batches[i];
    if (!*known) {
      *shift = difference;
      *known = true;
    } else if (difference != *shift) {
      return false;
    }
  }
  return true;
}

struct Run {
  size_t period = 0;
  int64_t times = 1;
  int64_t shift = 0;
  int64_t saved() const { return (times - 1) * static_cast<int64_t>(period); }
};

// The run from `begin` that saves most entries.
Run BestRun(const std::vector<Shape>& shapes, const std::vector<size_t>& next_alike, size_t begin) {
  Run best;
  size_t candidates = 0;
  for (size_t at = next_alike[begin]; at < shapes.size() && candidates < kMaxCandidates;
       at = next_alike[at], ++candidates) {
    Run run;
    run.period = at - begin;
    // What lies behind `at` is all that a run of this period, or a longer one, can save.
    if (best.saved() >= static_cast<int64_t>(shapes.size() - at)) break;
    bool known = false;
    size_t length = 0;
    while (at + length < shapes.size() &&
           Follows(shapes[begin + length], shapes[at + length], &known, &run.shift)) {
      ++length;
    }
    run.times = static_cast<int64_t>(length / run.period) + 1;
    if (run.saved() > best.saved()) best = run;
  }
  return best;
}

// The shortest prefix of `numbers` that, repeated, gives them: what is left of them beside their
// longest border, the prefix that is a suffix too (Knuth, Morris, Pratt).
std::vector<int64_t> CycleOf(std::vector<int64_t> numbers) {
  std::vector<size_t> border(numbers.size(), 0);  // of the first n + 1 numbers
  for (size_t n = 1; n < numbers.size(); ++n) {
    size_t length = border[n - 1];
    while (length > 0 && numbers[n] != numbers[length]) length = border[length - 1];
    border[n] = numbers[n] == numbers[length] ? length + 1 : 0;
  }
  numbers.resize(numbers.size() - border.back());
  return numbers;
}

// All of `entries` as repeats of the first `period`.
template <typename Entry>
Repeat<Entry> RepeatOf(absl::Span<const Entry> entries, size_t period, int64_t shift) {
  Repeat<Entry> repeat;
  repeat.body.assign(entries.begin(), entries.begin() + static_cast<std::ptrdiff_t>(period));
  repeat.times = static_cast<int64_t>(entries.size() / period);
  repeat.shift = shift;
  for (size_t i = 0; i < period; ++i) {
    const size_t count = AddressesOf(&repeat.body[i]).size();
    for (size_t which = 0; which < count; ++which) {
      std::vector<int64_t> addresses;
      for (size_t n = i; n < entries.size(); n += period) {
        addresses.push_back(*AddressesOf(&entries[n])[which]);
      }
      addresses = CycleOf(std::move(addresses));
      if (addresses.size() == 1) continue;
      repeat.cycles.push_back({static_cast<int>(i), static_cast<int>(which), std::move(addresses)});
    }
  }
  return repeat;
}

template <typename Entry>
std::vector<Repeat<Entry>> FoldEntries(absl::Span<const Entry> entries) {
  const Shapes owner = ShapesOf(entries);
  const std::vector<Shape>& shapes = owner.of;
  // For each entry the next one of the same shape.
  std::vector<size_t> next_alike(shapes.size(), shapes.size());
  absl::flat_hash_map<int, size_t> last;
  for (size_t i = shapes.size(); i-- > 0;) {
    const auto [it, added] = last.try_emplace(shapes[i].id, i);
    if (!added) next_alike[i] = std::exchange(it->second, i);
  }
  std::vector<Repeat<Entry>> repeats;
  bool open = false;  // whether the last repeat collects single entries
  for (size_t i = 0; i < entries.size();) {
    const Run run = BestRun(shapes, next_alike, i);
    if (run.saved() < 2) {
      if (!open) repeats.emplace_back();
      open = true;
      repeats.back().body.push_back(entries[i++]);
      continue;
    }
    open = false;
    repeats.push_back(RepeatOf(entries.subspan(i, run.period * static_cast<size_t>(run.times)),
                               run.period, run.shift));
    i += run.period * static_cast<size_t>(run.times);
  }
  return repeats;
}

int64_t NumRefs(const Action& action) { return static_cast<int64_t>(action.waits.size()); }
int64_t NumRefs(const Transfer& transfer) {
  return static_cast<int64_t>(transfer.after.size() + transfer.after_transfers.size());
}

// Whether numbers that a file may hold can be unfolded at all. `size`: of one round, in entries and
// references.
template <typename Entry>
bool CanUnfold(const Repeat<Entry>& repeat, int64_t room, int64_t* size) {
  *size = 0;
  bool in_range = repeat.shift >= -kMaxShift && repeat.shift <= kMaxShift;
  for (const Entry& entry : repeat.body) {
    *size += 1 + NumRefs(entry);
    VisitFields(
        entry, [](int64_t) {},
        [&](int64_t micro_batch) {
          in_range &= micro_batch >= -kMaxShift && micro_batch <= kMaxShift;
        });
  }
  if (!in_range || repeat.times < 1 || repeat.times > kMaxPlanEntries || *size > kMaxPlanEntries ||
      *size * repeat.times > room) {
    return false;
  }
  for (const AddressCycle& cycle : repeat.cycles) {
    if (cycle.entry < 0 || cycle.entry >= static_cast<int>(repeat.body.size()) || cycle.which < 0 ||
        cycle.addresses.empty() ||
        cycle.which >=
            static_cast<int>(AddressesOf(&repeat.body[static_cast<size_t>(cycle.entry)]).size())) {
      return false;
    }
  }
  return true;
}

// Addresses of round n into the entries from `begin` on.
template <typename Entry>
void PutAddresses(const std::vector<AddressCycle>& cycles, int64_t n, Entry* begin) {
  for (const AddressCycle& cycle : cycles) {
    int which = 0;
    for (int64_t* address : AddressesOf(begin + cycle.entry)) {
      if (which++ != cycle.which) continue;
      *address = cycle.addresses[static_cast<size_t>(n) % cycle.addresses.size()];
    }
  }
}

template <typename Entry>
bool UnfoldEntries(const Repeat<Entry>& repeat, int64_t* room, std::vector<Entry>* entries) {
  int64_t size = 0;
  if (!CanUnfold(repeat, *room, &size)) return false;
  *room -= size * repeat.times;
  const size_t needed = entries->size() + repeat.body.size() * static_cast<size_t>(repeat.times);
  // To room for just these the next of many short repeats would copy all of them again.
  if (needed > entries->capacity()) entries->reserve(std::max(needed, 2 * entries->capacity()));
  for (int64_t n = 0; n < repeat.times; ++n) {
    const size_t begin = entries->size();
    for (const Entry& entry : repeat.body) {
      entries->push_back(entry);
      Shift(n * repeat.shift, &entries->back());
    }
    PutAddresses(repeat.cycles, n, entries->data() + begin);
  }
  return true;
}

}  // namespace

AddressList<int64_t> AddressesOf(Action* action) {
  return {&action->frame, &action->input, &action->output, &action->grad_input,
          &action->grad_output};
}
AddressList<const int64_t> AddressesOf(const Action* action) {
  return {&action->frame, &action->input, &action->output, &action->grad_input,
          &action->grad_output};
}
AddressList<int64_t> AddressesOf(Transfer* transfer) { return {&transfer->address}; }
AddressList<const int64_t> AddressesOf(const Transfer* transfer) { return {&transfer->address}; }

std::vector<Repeat<Action>> Fold(absl::Span<const Action> entries) { return FoldEntries(entries); }
std::vector<Repeat<Transfer>> Fold(absl::Span<const Transfer> entries) {
  return FoldEntries(entries);
}
bool Unfold(const Repeat<Action>& repeat, int64_t* room, std::vector<Action>* entries) {
  return UnfoldEntries(repeat, room, entries);
}
bool Unfold(const Repeat<Transfer>& repeat, int64_t* room, std::vector<Transfer>* entries) {
  return UnfoldEntries(repeat, room, entries);
}

}  // namespace mgc
