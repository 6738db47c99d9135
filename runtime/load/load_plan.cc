#include "runtime/load/load_plan.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/plan/plan_check.h"

namespace mgc {
namespace {

class PlanLoader {
 public:
  explicit PlanLoader(LoadedPlan* out) : out_(out), plan_(out->plan) {}

  void Run() {
    for (const StepSegment& segment : out_->train.segments) {
      out_->segments.push_back(LoadSegment(plan_, out_->inputs, segment));
      for (LoadedExchange& exchange : out_->segments.back().exchanges) {
        exchange.group = GroupOf(exchange.start->collective);
      }
      NoteSizes(out_->segments.back());
    }
    out_->ranks.resize(static_cast<size_t>(plan_.mesh.world_size()));
    out_->classes.resize(plan_.classes.size());
    for (size_t c = 0; c < plan_.classes.size(); ++c) {
      LoadClass(plan_.classes[c], &out_->classes[c]);
    }
  }

 private:
  void NoteSizes(const LoadedSegment& segment) {
    out_->most_formals = std::max(out_->most_formals, segment.segment->formals.size());
    for (const LoadedInstr& instr : segment.instrs) {
      out_->most_operands =
          std::max({out_->most_operands, instr.inputs.size(), instr.outputs.size()});
    }
  }

  int GroupOf(const InstrCollective& collective) {
    const std::pair<uint32_t, std::vector<int>> key = {collective.axes().bits(),
                                                       collective.classes};
    const auto [it, is_new] = out_->group_numbers.try_emplace(key, out_->groups.size());
    if (!is_new) return it->second;
    out_->groups.emplace_back();
    for (int64_t rank = out_->local.begin; rank < out_->local.end; ++rank) {
      const std::vector<int64_t> group = plan_.mesh.Group(rank, collective.axes());
      std::vector<int> members(group.begin(), group.end());
      if (!collective.classes.empty()) KeepClasses(collective.classes, &members);
      out_->groups.back().push_back(std::move(members));
    }
    return it->second;
  }

  // Of ranks along the pipeline those of some classes.
  void KeepClasses(const std::vector<int>& classes, std::vector<int>* members) const {
    const auto is_other = [&](int rank) {
      return !std::binary_search(classes.begin(), classes.end(), ClassOfRank(plan_.mesh, rank));
    };
    members->erase(std::remove_if(members->begin(), members->end(), is_other), members->end());
  }

  void LoadClass(const PlanClass& plan_class, LoadedClass* out) {
    out->plan_class = &plan_class;
    for (int64_t rank : RanksOfClass(plan_, plan_class.coordinate)) {
      out_->ranks[rank] = {plan_class.coordinate, static_cast<int>(out->ranks.size())};
      out->ranks.push_back(static_cast<int>(rank));
      if (out_->local.Contains(rank)) out->local.push_back(static_cast<int>(rank));
    }
    if (out->local.empty()) return;
    out->chunks = LoadChunks(plan_class.chunks, *out);
    out->eval_chunks = LoadChunks(plan_class.eval_chunks, *out);
    out->update = LoadCalls(plan_class.update, *out);
    out->eval_update = LoadCalls(plan_class.eval_update, *out);
    const size_t c = static_cast<size_t>(plan_class.coordinate);
    out->train = LoadProgram(out_->train.classes[c], out->chunks, out->update);
    out->eval = LoadProgram(out_->eval.classes[c], out->eval_chunks, out->eval_update);
  }

  std::vector<LoadedChunk> LoadChunks(const std::vector<Chunk>& chunks,
                                      const LoadedClass& rank_class) {
    std::vector<LoadedChunk> loaded;
    loaded.reserve(chunks.size());
    for (const Chunk& chunk : chunks) {
      LoadedChunk& made = loaded.emplace_back();
      for (size_t list = 0; list < made.size(); ++list) {
        made[list] = LoadCalls(*ListsOf(chunk)[list], rank_class);
      }
    }
    return loaded;
  }

  std::vector<LoadedCall> LoadCalls(const std::vector<Call>& calls, const LoadedClass& rank_class) {
    std::vector<LoadedCall> list;
    for (const Call& call : calls) {
      LoadedCall loaded;
      loaded.segment = &out_->segments[static_cast<size_t>(call.segment)];
      loaded.call = &call;
      for (int rank : rank_class.local) {
        for (const LoadedInstr& instr : loaded.segment->instrs) {
          if (instr.kind != InstrKind::kCompute) continue;
          loaded.kernels.push_back(
              out_->kernels.Find(*loaded.segment->segment, *instr.instr, call.layer, rank));
        }
      }
      list.push_back(std::move(loaded));
    }
    return list;
  }

  // Merges a class' transfers into the order of its collectives, each behind its position.
  LoadedProgram LoadProgram(const StepClass& steps, const std::vector<LoadedChunk>& chunks,
                            const std::vector<LoadedCall>& update) {
    LoadedProgram program;
    program.steps = &steps;
    std::vector<CommItem> collectives;
    for (const StepAction& action : steps.actions) {
      program.calls.push_back(&CallsOf(steps, action.action->ref, chunks, update));
      AddCollectives(*program.calls.back(), static_cast<int>(program.calls.size()) - 1,
                     &collectives);
    }
    auto next = collectives.begin();
    for (size_t t = 0; t < steps.transfers.size(); ++t) {
      while (next != collectives.end() && next->ordinal < steps.transfers[t].position) {
        program.comm.push_back(*next++);
      }
      CommItem item;
      item.transfer = static_cast<int>(t);
      program.comm.push_back(item);
    }
    program.comm.insert(program.comm.end(), next, collectives.end());
    return program;
  }

  const std::vector<LoadedCall>& CallsOf(const StepClass& steps, const ActionRef& ref,
                                         const std::vector<LoadedChunk>& chunks,
                                         const std::vector<LoadedCall>& update) const {
    if (ref.kind == ActionKind::kUpdate) return update;
    const size_t chunk = static_cast<size_t>(ref.chunk);
    return chunks[chunk][ListOf((*steps.chunks)[chunk], ref, out_->plan.num_micro_batches)];
  }

  static void AddCollectives(const std::vector<LoadedCall>& calls, int action,
                             std::vector<CommItem>* list) {
    for (size_t c = 0; c < calls.size(); ++c) {
      const std::vector<LoadedExchange>& exchanges = calls[c].segment->exchanges;
      for (size_t x = 0; x < exchanges.size(); ++x) {
        CommItem item;
        item.action = action;
        item.call = static_cast<int>(c);
        item.exchange = static_cast<int>(x);
        item.ordinal = static_cast<int64_t>(list->size());
        item.group = exchanges[x].group;
        item.signature = exchanges[x].start->signature;
        list->push_back(item);
      }
    }
  }

  LoadedPlan* out_;
  const Plan& plan_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<LoadedPlan>> LoadPlan(const Plan& plan, const KernelList& kernels,
                                                     uint64_t seed, int width, RankRange local,
                                                     const LoadedPlan* before) {
  MGC_RETURN_IF_ERROR(Annotate(CheckPlanToRun(plan), absl::StrCat("plan ", plan.name)));
  auto loaded = std::make_unique<LoadedPlan>(plan, kernels, seed, width, local);
  if (before != nullptr) {
    loaded->number = before->number + 1;
    loaded->groups = before->groups;
    loaded->group_numbers = before->group_numbers;
  }
  PlanLoader(loaded.get()).Run();
  MGC_RETURN_IF_ERROR(Annotate(loaded->kernels.Refused(), absl::StrCat("plan ", plan.name)));
  return loaded;
}

}  // namespace mgc
