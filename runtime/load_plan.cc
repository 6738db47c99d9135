#include "runtime/load_plan.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/plan_check.h"
#include "runtime/load_program.h"

namespace mgc {
namespace {

class Loader {
 public:
  explicit Loader(LoadedPlan* out) : out_(out), plan_(out->plan) {}

  void Run() {
    for (const Segment& segment : plan_.segments) {
      out_->segments.push_back(LoadSegment(plan_, segment));
      NoteSizes(out_->segments.back());
    }
    MakeSignatures();
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

  // Numbers groups, and collectives so that members of a group agree exactly when they are equal.
  void MakeSignatures() {
    std::vector<std::pair<int, const LoadedExchange*>> known;
    for (const LoadedSegment& segment : out_->segments) {
      std::vector<std::pair<int, int>>& numbers = signatures_[&segment];
      for (const LoadedExchange& exchange : segment.exchanges) {
        const int group = GroupsOf(exchange);
        const auto same = std::find_if(known.begin(), known.end(), [&](const auto& other) {
          return other.first == group && other.second->parts == exchange.parts;
        });
        numbers.emplace_back(group, static_cast<int>(same - known.begin()));
        if (same == known.end()) known.emplace_back(group, &exchange);
      }
    }
  }

  int GroupsOf(const LoadedExchange& exchange) {
    const AxisSet axes = exchange.parts[0].axes;
    const uint32_t key = axes.bits() | (exchange.embedding ? uint32_t{1} << 31 : 0);
    const auto [it, is_new] = group_numbers_.try_emplace(key, out_->groups.size());
    if (!is_new) return it->second;
    out_->groups.emplace_back();
    for (int64_t rank = 0; rank < plan_.mesh.world_size(); ++rank) {
      const std::vector<int64_t> group = plan_.mesh.Group(rank, axes);
      std::vector<int> members(group.begin(), group.end());
      if (exchange.embedding) members = {members.front(), members.back()};
      out_->groups.back().push_back(std::move(members));
    }
    return it->second;
  }

  void LoadClass(const PlanClass& plan_class, LoadedClass* out) {
    out->plan_class = &plan_class;
    for (int64_t rank : RanksOfClass(plan_, plan_class.coordinate)) {
      out_->ranks[rank] = {plan_class.coordinate, static_cast<int>(out->ranks.size())};
      out->ranks.push_back(static_cast<int>(rank));
    }
    out->chunks = LoadChunks(plan_class.chunks, *out);
    out->eval_chunks = LoadChunks(plan_class.eval_chunks, *out);
    out->update = LoadCalls(plan_class.update, *out);
    out->eval_update = LoadCalls(plan_class.eval_update, *out);
    out->train = LoadProgram({plan_class.chunks, out->chunks, out->update}, plan_class.train);
    out->eval =
        LoadProgram({plan_class.eval_chunks, out->eval_chunks, out->eval_update}, plan_class.eval);
    FinishItems(&out->train);
    FinishItems(&out->eval);
  }

  std::vector<LoadedChunk> LoadChunks(const std::vector<Chunk>& chunks,
                                      const LoadedClass& rank_class) {
    std::vector<LoadedChunk> loaded;
    for (const Chunk& chunk : chunks) {
      loaded.push_back({LoadCalls(chunk.forward, rank_class), LoadCalls(chunk.backward, rank_class),
                        LoadCalls(chunk.reduce, rank_class)});
    }
    return loaded;
  }

  std::vector<LoadedCall> LoadCalls(const std::vector<Call>& calls, const LoadedClass& rank_class) {
    std::vector<LoadedCall> list;
    for (const Call& call : calls) {
      LoadedCall loaded;
      loaded.segment = &out_->segments[static_cast<size_t>(call.segment)];
      loaded.call = &call;
      for (int rank : rank_class.ranks) {
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

  void FinishItems(LoadedProgram* program) {
    for (CommItem& item : program->comm) {
      if (item.transfer >= 0) continue;
      const LoadedCall& call = (*program->actions[item.action].calls)[item.call];
      std::tie(item.group, item.signature) = signatures_[call.segment][item.exchange];
    }
  }

  LoadedPlan* out_;
  const Plan& plan_;
  absl::flat_hash_map<uint32_t, int> group_numbers_;
  // Per exchange of a segment: group and signature.
  absl::flat_hash_map<const LoadedSegment*, std::vector<std::pair<int, int>>> signatures_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<LoadedPlan>> LoadPlan(const Plan& plan,
                                                     absl::Span<const KernelEntry> kernels,
                                                     uint64_t seed, int width) {
  MGC_RETURN_IF_ERROR(Annotate(CheckPlan(plan), absl::StrCat("plan ", plan.name)));
  auto loaded = std::make_unique<LoadedPlan>(plan, kernels, seed, width);
  Loader(loaded.get()).Run();
  MGC_RETURN_IF_ERROR(Annotate(loaded->kernels.Refused(), absl::StrCat("plan ", plan.name)));
  return loaded;
}

}  // namespace mgc
