#include "tools/views/peak.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "passes/plan/transient_lives.h"

namespace mgc {
namespace {

enum class Purpose { kActivation, kInput, kBoundary, kLink, kTransient };

const char* WordOf(Purpose purpose) {
  switch (purpose) {
    case Purpose::kActivation:
      return "activation ";
    case Purpose::kInput:
    case Purpose::kBoundary:
      return "boundary ";
    case Purpose::kLink:
      return "link ";
    case Purpose::kTransient:
      return "transient ";
  }
  return "";
}

// What is alive during an action, in numbers of instructions from its first.
struct NamedLife {
  Purpose purpose = Purpose::kTransient;
  std::string name;
  Interval alive;
};

struct Profile {
  std::vector<NamedLife> lives;
  LiveMoment worst;
};

// Reads an action's calls.
class Profiler {
 public:
  Profiler(const Plan& plan, ActionKind kind, bool input_is_kept)
      : plan_(plan), kind_(kind), input_is_kept_(input_is_kept) {}

  Profile Run(const std::vector<Call>& calls) {
    for (const Call& call : calls) Visit(call);
    for (const auto& [place, at] : placed_) profile_.lives.push_back(Held(place.first, at));
    for (NamedLife& link : links_) profile_.lives.push_back(std::move(link));
    std::vector<Interval> intervals;
    for (const NamedLife& life : profile_.lives) intervals.push_back(life.alive);
    profile_.worst = WorstMoment(intervals);
    return std::move(profile_);
  }

 private:
  void Visit(const Call& call) {
    const Segment& segment = plan_.segments[static_cast<size_t>(call.segment)];
    for (const TransientLife& life : TransientLives(segment)) {
      const std::string& name = segment.slots[static_cast<size_t>(life.slots[0])].name;
      profile_.lives.push_back(
          {Purpose::kTransient,
           name,
           {first_ + life.alive.begin, first_ + life.alive.end, life.alive.bytes}});
    }
    for (size_t i = 0; i < segment.instrs.size(); ++i) {
      const Instr& instr = segment.instrs[i];
      for (int slot : instr.inputs) Use(segment, call, slot, first_ + static_cast<int>(i), false);
      for (int slot : instr.outputs) Use(segment, call, slot, first_ + static_cast<int>(i), true);
    }
    first_ += static_cast<int>(segment.instrs.size());
  }

  void Use(const Segment& segment, const Call& call, int number, int at, bool writes) {
    const Slot& slot = segment.slots[static_cast<size_t>(number)];
    const Binding& binding = call.bindings[static_cast<size_t>(slot.formal)];
    const Region region = segment.formals[static_cast<size_t>(slot.formal)].region;
    const int64_t address = binding.offset + slot.offset;
    if (binding.base == BaseKind::kAbsolute) {
      if (IsBoundary(region)) UseLink(slot, address, at, writes);
      return;
    }
    const Purpose purpose = binding.base == BaseKind::kFrame   ? Purpose::kActivation
                            : binding.base == BaseKind::kInput ? Purpose::kInput
                                                               : Purpose::kBoundary;
    const auto [place, added] = placed_.try_emplace(
        {binding.base, address}, NamedLife{purpose, slot.name, {at, at, AlignUp(slot.bytes)}});
    place->second.alive.end = at;
    place->second.alive.bytes = std::max(place->second.alive.bytes, AlignUp(slot.bytes));
  }

  // A value that a layer hands to the next ends where another is written in its place.
  void UseLink(const Slot& slot, int64_t address, int at, bool writes) {
    const auto [link, added] = link_at_.try_emplace(address, links_.size());
    if (!added && !(writes && links_[link->second].alive.end < at)) {
      links_[link->second].alive.end = at;
      return;
    }
    link->second = links_.size();
    links_.push_back({Purpose::kLink, slot.name, {at, at, AlignUp(slot.bytes)}});
  }

