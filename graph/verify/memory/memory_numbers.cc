// memory_v4.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/verify/memory/memory_internal.h"

namespace mgc {
namespace {

// Ends and extents of what a program touches.
struct Extents {
  int64_t high = 0;       // highest end
  Range frames{0, 0};     // hull; empty when there is none
  int64_t boundary = 0;   // bytes that transfers and links ever take
  int64_t transient = 0;  // most behind formal `transient`
  int64_t globals = 0;    // most behind formal `globals`
  Range copies{0, 0};     // hull of working copies; empty when there are none
  Range owed{0, 0};       // of gradients on their way into pieces, likewise
};

void Widen(const Range& range, Range* hull) {
  if (range.begin >= range.end) return;
  if (hull->begin >= hull->end) *hull = range;
  hull->begin = std::min(hull->begin, range.begin);
  hull->end = std::max(hull->end, range.end);
}

class ExtentsFinder {
 public:
  ExtentsFinder(const StepTables& tables, const StepClass& walk) : tables_(tables), walk_(walk) {}

  Extents Run() {
    for (const StepAction* action : ProjectedActions(tables_, walk_)) {
      for (const Call& call : *action->calls) AddCall(call);
    }
    for (const StepAction& action : walk_.actions) AddFrame(*action.action);
    for (const StepTransfer& transfer : walk_.transfers) {
      const int64_t address = transfer.transfer->address;
      boundaries_.push_back({address, address + transfer.transfer->bytes});
      made_.high = std::max(made_.high, boundaries_.back().end);
    }
    for (const Range& range : HandedOver(tables_, walk_)) {
      boundaries_.push_back(range);
      made_.high = std::max(made_.high, range.end);
    }
    for (const Range& range : Merged(std::move(boundaries_))) {
      made_.boundary += range.end - range.begin;
    }
    return made_;
  }

 private:
  void AddCall(const Call& call) {
    const Segment& segment = tables_.plan.segments[static_cast<size_t>(call.segment)];
    for (const Instr& instr : segment.instrs) {
      for (const std::vector<int>* list : {&instr.inputs, &instr.outputs}) {
        for (int number : *list) {
          const Slot& slot = segment.slots[static_cast<size_t>(number)];
          const size_t formal = static_cast<size_t>(slot.formal);
          const Binding& binding = call.bindings[formal];
          if (segment.formals[formal].region == Region::kGlobals) {
            made_.globals = std::max(made_.globals, slot.offset + slot.bytes);
          }
          AddHeld(segment.formals[formal].region, binding.offset + slot.offset, slot.bytes);
          if (formal == 0) made_.transient = std::max(made_.transient, slot.offset + slot.bytes);
          if (binding.base != BaseKind::kAbsolute) continue;
          const int64_t begin = binding.offset + slot.offset;
          made_.high = std::max(made_.high, begin + slot.bytes);
          if (formal != 0 && IsScratch(segment, formal)) {
            boundaries_.push_back({begin, begin + slot.bytes});
          }
        }
      }
    }
  }

  void AddHeld(Region region, int64_t begin, int64_t bytes) {
    const bool copy = region == Region::kCopies || region == Region::kGathered;
    if (copy) Widen({begin, begin + bytes}, &made_.copies);
    if (region == Region::kOwed) Widen({begin, begin + bytes}, &made_.owed);
  }

  void AddFrame(const Action& action) {
    if (action.ref.kind != ActionKind::kForward || action.frame < 0) return;
    const Chunk& chunk = (*walk_.chunks)[static_cast<size_t>(action.ref.chunk)];
    Widen({action.frame, action.frame + chunk.frame_bytes}, &made_.frames);
    if (chunk.frame_bytes > 0) {
      made_.high = std::max(made_.high, action.frame + chunk.frame_bytes);
    }
  }

  const StepTables& tables_;
  const StepClass& walk_;
  Extents made_;
  std::vector<Range> boundaries_;
};

class NumberCheck {
 public:
  // `workspaces`: by segment, what its kernels may use.
  NumberCheck(const Plan& plan, const PlanClass& plan_class, const std::vector<int64_t>& workspaces,
              Diagnostics* findings)
      : plan_(plan),
        class_(plan_class),
        memory_(plan_class.memory),
        workspaces_(workspaces),
        findings_(*findings) {}

