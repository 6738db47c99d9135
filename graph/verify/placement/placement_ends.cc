#include "graph/verify/placement/placement_ends.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/file.h"
#include "graph/ir/results.h"
#include "graph/ir/step_names.h"
#include "graph/verify/placement/placement_segment.h"

namespace mgc {
namespace {

struct ScalarView {
  TensorType type{DType::kF64, {}};
  Sharding sharding;
};
const ScalarView& WholeScalar() {
  static const ScalarView kWhole;
  return kWhole;
}

template <typename Fn>
void ForEachParam(const Plan& plan, const PlanClass& rank_class, const Fn& fn) {
  for (const HeldBlock& held : rank_class.blocks) {
    for (const ParamEntry& entry : plan.blocks[static_cast<size_t>(held.block)].entries) {
      fn(held, entry);
    }
  }
}

// What steps leave for the next (graph/ir/results.h).
template <typename Fn>
void ForEachKept(const Plan& plan, const PlanClass& rank_class, const Fn& fn) {
  for (const HeldBlock& held : rank_class.blocks) {
    for (const NamedTensor& kept : plan.blocks[static_cast<size_t>(held.block)].kept) {
      fn(held, kept);
    }
  }
}

std::string NameOf(const HeldBlock& held, const ParamEntry& entry) {
  return NameForLayer(entry.name, held.layer);
}

// What must stand in the arena after the update.
class ParameterCheck {
 public:
  ParameterCheck(ClassCalls* calls, Diagnostics* findings) : calls_(*calls), findings_(*findings) {}

  // `holders`: the classes that hold it; `gradient`: address of its gradient, or -1.
  void Check(const HeldBlock& held, const ParamEntry& entry, const std::vector<int>& holders,
             int64_t gradient) {
    name_ = NameOf(held, entry);
    const PlacedValue* param =
        Require("value", held.param_base + entry.param_offset, entry.type, entry.sharding);
    for (const ParamState& state : entry.states) {
      Require(absl::StrCat("state ", state.name), held.state_base + state.offset, entry.type,
              entry.state_sharding);
    }
    if (gradient >= 0) Require("gradient", gradient, entry.type, entry.state_sharding);
    if (param != nullptr) CheckSum(param->tied_sum, holders);
  }

  // What is not trained stands where it stood.
  void CheckKept(const HeldBlock& held, const ParamEntry& entry) {
    name_ = NameOf(held, entry);
    const PlacedValue* value = calls_.arena().At(held.param_base + entry.param_offset);
    if (value != nullptr && value->by == nullptr) return;
    Add("placement_v10", "is not trained, and a step writes over its value");
  }

 private:
  // Once between those that hold a copy, and where one class holds all of it not at all.
  void CheckSum(const TiedSum& sum, const std::vector<int>& holders) {
    const auto list = [](const std::vector<int>& classes) {
      return absl::StrCat(classes.size() == 1 ? "class " : "the classes ",
                          absl::StrJoin(classes, ", "));
    };
    const int due = holders.size() > 1 ? 1 : 0;
    if (sum.times == due && (due == 0 || *sum.classes == holders)) return;
    Add("placement_v11",
        sum.times == 0
            ? absl::StrCat("is held by ", list(holders),
                           ": an all_reduce of its gradient between them is missing in the update")
            : absl::StrCat(
                  "is held by ", list(holders), ", its gradient is summed between ",
                  list(*sum.classes),
                  sum.times == due ? "" : absl::StrCat(", ", sum.times, " times, not ", due)));
  }

  void Add(absl::string_view label, absl::string_view text) {
    findings_.Add(label, absl::StrCat(calls_.place(), ", parameter ", EscapeBytes(name_)), text);
  }

  const PlacedValue* Require(absl::string_view what, int64_t address, const TensorType& type,
                             const Sharding& sharding) {
    const PlacedValue* value = calls_.arena().At(address);
    if (value == nullptr || value->by == nullptr) {
      Add("placement_v10", absl::StrCat("the update does not write its ", what));
      return nullptr;
    }
    const std::string mismatch = calls_.Mismatch(*value, type, sharding);
    if (mismatch.empty()) return value;
    Add("placement_v10",
        absl::StrCat("after the update, where its ", what, " belongs, ", mismatch));
    return nullptr;
  }