  // What an action finds there is alive from its begin, what it leaves to its end.
  NamedLife Held(BaseKind base, NamedLife life) const {
    const bool forward = kind_ == ActionKind::kForward;
    const bool leaves = base == BaseKind::kOutput || base == BaseKind::kGradOutput ||
                        (base == BaseKind::kFrame && forward) ||
                        (base == BaseKind::kInput && forward && input_is_kept_);
    const bool finds = base == BaseKind::kInput || base == BaseKind::kGradInput ||
                       (base == BaseKind::kFrame && !forward);
    if (finds) life.alive.begin = 0;
    if (leaves) life.alive.end = std::max(first_ - 1, life.alive.end);
    return life;
  }

  const Plan& plan_;
  const ActionKind kind_;
  const bool input_is_kept_;
  int first_ = 0;  // of the call's instructions
  std::map<std::pair<BaseKind, int64_t>, NamedLife> placed_;
  std::vector<NamedLife> links_;
  std::map<int64_t, size_t> link_at_;  // the last by address
  Profile profile_;
};

class PeakFinder {
 public:
  PeakFinder(const Plan& plan, const PlanClass& plan_class)
      : plan_(plan), class_(plan_class), kept_(plan_class.chunks.size()) {
    for (const Action& action : class_.train.compute) {
      const bool backward = action.ref.kind == ActionKind::kBackward;
      if (backward && action.input >= 0) kept_[Chunk(action)].input = true;
    }
    for (size_t c = 0; c < kept_.size(); ++c) {
      for (const NamedLife& life : ForwardOf(static_cast<int>(c)).lives) {
        if (IsKept(c, life)) kept_[c].bytes += life.alive.bytes;
      }
    }
  }

  PeakMoment Run() {
    FindAction();
    PeakMoment peak;
    if (worst_ == nullptr) return peak;
    peak.bytes = worst_bytes_;
    peak.action = NameOf(worst_->ref, class_.chunks);
    Locate(&peak);
    AddBuffers(&peak);
    return peak;
  }

 private:
  // What a forward of a chunk leaves for its backward.
  struct Kept {
    bool input = false;
    int64_t bytes = 0;
  };
  using InFlight = std::map<std::pair<int, int64_t>, const Action*>;  // by chunk, micro-batch

  static size_t Chunk(const Action& action) { return static_cast<size_t>(action.ref.chunk); }

  // Whether what forward has at its end outlives it.
  bool IsKept(size_t chunk, const NamedLife& life) const {
    if (life.purpose == Purpose::kInput) return kept_[chunk].input;
    return life.purpose == Purpose::kActivation;
  }

  const Profile& ProfileOf(const ActionRef& ref) {
    const std::vector<Call>& calls = CallsOf(plan_, class_, /*eval=*/false, ref);
    const auto [at, added] = profiles_.try_emplace(&calls);
    if (added) {
      const bool kept = kept_[static_cast<size_t>(ref.chunk)].input;
      at->second = Profiler(plan_, ref.kind, kept).Run(calls);
    }
    return at->second;
  }
  const Profile& ForwardOf(int chunk) { return ProfileOf({ActionKind::kForward, chunk, 0}); }

  // What is alive throughout an action; copies of parameters until the last backward is over.
  int64_t FixedBytes(const ActionRef& ref) const {
    const MemoryUse& memory = class_.memory;
    return memory.params + memory.grads + memory.states + AlignUp(class_.global_bytes) +
           (HasCopies(ref) ? memory.copies : 0);
  }
  static bool HasCopies(const ActionRef& ref) { return IsOfMicroBatch(ref.kind); }

