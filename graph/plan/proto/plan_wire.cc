// The file's header, the plan itself and its parameters; segments and classes lie in
// plan_wire_segment.cc and plan_wire_class.cc.

#include "graph/plan/proto/plan_wire.h"

#include <xxhash.h>

#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/file.h"
#include "graph/base/status.h"
#include "graph/plan/plan_check.h"
#include "graph/plan/plan_fold.h"
#include "graph/plan/proto/fold_layers.h"
#include "graph/plan/proto/plan_wire_internal.h"
#include "graph/proto/wire.h"

namespace mgc {
namespace {

constexpr absl::string_view kMagic = "MGCPLAN\n";
constexpr size_t kHeaderBytes = 40;

// `bytes` bytes of `value`, lowest first.
void AppendNumber(uint64_t value, int bytes, std::string* out) {
  for (int i = 0; i < bytes; ++i) out->push_back(static_cast<char>(value >> (8 * i)));
}

uint64_t ReadNumber(absl::string_view bytes) {
  uint64_t value = 0;
  for (size_t i = bytes.size(); i-- > 0;) value = value << 8 | static_cast<uint8_t>(bytes[i]);
  return value;
}

absl::Status Refuse(absl::string_view label, absl::string_view message) {
  return absl::InvalidArgumentError(absl::StrCat(message, " [", label, "]"));
}

constexpr uint64_t kMostVersions = 1 << 20;

// What ties a proof to the plan that was proved.
uint64_t ProofHash(absl::string_view payload, uint64_t verifier) {
  return verifier == 0 ? 0 : XXH3_64bits_withSeed(payload.data(), payload.size(), verifier);
}

// What follows the header, if the header tells the truth.
absl::StatusOr<absl::string_view> CheckHeader(absl::string_view bytes, int* verifier) {
  if (bytes.substr(0, kMagic.size()) != kMagic) return Refuse("file_c1", "not a plan file");
  if (bytes.size() < kHeaderBytes) return Refuse("file_c3", "cut short in its header");
  const uint64_t version = ReadNumber(bytes.substr(8, 4));
  if (version != kPlanVersion) {
    return Refuse("file_c2",
                  absl::StrCat("a plan of version ", version, "; this program reads version ",
                               kPlanVersion, ": compile the model again"));
  }
  const absl::string_view payload = bytes.substr(kHeaderBytes);
  const uint64_t length = ReadNumber(bytes.substr(16, 8));
  if (payload.size() != length) {
    return Refuse("file_c3",
                  absl::StrCat("the file holds ", payload.size(), " bytes of a plan of ", length));
  }
  const uint64_t hash = XXH3_64bits(payload.data(), payload.size());
  const uint64_t proved_by = ReadNumber(bytes.substr(12, 4));
  if (hash != ReadNumber(bytes.substr(24, 8)) || proved_by > kMostVersions ||
      ReadNumber(bytes.substr(32, 8)) != ProofHash(payload, proved_by)) {
    return Refuse("file_c4", "the file is damaged: its checksum does not match");
  }
  *verifier = static_cast<int>(proved_by);
  return payload;
}

void ToWire(const ParamBlock& block, wire::ParamBlock* out) {
  out->set_name(block.name);
  for (const ParamEntry& entry : block.entries) {
    wire::ParamEntry* to = out->add_entries();
    to->set_name(entry.name);
    ToWire(entry.type, to->mutable_type());
    ToWire(entry.sharding, to->mutable_sharding());
    ToWire(entry.state_sharding, to->mutable_state_sharding());
    ToWire(entry.init, to->mutable_init());
    to->set_param_offset(entry.param_offset);
    ToWire(entry.gradient_base, to->mutable_gradient_base());
    to->set_gradient_offset(entry.gradient_offset);
    for (const ParamState& state : entry.states) {
      wire::ParamState* kept = to->add_states();
      kept->set_name(state.name);
      kept->set_offset(state.offset);
    }
  }
  AddTensors(block.kept, out->mutable_kept());
  out->set_param_bytes(block.param_bytes);
  out->set_grad_bytes(block.grad_bytes);
  out->set_state_bytes(block.state_bytes);
}

absl::Status ReadBlock(const wire::ParamBlock& message, const Mesh& mesh, ParamBlock* out) {
  out->name = message.name();
  for (const wire::ParamEntry& from : message.entries()) {
    ParamEntry entry;
    entry.name = from.name();
    MGC_ASSIGN_OR_RETURN(entry.type, FromWire(from.type()));
    MGC_ASSIGN_OR_RETURN(entry.sharding, FromWire(from.sharding(), entry.type, mesh));
    MGC_ASSIGN_OR_RETURN(entry.state_sharding, FromWire(from.state_sharding(), entry.type, mesh));
    MGC_ASSIGN_OR_RETURN(entry.init, FromWire(from.init()));
    entry.param_offset = from.param_offset();
    MGC_RETURN_IF_ERROR(FromWire(from.gradient_base(), &entry.gradient_base));
    entry.gradient_offset = from.gradient_offset();
    for (const wire::ParamState& state : from.states()) {
      entry.states.push_back({state.name(), state.offset()});
    }
    out->entries.push_back(std::move(entry));
  }
  MGC_ASSIGN_OR_RETURN(out->kept, ReadTensors(message.kept(), mesh));
  out->param_bytes = message.param_bytes();
  out->grad_bytes = message.grad_bytes();
  out->state_bytes = message.state_bytes();
  return absl::OkStatus();
}

absl::StatusOr<Plan> ReadMessage(const wire::Plan& message) {
  Plan plan;
  plan.name = message.name();
  for (const wire::PlanOption& option : message.options()) {
    plan.options.emplace_back(option.name(), option.value());
  }
  MGC_ASSIGN_OR_RETURN(plan.mesh, FromWire(message.mesh()));
  MGC_ASSIGN_OR_RETURN(plan.machine, FromWire(message.machine()));
  plan.micro_batch_size = message.micro_batch_size();
  plan.global_batch_size = message.global_batch_size();
  plan.num_micro_batches = message.num_micro_batches();
  plan.seq_length = message.seq_length();
  plan.vocab = message.vocab();
  const std::string& sums = message.gradient_sums();
  if (!sums.empty() && !ParseDType(sums, &plan.gradient_sums)) {
    return Refuse("plan_c1", absl::StrCat("unknown element type `", EscapeBytes(sums), "`"));
  }
  MGC_ASSIGN_OR_RETURN(const wire::Graph model, UnfoldLayers(message.model()));
  MGC_ASSIGN_OR_RETURN(plan.model, FromWire(model));
  for (const wire::Segment& segment : message.segments()) {
    plan.segments.emplace_back();
    MGC_RETURN_IF_ERROR(FromWire(segment, plan.mesh, &plan.segments.back()));
  }
  for (const wire::ParamBlock& block : message.blocks()) {
    plan.blocks.emplace_back();
    MGC_RETURN_IF_ERROR(ReadBlock(block, plan.mesh, &plan.blocks.back()));
  }
  int64_t room = kMaxPlanEntries;
  for (const wire::PlanClass& rank_class : message.classes()) {
    plan.classes.emplace_back();
    MGC_RETURN_IF_ERROR(FromWire(rank_class, plan.mesh, &room, &plan.classes.back()));
  }
  for (const wire::StagePlace& place : message.stages()) {
    plan.stages.push_back({place.rank_class(), place.chunk()});
  }
  plan.predicted_step_ns = message.predicted_step_ns();
  plan.notes.assign(message.notes().begin(), message.notes().end());
  MGC_RETURN_IF_ERROR(CheckPlan(plan));
  return plan;
}

absl::StatusOr<Plan> ReadPlanBytes(absl::string_view bytes) {
  int verifier = 0;
  MGC_ASSIGN_OR_RETURN(const absl::string_view payload, CheckHeader(bytes, &verifier));
  wire::Plan message;
  const bool fits = payload.size() <= static_cast<size_t>(std::numeric_limits<int>::max());
  if (!fits || !message.ParseFromArray(payload.data(), static_cast<int>(payload.size()))) {
    return Refuse("file_c4", "the file is damaged: no message behind its header");
  }
  MGC_ASSIGN_OR_RETURN(Plan plan, ReadMessage(message));
  plan.verifier = verifier;
  return plan;
}

}  // namespace

void ToWire(const Plan& plan, wire::Plan* out) {
  out->set_name(plan.name);
  for (const auto& [name, value] : plan.options) {
    wire::PlanOption* option = out->add_options();
    option->set_name(name);
    option->set_value(value);
  }
  ToWire(plan.mesh, out->mutable_mesh());
  ToWire(plan.machine, out->mutable_machine());
  out->set_micro_batch_size(plan.micro_batch_size);
  out->set_global_batch_size(plan.global_batch_size);
  out->set_num_micro_batches(plan.num_micro_batches);
  out->set_seq_length(plan.seq_length);
  out->set_vocab(plan.vocab);
  if (plan.gradient_sums != DType::kF32) {
    out->set_gradient_sums(std::string(NameOf(plan.gradient_sums)));
  }
  FoldLayers(plan.model, out->mutable_model());
  for (const Segment& segment : plan.segments) ToWire(segment, out->add_segments());
  for (const ParamBlock& block : plan.blocks) ToWire(block, out->add_blocks());
  for (const PlanClass& rank_class : plan.classes) ToWire(rank_class, out->add_classes());
  for (const StagePlace& place : plan.stages) {
    wire::StagePlace* to = out->add_stages();
    to->set_rank_class(place.rank_class);
    to->set_chunk(place.chunk);
  }
  out->set_predicted_step_ns(plan.predicted_step_ns);
  for (const std::string& note : plan.notes) out->add_notes(note);
}

std::string SerializePlan(const Plan& plan) {
  wire::Plan message;
  ToWire(plan, &message);
  const std::string payload = message.SerializeAsString();
  const uint64_t hash = XXH3_64bits(payload.data(), payload.size());
  std::string bytes(kMagic);
  AppendNumber(kPlanVersion, 4, &bytes);
  AppendNumber(static_cast<uint64_t>(plan.verifier), 4, &bytes);
  AppendNumber(payload.size(), 8, &bytes);
  AppendNumber(hash, 8, &bytes);
  AppendNumber(ProofHash(payload, static_cast<uint64_t>(plan.verifier)), 8, &bytes);
  return bytes + payload;
}

absl::StatusOr<Plan> DeserializePlan(absl::string_view bytes, absl::string_view name) {
  absl::StatusOr<Plan> plan = ReadPlanBytes(bytes);
  if (!plan.ok()) return Annotate(plan.status(), EscapeBytes(name));
  return plan;
}

}  // namespace mgc