  ClassCalls& calls_;
  Diagnostics& findings_;
  std::string name_;
};

// What is wrong with a number that every stage has and that owes nothing. `is_made`: the step has
// to write it.
std::string NumberFault(const Plan& plan, const NamedAddress& number, bool is_made,
                        ClassCalls* calls) {
  const PlacedValue* value = calls->arena().At(number.address);
  if (value == nullptr || (is_made && value->by == nullptr)) return "nothing writes it";
  std::string text = calls->Mismatch(*value, WholeScalar().type, WholeScalar().sharding);
  const bool pipelined = PipelineAxis(plan.mesh) >= 0;
  if (text.empty() && pipelined && (value->of_stage || !value->sharding->sum.empty())) {
    text = "it owes a sum over pp: an all_reduce over pp is missing";
  }
  return text;
}

uint64_t KeyOf(TransferKind kind, int chunk, int64_t micro_batch) {
  return (static_cast<uint64_t>(chunk) << 2 | static_cast<uint64_t>(kind)) << 32 |
         static_cast<uint64_t>(micro_batch);
}

// The boundaries of the stages of one class.
class BoundaryCheck {
 public:
  BoundaryCheck(const PlanClass& rank_class, bool eval, std::vector<ChunkValues>* values,
                Diagnostics* findings)
      : rank_class_(rank_class),
        eval_(eval),
        program_(eval ? rank_class.eval : rank_class.train),
        chunks_(eval ? rank_class.eval_chunks : rank_class.chunks),
        values_(*values),
        findings_(*findings) {}

  void Run() {
    for (const Transfer& transfer : program_.transfers) {
      transfers_[KeyOf(transfer.ref.kind, transfer.ref.chunk, transfer.ref.micro_batch)] =
          &transfer;
    }
    for (const Action& action : program_.compute) {
      const ActionKind kind = action.ref.kind;
      if (kind == ActionKind::kForward) {
        Meet(action, TransferKind::kRecvForward, action.input, BaseKind::kInput);
        Meet(action, TransferKind::kSendForward, action.output, BaseKind::kOutput);
        forward_[{action.ref.chunk, action.ref.micro_batch}] = &action;
      } else if (kind == ActionKind::kBackward) {
        Meet(action, TransferKind::kRecvBackward, action.grad_input, BaseKind::kGradInput);
        Meet(action, TransferKind::kSendBackward, action.grad_output, BaseKind::kGradOutput);
        MeetForward(action);
      }
      if (!sound_) return;
    }
  }

 private:
  void Add(const Action& action, absl::string_view text) {
    sound_ = false;
    findings_.Add("placement_v9",
                  absl::StrCat("class ", rank_class_.coordinate, ", ", eval_ ? "evaluation, " : "",
                               NameOf(action.ref, chunks_)),
                  text);
  }
  int StageOf(const Action& action) const {
    return chunks_[static_cast<size_t>(action.ref.chunk)].stage;
  }

  void Meet(const Action& action, TransferKind kind, int64_t address, BaseKind base) {
    const auto found = transfers_.find(KeyOf(kind, action.ref.chunk, action.ref.micro_batch));
    if (found == transfers_.end()) return;
    const Transfer& transfer = *found->second;
    const PlacedValues& boundary =
        values_[static_cast<size_t>(StageOf(action))][static_cast<size_t>(base)];
    const std::string name = absl::StrCat(WordOf(kind), action.ref.micro_batch);
    if (transfer.address != address) {
      Add(action, absl::StrCat(name, " moves what is at ", transfer.address,
                               ", the action has it at ", address));
    } else if (transfer.bytes != boundary.End()) {
      Add(action, absl::StrCat(name, " moves ", transfer.bytes, " bytes of a boundary of ",
                               boundary.End()));
    }
  }