  void FindAction() {
    InFlight in_flight;
    int64_t kept = 0;
    for (const Action& action : class_.train.compute) {
      const std::pair<int, int64_t> key = {action.ref.chunk, action.ref.micro_batch};
      if (action.ref.kind == ActionKind::kBackward && in_flight.erase(key) > 0) {
        kept -= kept_[Chunk(action)].bytes;
      }
      const Profile& profile = ProfileOf(action.ref);
      const int64_t bytes = FixedBytes(action.ref) + kept + profile.worst.bytes;
      if (worst_ == nullptr || bytes > worst_bytes_) {
        worst_ = &action;
        worst_bytes_ = bytes;
        beside_worst_ = in_flight;
      }
      if (action.ref.kind == ActionKind::kForward && in_flight.emplace(key, &action).second) {
        kept += kept_[Chunk(action)].bytes;
      }
    }
  }

  void Locate(PeakMoment* peak) {
    int left = ProfileOf(worst_->ref).worst.at;
    for (const Call& call : CallsOf(plan_, class_, /*eval=*/false, worst_->ref)) {
      const Segment& segment = plan_.segments[static_cast<size_t>(call.segment)];
      const int size = static_cast<int>(segment.instrs.size());
      if (left < 0) return;
      if (left < size) {
        const Instr& instr = segment.instrs[static_cast<size_t>(left)];
        peak->segment = segment.name;
        peak->layer = call.layer;
        peak->instr = left;
        const bool waits = instr.kind == InstrKind::kWait;
        peak->op = instr.op != nullptr ? instr.op->name : waits ? "wait" : "load";
        // A plan that is made for its numbers brings no model.
        if (!plan_.model.files().empty()) peak->source = plan_.model.LocText(instr.loc);
        return;
      }
      left -= size;
    }
  }

  void AddBuffers(PeakMoment* peak) {
    for (const HeldBlock& held : class_.blocks) {
      const ParamBlock& block = plan_.blocks[static_cast<size_t>(held.block)];
      Add(absl::StrCat("parameters of ", block.name), block.param_bytes);
      Add(absl::StrCat("gradients of ", block.name), block.grad_bytes);
      Add(absl::StrCat("optimizer state of ", block.name), block.state_bytes);
    }
    int64_t owed = class_.memory.grads;
    for (const HeldBlock& held : class_.blocks) {
      owed -= AlignUp(plan_.blocks[static_cast<size_t>(held.block)].grad_bytes);
    }
    Add("gradients on their way into pieces", owed);
    Add("values of the step", class_.global_bytes);
    if (HasCopies(worst_->ref)) Add("working copies of parameters", class_.memory.copies);
    for (const auto& [key, action] : beside_worst_) {
      for (const NamedLife& life : ForwardOf(action->ref.chunk).lives) {
        if (!IsKept(Chunk(*action), life)) continue;
        Add(absl::StrCat(WordOf(life.purpose), life.name), life.alive.bytes);
      }
    }
    const Profile& profile = ProfileOf(worst_->ref);
    for (const NamedLife& life : profile.lives) {
      const bool now = life.alive.begin <= profile.worst.at && profile.worst.at <= life.alive.end;
      if (now) Add(absl::StrCat(WordOf(life.purpose), life.name), life.alive.bytes);
    }
    for (const auto& [buffer, count] : buffers_) {
      peak->buffers.push_back({buffer.first, count, buffer.second});
    }
    std::stable_sort(peak->buffers.begin(), peak->buffers.end(),
                     [](const LiveBuffer& a, const LiveBuffer& b) {
                       return a.count * a.bytes > b.count * b.bytes;
                     });
  }

  void Add(const std::string& what, int64_t bytes) {
    if (bytes > 0) ++buffers_[{what, AlignUp(bytes)}];
  }

  const Plan& plan_;
  const PlanClass& class_;
  std::vector<Kept> kept_;  // by chunk
  std::map<const std::vector<Call>*, Profile> profiles_;
  const Action* worst_ = nullptr;
  int64_t worst_bytes_ = 0;
  InFlight beside_worst_;  // whose forward is over and whose backward has not begun
  std::map<std::pair<std::string, int64_t>, int64_t> buffers_;  // how many
};

}  // namespace

PeakMoment FindPeak(const Plan& plan, const PlanClass& plan_class) {
  return PeakFinder(plan, plan_class).Run();
}

}  // namespace mgc
