#include "runtime/load_plan.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime/load_program.h"

namespace mgc {
namespace {

constexpr int64_t kMaxArena = int64_t{1} << 46;
constexpr int64_t kMaxSamples = int64_t{1} << 40;

absl::Status Invalid(absl::string_view text) { return absl::InvalidArgumentError(text); }

absl::Status CheckSizes(const Plan& plan) {
  const AxisId pipeline = PipelineAxis(plan.mesh);
  const int64_t classes = pipeline < 0 ? 1 : plan.mesh.size(pipeline);
  if (static_cast<int64_t>(plan.classes.size()) != classes) {
    return Invalid(absl::StrCat("the mesh has ", classes, " pipeline coordinates, the plan ",
                                plan.classes.size(), " rank classes"));
  }
  for (size_t c = 0; c < plan.classes.size(); ++c) {
    const PlanClass& rank_class = plan.classes[c];
    if (rank_class.coordinate != static_cast<int>(c)) return Invalid("rank classes out of order");
    if (rank_class.memory.peak < 0 || rank_class.memory.peak > kMaxArena) {
      return Invalid(absl::StrCat("an arena may not have ", rank_class.memory.peak, " bytes"));
    }
    if (rank_class.memory.workspace < 0 || rank_class.memory.workspace > kMaxArena) {
      return Invalid(
          absl::StrCat("a workspace may not have ", rank_class.memory.workspace, " bytes"));
    }
  }
  const int64_t batch = plan.global_batch_size;
  if (plan.num_micro_batches < 1 || batch < 1 || batch > kMaxSamples || plan.seq_length < 1 ||
      plan.seq_length > kMaxSamples || batch % plan.num_micro_batches != 0) {
    return Invalid(absl::StrCat("no batches: ", batch, " samples of ", plan.seq_length,
                                " tokens in ", plan.num_micro_batches, " micro-batches"));
  }
  return absl::OkStatus();
}

class Loader {
 public:
  explicit Loader(LoadedPlan* out) : out_(out), plan_(out->plan) {}

  absl::Status Run() {
    MGC_RETURN_IF_ERROR(CheckSizes(plan_));
    for (const Segment& segment : plan_.segments) {
      MGC_ASSIGN_OR_RETURN(LoadedSegment loaded, LoadSegment(plan_, segment));
      NoteSizes(loaded);
      out_->segments.push_back(std::move(loaded));
    }
    MakeSignatures();
    out_->ranks.resize(static_cast<size_t>(plan_.mesh.world_size()));
    out_->classes.resize(plan_.classes.size());
    for (size_t c = 0; c < plan_.classes.size(); ++c) {
      MGC_RETURN_IF_ERROR(Annotate(LoadClass(plan_.classes[c], &out_->classes[c]),
                                   absl::StrCat("pipeline coordinate ", c)));
    }
    std::vector<const LoadedProgram*> train;
    std::vector<const LoadedProgram*> eval;
    for (const LoadedClass& loaded : out_->classes) {
      train.push_back(&loaded.train);
      eval.push_back(&loaded.eval);
    }
    MGC_RETURN_IF_ERROR(MatchTransfers(train));
    MGC_RETURN_IF_ERROR(MatchTransfers(eval));
    return out_->kernels.Refused();
  }