  // A backward works on the frame and the input of its forward.
  void MeetForward(const Action& action) {
    const auto found = forward_.find({action.ref.chunk, action.ref.micro_batch});
    if (found == forward_.end()) return;
    const Action& before = *found->second;
    const Chunk& chunk = chunks_[static_cast<size_t>(action.ref.chunk)];
    const auto uses = [&](BaseKind base) {
      return std::any_of(chunk.backward.begin(), chunk.backward.end(), [&](const Call& call) {
        return std::any_of(call.bindings.begin(), call.bindings.end(),
                           [&](const Binding& binding) { return binding.base == base; });
      });
    };
    if (action.frame != before.frame && uses(BaseKind::kFrame)) {
      Add(action, absl::StrCat("works on the frame at ", action.frame,
                               ", its forward on the one at ", before.frame));
    } else if (action.input != before.input && uses(BaseKind::kInput)) {
      Add(action,
          absl::StrCat("reads its input at ", action.input, ", its forward at ", before.input));
    }
    forward_.erase(found);
  }

  const PlanClass& rank_class_;
  const bool eval_;
  const Program& program_;
  const std::vector<Chunk>& chunks_;
  std::vector<ChunkValues>& values_;
  Diagnostics& findings_;
  bool sound_ = true;
  absl::flat_hash_map<uint64_t, const Transfer*> transfers_;
  absl::flat_hash_map<std::pair<int, int64_t>, const Action*> forward_;
};

}  // namespace

void CheckLeft(const Plan& plan, Diagnostics* findings) {
  bool leaves = false;
  for (const PlanClass& rank_class : plan.classes) leaves |= !rank_class.results.empty();
  for (const ParamBlock& block : plan.blocks) leaves |= !block.kept.empty();
  if (!leaves) return;
  if (!IsAsked(plan.model)) {
    findings->Add("placement_v10", "plan", "leaves tensors, and its model is not asked for any");
  }
  if (plan.num_micro_batches != 1) {
    findings->Add("placement_v10", "plan",
                  absl::StrCat("leaves tensors of ", plan.num_micro_batches,
                               " micro-batches, of which each writes over the one before"));
  }
}

// Whether a plan may hold a parameter of the model so: a model that is asked in the narrow type
// that it is read in (placement_v14).
bool HoldsAs(const Plan& plan, TensorType model, const TensorType& held) {
  if (IsAsked(plan.model) && WideOf(held.dtype) == model.dtype) model.dtype = held.dtype;
  return SameStorage(model, held);
}

void CheckModelInputs(const Plan& plan, Diagnostics* findings) {
  absl::flat_hash_map<std::string, int> owners;
  for (const PlanClass& rank_class : plan.classes) {
    const std::string place = absl::StrCat("class ", rank_class.coordinate);
    ForEachParam(plan, rank_class, [&](const HeldBlock& held, const ParamEntry& entry) {
      const std::string name = NameOf(held, entry);
      const ValueId id = plan.model.FindValue(name);
      if (id == kNone || !HoldsAs(plan, plan.model.type(id), entry.type)) {
        findings->Add("placement_v10", absl::StrCat(place, ", parameter ", EscapeBytes(name)),
                      id == kNone ? "the model has no such parameter"
                                  : absl::StrCat("is ", entry.type.ToString(), ", in the model ",
                                                 plan.model.type(id).ToString()));
      }
      const bool has_gradient = GradientAddress(plan, rank_class, held, entry) >= 0;
      if (!IsTrained(entry.init) && entry.gradient_base.region == Region::kGrads) {
        findings->Add("placement_v10", absl::StrCat(place, ", parameter ", EscapeBytes(name)),
                      "is not trained and has a gradient");
      }
      if (!held.owner) return;
      ++owners[name];
      if (has_gradient || !IsTrained(entry.init)) return;
      findings->Add("placement_v10", absl::StrCat(place, ", parameter ", EscapeBytes(name)),
                    absl::StrCat("is owned here, where its gradient is not kept: no block of "
                                 "the class has the memory behind `",
                                 EscapeBytes(ToString(entry.gradient_base)), "`"));
    });
  }
  for (const GraphInput& input : plan.model.inputs()) {
    if (input.kind != InputKind::kParam) continue;
    const std::string& name = plan.model.value(input.value).name;
    const auto found = owners.find(name);
    const int count = found == owners.end() ? 0 : found->second;
    if (count == 1) continue;
    findings->Add("placement_v10", absl::StrCat("parameter ", EscapeBytes(name)),
                  absl::StrCat("is owned by ", count, " classes instead of one"));
  }
}

void PlaceInputs(const Plan& plan, const PlanClass& rank_class, ClassCalls* calls) {
  const auto place = [&](int64_t address, const TensorType& type, const Sharding& sharding,
                         absl::string_view name) {
    PlacedValue value;
    value.type = &type;
    value.sharding = &sharding;
    value.name = name;
    Place(value, address, plan.mesh, &calls->arena());
  };
  ForEachParam(plan, rank_class, [&](const HeldBlock& held, const ParamEntry& entry) {
    place(held.param_base + entry.param_offset, entry.type, entry.sharding, entry.name);
    if (entry.gradient_base.region != Region::kGrads) return;
    for (const ParamState& state : entry.states) {
      place(held.state_base + state.offset, entry.type, entry.state_sharding, entry.name);
    }
    const int64_t gradient = GradientAddress(plan, rank_class, held, entry);
    if (gradient >= 0) calls->SetGradient(gradient, plan.model.FindValue(NameOf(held, entry)));
  });
  ForEachKept(plan, rank_class, [&](const HeldBlock& held, const NamedTensor& kept) {
    place(held.state_base + kept.address, kept.type, kept.sharding, kept.name);
  });
  for (const auto* given : {&rank_class.scalars, &rank_class.carried}) {
    for (const NamedAddress& number : *given) {
      place(number.address, WholeScalar().type, WholeScalar().sharding, number.name);
    }
  }
}

BlockHolders FindHolders(const Plan& plan) {
  BlockHolders holders;
  for (const PlanClass& rank_class : plan.classes) {
    for (const HeldBlock& held : rank_class.blocks) {
      std::vector<int>& classes = holders[{held.block, held.layer}];
      if (classes.empty() || classes.back() != rank_class.coordinate) {
        classes.push_back(rank_class.coordinate);
      }
    }
  }
  return holders;
}

void CheckParameters(const Plan& plan, const PlanClass& rank_class, const BlockHolders& holders,
                     ClassCalls* calls, Diagnostics* findings) {
  ParameterCheck check(calls, findings);
  ForEachParam(plan, rank_class, [&](const HeldBlock& held, const ParamEntry& entry) {
    if (!IsTrained(entry.init)) return check.CheckKept(held, entry);
    if (entry.gradient_base.region != Region::kGrads) return;
    check.Check(held, entry, holders.at({held.block, held.layer}),
                GradientAddress(plan, rank_class, held, entry));
  });
}

void CheckReports(const Plan& plan, const PlanClass& rank_class, bool eval, ClassCalls* calls,
                  Diagnostics* findings) {
  const auto check = [&](const NamedAddress& number, absl::string_view what, bool is_made) {
    const std::string text = NumberFault(plan, number, is_made, calls);
    if (text.empty()) return;
    findings->Add("placement_v10",
                  absl::StrCat(calls->place(), ", ", eval ? "evaluation's " : "", what, " ",
                               EscapeBytes(number.name)),
                  text);
  };
  for (const NamedAddress& report : eval ? rank_class.eval_reports : rank_class.reports) {
    check(report, "report", /*is_made=*/false);
  }
  for (const NamedAddress& carried : rank_class.carried) {
    if (!eval) check(carried, "carried", /*is_made=*/true);
  }
}

void CheckResults(const Plan& plan, const PlanClass& rank_class, ClassCalls* calls,
                  Diagnostics* findings) {
  const auto check = [&](const NamedTensor& left, int64_t address, absl::string_view what) {
    const PlacedValue* value = calls->arena().At(address);
    std::string text = "nothing writes it";
    if (value != nullptr && value->by != nullptr) {
      text = calls->Mismatch(*value, left.type, left.sharding);
    }
    if (text.empty() && !left.sharding.Owed().empty()) text = "it owes a sum or a maximum";
    if (text.empty()) return;
    findings->Add("placement_v10",
                  absl::StrCat(calls->place(), ", ", what, " ", EscapeBytes(left.name)), text);
  };
  for (const NamedTensor& result : rank_class.results) check(result, result.address, "result");
  ForEachKept(plan, rank_class, [&](const HeldBlock& held, const NamedTensor& kept) {
    check(kept, held.state_base + kept.address, "kept");
  });
}

void CheckTransfers(const PlanClass& rank_class, bool eval, std::vector<ChunkValues>* values,
                    Diagnostics* findings) {
  BoundaryCheck(rank_class, eval, values, findings).Run();
}

}  // namespace mgc
