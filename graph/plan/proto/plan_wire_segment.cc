#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "graph/base/file.h"
#include "graph/base/status.h"
#include "graph/ir/assemble.h"
#include "graph/ir/op.h"
#include "graph/plan/proto/plan_wire_internal.h"
#include "graph/proto/wire.h"

namespace mgc {
namespace {

constexpr uint32_t kInstrKinds = 4;
constexpr uint32_t kPhases = kNumPhases;

absl::Status Refuse(absl::string_view label, absl::string_view message) {
  return absl::InvalidArgumentError(absl::StrCat(message, " [", label, "]"));
}

// Numbers equal messages alike, in the order of their first use, and lists each once.
template <typename Message>
class Interner {
 public:
  explicit Interner(google::protobuf::RepeatedPtrField<Message>* list) : list_(list) {}

  template <typename Object>
  uint32_t NumberOf(const Object& object) {
    Message message;
    ToWire(object, &message);
    const auto [it, added] =
        numbers_.try_emplace(message.SerializeAsString(), static_cast<uint32_t>(list_->size()));
    if (added) *list_->Add() = std::move(message);
    return it->second;
  }

 private:
  google::protobuf::RepeatedPtrField<Message>* list_;
  absl::flat_hash_map<std::string, uint32_t> numbers_;
};

void ToWire(const Instr& instr, wire::Instr* out) {
  out->set_kind(static_cast<uint32_t>(instr.kind));
  if (instr.op != nullptr) out->set_op(instr.op->name);
  ToWire(instr.attrs, out->mutable_attrs());
  for (int slot : instr.inputs) out->add_inputs(slot);
  for (int slot : instr.outputs) out->add_outputs(slot);
  out->set_collective(instr.collective);
  out->set_phase(static_cast<uint32_t>(instr.phase));
  out->set_file(instr.loc.file);
  if (instr.loc.file != kNone) {
    out->set_line(instr.loc.line);
    out->set_column(instr.loc.column);
  }
  out->set_origin(instr.origin);
}

absl::Status ReadInstr(const wire::Instr& message, Instr* out) {
  if (message.kind() >= kInstrKinds || message.phase() >= kPhases) {
    return Refuse("wire_c5", absl::StrCat("kind ", message.kind(), " or phase ", message.phase()));
  }
  out->kind = static_cast<InstrKind>(message.kind());
  out->phase = static_cast<Phase>(message.phase());
  if (!message.op().empty()) {
    MGC_ASSIGN_OR_RETURN(out->op, FindOpOrSuggest(message.op()));
  }
  MGC_ASSIGN_OR_RETURN(out->attrs, FromWire(message.attrs()));
  out->inputs.assign(message.inputs().begin(), message.inputs().end());
  out->outputs.assign(message.outputs().begin(), message.outputs().end());
  out->collective = message.collective();
  if (message.file() != kNone) out->loc = {message.file(), message.line(), message.column()};
  out->origin = message.origin();
  return absl::OkStatus();
}

absl::Status ReadSlot(const wire::Segment& message, const wire::Slot& from, const Mesh& mesh,
                      Slot* out) {
  if (from.type() >= static_cast<uint32_t>(message.types_size()) ||
      from.sharding() >= static_cast<uint32_t>(message.shardings_size())) {
    return Refuse("wire_c5", absl::StrCat("type ", from.type(), " or sharding ", from.sharding()));
  }
  out->name = from.name();
  MGC_ASSIGN_OR_RETURN(out->type, FromWire(message.types(static_cast<int>(from.type()))));
  MGC_ASSIGN_OR_RETURN(out->sharding, FromWire(message.shardings(static_cast<int>(from.sharding())),
                                               out->type, mesh));
  out->formal = from.formal();
  out->offset = from.offset();
  out->bytes = from.bytes();
  return absl::OkStatus();
}

}  // namespace

void ToWire(const Formal& formal, wire::Formal* out) {
  out->set_region(static_cast<uint32_t>(formal.region));
  out->set_block(formal.block);
}

absl::Status FromWire(const wire::Formal& message, Formal* out) {
  if (message.region() >= static_cast<uint32_t>(kNumRegions)) {
    return Refuse("wire_c5", absl::StrCat("region ", message.region(), " of a formal"));
  }
  *out = {static_cast<Region>(message.region()), message.block()};
  if (IsSound(*out)) return absl::OkStatus();
  return Refuse("wire_c5", absl::StrCat("formal ", EscapeBytes(ToString(*out)), " has no blocks"));
}

void ToWire(const Segment& segment, wire::Segment* out) {
  out->set_name(segment.name);
  for (const Formal& formal : segment.formals) ToWire(formal, out->add_formals());
  Interner<wire::TensorType> types(out->mutable_types());
  Interner<wire::Sharding> shardings(out->mutable_shardings());
  for (const Slot& slot : segment.slots) {
    wire::Slot* to = out->add_slots();
    to->set_name(slot.name);
    to->set_type(types.NumberOf(slot.type));
    to->set_sharding(shardings.NumberOf(slot.sharding));
    to->set_formal(slot.formal);
    to->set_offset(slot.offset);
    to->set_bytes(slot.bytes);
  }
  for (const Instr& instr : segment.instrs) ToWire(instr, out->add_instrs());
  out->set_num_collectives(segment.num_collectives);
  out->set_transient_bytes(segment.transient_bytes);
  out->set_workspace_bytes(segment.workspace_bytes);
}

absl::Status FromWire(const wire::Segment& message, const Mesh& mesh, Segment* out) {
  out->name = message.name();
  const std::string where = absl::StrCat("segment ", EscapeBytes(message.name()));
  for (const wire::Formal& formal : message.formals()) {
    const absl::Status status = FromWire(formal, &out->formals.emplace_back());
    if (!status.ok()) return Annotate(status, where);
  }
  for (int i = 0; i < message.slots_size(); ++i) {
    out->slots.emplace_back();
    const absl::Status status = ReadSlot(message, message.slots(i), mesh, &out->slots.back());
    if (!status.ok()) return Annotate(status, absl::StrCat(where, ": slot ", i));
  }
  for (int i = 0; i < message.instrs_size(); ++i) {
    out->instrs.emplace_back();
    const absl::Status status = ReadInstr(message.instrs(i), &out->instrs.back());
    if (!status.ok()) return Annotate(status, absl::StrCat(where, ": instruction ", i));
  }
  out->num_collectives = message.num_collectives();
  out->transient_bytes = message.transient_bytes();
  out->workspace_bytes = message.workspace_bytes();
  return absl::OkStatus();
}

}  // namespace mgc