  void Run(const Extents& train, const Extents& eval) {
    CheckBlocks(AlignUp(train.owed.end - train.owed.begin));
    int64_t high = std::max({train.high, eval.high, high_});
    for (bool step_of_eval : {false, true}) {
      for (const Range& range : ZeroedRanges(class_, step_of_eval)) {
        high = std::max(high, range.end);
      }
    }
    for (const auto* list :
         {&class_.scalars, &class_.carried, &class_.reports, &class_.eval_reports}) {
      for (const NamedAddress& named : *list) high = std::max(high, named.address + 8);
    }
    Equals("peak", memory_.peak, AlignUp(high), "the highest end of what is used");
    const int64_t sum = memory_.params + memory_.grads + memory_.states + memory_.copies +
                        memory_.frames + memory_.boundaries + memory_.transient;
    Equals("peak", memory_.peak, sum, "the sum of its parts");
    AtLeast("frames", memory_.frames, train.frames.end - train.frames.begin, "frames of training");
    AtLeast("copies", memory_.copies, train.copies.end - train.copies.begin,
            "working copies of training");
    AtLeast("copies", memory_.copies, eval.copies.end - eval.copies.begin,
            "working copies of an evaluation");
    AtLeast("boundaries", memory_.boundaries, train.boundary, "inboxes, outboxes and links");
    AtLeast(
        "transient", memory_.transient,
        AlignUp(train.transient) + AlignUp(class_.global_bytes) + AlignUp(class_.eval_global_bytes),
        "transients and values of the step");
    AtLeast("globals", class_.global_bytes, train.globals, "values of a training step");
    // Those of an evaluation may lie where a training step has its own.
    AtLeast("globals", std::max(class_.global_bytes, class_.eval_global_bytes), eval.globals,
            "values of an evaluation");
    CheckWorkspace();
  }

 private:
  // `owed`: bytes of gradients on their way into pieces.
  void CheckBlocks(int64_t owed) {
    int64_t params = 0;
    int64_t grads = owed;
    int64_t states = 0;
    for (const HeldBlock& held : class_.blocks) {
      const ParamBlock& block = plan_.blocks[static_cast<size_t>(held.block)];
      params += AlignUp(block.param_bytes);
      grads += AlignUp(block.grad_bytes);
      states += AlignUp(block.state_bytes);
      high_ = std::max({high_, held.param_base + block.param_bytes,
                        held.grad_base + block.grad_bytes, held.state_base + block.state_bytes});
    }
    Equals("params", memory_.params, params, "of the blocks held");
    Equals("grads", memory_.grads, grads,
           owed > 0 ? "of the blocks held, and on their way into pieces" : "of the blocks held");
    Equals("states", memory_.states, states, "of the blocks held");
  }

  // As much as any kernel of the class' segments may use.
  void CheckWorkspace() {
    int64_t called = 0;
    const auto add = [&](const std::vector<Call>& calls) {
      for (const Call& call : calls) {
        called = std::max(called, workspaces_[static_cast<size_t>(call.segment)]);
      }
    };
    for (const auto* chunks : {&class_.chunks, &class_.eval_chunks}) {
      for (const Chunk& chunk : *chunks) {
        for (const auto* calls : ListsOf(chunk)) add(*calls);
      }
    }
    add(class_.update);
    add(class_.eval_update);
    // A plan with less is not read (plan_c15).
    AtMost("workspace", memory_.workspace, called, "the most of the segments it calls");
  }

  void Equals(absl::string_view name, int64_t stated, int64_t found, absl::string_view what) {
    if (stated != found) Report(name, stated, found, what);
  }
  void AtLeast(absl::string_view name, int64_t stated, int64_t found, absl::string_view what) {
    if (stated < found) Report(name, stated, found, what);
  }
  void AtMost(absl::string_view name, int64_t stated, int64_t found, absl::string_view what) {
    if (stated > found) Report(name, stated, found, what);
  }
  void Report(absl::string_view name, int64_t stated, int64_t found, absl::string_view what) {
    findings_.Add("memory_v4", absl::StrCat("class ", class_.coordinate),
                  absl::StrCat("states ", stated, " bytes of ", name, "; ", what, ": ", found));
  }

  const Plan& plan_;
  const PlanClass& class_;
  const MemoryUse& memory_;
  const std::vector<int64_t>& workspaces_;
  Diagnostics& findings_;
  int64_t high_ = 0;
};

// What the kernels of each segment may use: the most that its ops allow. It must not state more; a
// plan with less is not read (plan_c15).
std::vector<int64_t> WorkspacesOf(const Plan& plan, Diagnostics* findings) {
  std::vector<int64_t> workspaces;
  for (const Segment& segment : plan.segments) {
    const int64_t allowed = WorkspaceBound(segment, plan.mesh, plan.machine.host);
    if (segment.workspace_bytes > allowed) {
      findings->Add("memory_v4", absl::StrCat("segment ", segment.name),
                    absl::StrCat("states ", segment.workspace_bytes,
                                 " bytes of workspace; its ops allow their kernels: ", allowed));
    }
    workspaces.push_back(allowed);
  }
  return workspaces;
}

}  // namespace

void CheckNumbers(const Plan& plan, const StepTables& train, const StepTables& eval,
                  Diagnostics* findings) {
  const std::vector<int64_t> workspaces = WorkspacesOf(plan, findings);
  for (size_t c = 0; c < plan.classes.size(); ++c) {
    NumberCheck(plan, plan.classes[c], workspaces, findings)
        .Run(ExtentsFinder(train, train.classes[c]).Run(),
             ExtentsFinder(eval, eval.classes[c]).Run());
  }
}

}  // namespace mgc