 private:
  void NoteSizes(const LoadedSegment& segment) {
    out_->most_formals = std::max(out_->most_formals, segment.formal_ends.size());
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

  absl::Status LoadClass(const PlanClass& plan_class, LoadedClass* out) {
    out->plan_class = &plan_class;
    for (int64_t rank : RanksOfClass(plan_, plan_class.coordinate)) {
      out_->ranks[rank] = {plan_class.coordinate, static_cast<int>(out->ranks.size())};
      out->ranks.push_back(static_cast<int>(rank));
    }
    MGC_RETURN_IF_ERROR(LoadChunks(plan_class.chunks, *out, &out->chunks));
    MGC_RETURN_IF_ERROR(LoadChunks(plan_class.eval_chunks, *out, &out->eval_chunks));
    MGC_RETURN_IF_ERROR(LoadCalls(plan_class.update, *out, &out->update));
    MGC_RETURN_IF_ERROR(LoadCalls(plan_class.eval_update, *out, &out->eval_update));
    MGC_RETURN_IF_ERROR(
        LoadProgram({plan_, plan_class, plan_class.chunks, out->chunks, out->update},
                    plan_class.train, &out->train));
    MGC_RETURN_IF_ERROR(Annotate(
        LoadProgram({plan_, plan_class, plan_class.eval_chunks, out->eval_chunks, out->eval_update},
                    plan_class.eval, &out->eval),
        "evaluation"));
    MGC_RETURN_IF_ERROR(FinishItems(*out, &out->train));
    MGC_RETURN_IF_ERROR(FinishItems(*out, &out->eval));
    return CheckNamed(plan_class);
  }

  absl::Status LoadChunks(const std::vector<Chunk>& chunks, const LoadedClass& rank_class,
                          std::vector<LoadedChunk>* out) {
    out->resize(chunks.size());
    for (size_t i = 0; i < chunks.size(); ++i) {
      MGC_RETURN_IF_ERROR(LoadCalls(chunks[i].forward, rank_class, &(*out)[i].forward));
      MGC_RETURN_IF_ERROR(LoadCalls(chunks[i].backward, rank_class, &(*out)[i].backward));
      MGC_RETURN_IF_ERROR(LoadCalls(chunks[i].reduce, rank_class, &(*out)[i].reduce));
    }
    return absl::OkStatus();
  }

  absl::Status LoadCalls(const std::vector<Call>& calls, const LoadedClass& rank_class,
                         std::vector<LoadedCall>* out) {
    for (const Call& call : calls) {
      if (call.segment < 0 || call.segment >= static_cast<int>(out_->segments.size())) {
        return Invalid(absl::StrCat("there is no segment ", call.segment));
      }
      LoadedCall loaded;
      loaded.segment = &out_->segments[static_cast<size_t>(call.segment)];
      loaded.call = &call;
      const Segment& segment = *loaded.segment->segment;
      if (call.bindings.size() != segment.formals.size()) {
        return Invalid(absl::StrCat("a call of `", segment.name, "` binds ", call.bindings.size(),
                                    " of ", segment.formals.size(), " formals"));
      }
      const int64_t workspace = rank_class.plan_class->memory.workspace;
      if (segment.workspace_bytes > workspace) {
        return Invalid(absl::StrCat("a call of `", segment.name, "` may use ",
                                    segment.workspace_bytes, " bytes of workspace, the class has ",
                                    workspace));
      }
      for (int rank : rank_class.ranks) {
        for (const LoadedInstr& instr : loaded.segment->instrs) {
          if (instr.kind != InstrKind::kCompute) continue;
          loaded.kernels.push_back(out_->kernels.Find(segment, *instr.instr, call.layer, rank));
        }
      }
      out->push_back(std::move(loaded));
    }
    return absl::OkStatus();
  }

  absl::Status FinishItems(const LoadedClass& rank_class, LoadedProgram* program) {
    for (CommItem& item : program->comm) {
      if (item.transfer >= 0) continue;
      const LoadedCall& call = (*program->actions[item.action].calls)[item.call];
      std::tie(item.group, item.signature) = signatures_[call.segment][item.exchange];
      const int rank = rank_class.ranks[0];
      const std::vector<int>& members = out_->groups[item.group][rank];
      if (std::find(members.begin(), members.end(), rank) == members.end()) {
        return Invalid(
            absl::StrCat("`", call.segment->segment->name, "` runs a collective of other ranks"));
      }
    }
    return absl::OkStatus();
  }

  static absl::Status CheckNamed(const PlanClass& plan_class) {
    const int64_t peak = plan_class.memory.peak;
    const auto inside = [peak](int64_t begin, int64_t bytes) {
      return begin >= 0 && bytes >= 0 && bytes <= peak && begin <= peak - bytes && begin % 8 == 0;
    };
    for (const auto* list : {&plan_class.scalars, &plan_class.reports, &plan_class.eval_reports}) {
      for (const NamedAddress& named : *list) {
        if (!inside(named.address, 8)) {
          return Invalid(absl::StrCat("`", named.name, "` lies outside the arena"));
        }
      }
    }
    for (const Range& range : plan_class.zeroed) {
      if (range.begin < 0 || range.end < range.begin ||
          !inside(range.begin, range.end - range.begin)) {
        return Invalid("a range to be cleared lies outside the arena");
      }
    }
    return absl::OkStatus();
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
  auto loaded = std::make_unique<LoadedPlan>(plan, kernels, seed, width);
  MGC_RETURN_IF_ERROR(Annotate(Loader(loaded.get()).Run(), absl::StrCat("plan ", plan.name)));
  return loaded;
}

}  // namespace mgc
