#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/plan/proto/plan_wire_internal.h"
#include "graph/proto/wire.h"

namespace mgc {
namespace {

constexpr uint32_t kBaseKinds = 6;

absl::Status Refuse(absl::string_view message) {
  return absl::InvalidArgumentError(absl::StrCat(message, " [wire_c5]"));
}

using CallMessages = google::protobuf::RepeatedPtrField<wire::Call>;

void AddCalls(const std::vector<Call>& calls, CallMessages* out) {
  for (const Call& call : calls) {
    wire::Call* to = out->Add();
    to->set_segment(call.segment);
    to->set_layer(call.layer);
    to->set_running(call.running - kAnyRunning);
    for (const Binding& binding : call.bindings) {
      to->add_bases(static_cast<uint32_t>(binding.base));
      to->add_offsets(binding.offset);
    }
  }
}

absl::Status ReadCalls(const CallMessages& messages, std::vector<Call>* out) {
  for (const wire::Call& message : messages) {
    if (message.bases_size() != message.offsets_size()) {
      return Refuse("a call has as many bases as offsets");
    }
    Call call{message.segment(), message.layer(), {}, message.running() + kAnyRunning};
    for (int i = 0; i < message.bases_size(); ++i) {
      if (message.bases(i) >= kBaseKinds) {
        return Refuse(absl::StrCat("base ", message.bases(i), " of a call"));
      }
      call.bindings.push_back({static_cast<BaseKind>(message.bases(i)), message.offsets(i)});
    }
    out->push_back(std::move(call));
  }
  return absl::OkStatus();
}

void ToWire(const Chunk& chunk, wire::Chunk* out) {
  out->set_stage(chunk.stage);
  out->set_first_layer(chunk.first_layer);
  out->set_num_layers(chunk.num_layers);
  out->set_has_embedding(chunk.has_embedding);
  out->set_has_head(chunk.has_head);
  AddCalls(chunk.prepare, out->mutable_prepare());
  AddCalls(chunk.forward, out->mutable_forward());
  AddCalls(chunk.backward, out->mutable_backward());
  AddCalls(chunk.last_backward, out->mutable_last_backward());
  out->set_frame_bytes(chunk.frame_bytes);
}

absl::Status ReadChunks(const google::protobuf::RepeatedPtrField<wire::Chunk>& messages,
                        std::vector<Chunk>* out) {
  for (const wire::Chunk& message : messages) {
    Chunk chunk;
    chunk.stage = message.stage();
    chunk.first_layer = message.first_layer();
    chunk.num_layers = message.num_layers();
    chunk.has_embedding = message.has_embedding();
    chunk.has_head = message.has_head();
    MGC_RETURN_IF_ERROR(ReadCalls(message.prepare(), &chunk.prepare));
    MGC_RETURN_IF_ERROR(ReadCalls(message.forward(), &chunk.forward));
    MGC_RETURN_IF_ERROR(ReadCalls(message.backward(), &chunk.backward));
    MGC_RETURN_IF_ERROR(ReadCalls(message.last_backward(), &chunk.last_backward));
    chunk.frame_bytes = message.frame_bytes();
    out->push_back(std::move(chunk));
  }
  return absl::OkStatus();
}

using NamedMessages = google::protobuf::RepeatedPtrField<wire::NamedAddress>;

void AddNamed(const std::vector<NamedAddress>& list, NamedMessages* out) {
  for (const NamedAddress& entry : list) {
    wire::NamedAddress* to = out->Add();
    to->set_name(entry.name);
    to->set_address(entry.address);
  }
}

std::vector<NamedAddress> ReadNamed(const NamedMessages& messages) {
  std::vector<NamedAddress> list;
  for (const wire::NamedAddress& message : messages) {
    list.push_back({message.name(), message.address()});
  }
  return list;
}

void ToWire(const MemoryUse& memory, wire::MemoryUse* out) {
  out->set_params(memory.params);
  out->set_grads(memory.grads);
  out->set_states(memory.states);
  out->set_copies(memory.copies);
  out->set_frames(memory.frames);
  out->set_boundaries(memory.boundaries);
  out->set_transient(memory.transient);
  out->set_peak(memory.peak);
  out->set_workspace(memory.workspace);
}

MemoryUse FromWire(const wire::MemoryUse& message) {
  MemoryUse memory;
  memory.params = message.params();
  memory.grads = message.grads();
  memory.states = message.states();
  memory.copies = message.copies();
  memory.frames = message.frames();
  memory.boundaries = message.boundaries();
  memory.transient = message.transient();
  memory.peak = message.peak();
  memory.workspace = message.workspace();
  return memory;
}

void AddRanges(const std::vector<Range>& ranges,
               google::protobuf::RepeatedPtrField<wire::Range>* out) {
  for (const Range& range : ranges) {
    wire::Range* to = out->Add();
    to->set_begin(range.begin);
    to->set_end(range.end);
  }
}

std::vector<Range> ReadRanges(const google::protobuf::RepeatedPtrField<wire::Range>& messages) {
  std::vector<Range> ranges;
  ranges.reserve(static_cast<size_t>(messages.size()));
  for (const wire::Range& range : messages) ranges.push_back({range.begin(), range.end()});
  return ranges;
}

}  // namespace

void AddTensors(const std::vector<NamedTensor>& tensors,
                google::protobuf::RepeatedPtrField<wire::NamedTensor>* out) {
  for (const NamedTensor& tensor : tensors) {
    wire::NamedTensor* to = out->Add();
    to->set_name(tensor.name);
    ToWire(tensor.type, to->mutable_type());
    ToWire(tensor.sharding, to->mutable_sharding());
    to->set_address(tensor.address);
  }
}

absl::StatusOr<std::vector<NamedTensor>> ReadTensors(
    const google::protobuf::RepeatedPtrField<wire::NamedTensor>& messages, const Mesh& mesh) {
  std::vector<NamedTensor> tensors;
  for (const wire::NamedTensor& message : messages) {
    NamedTensor tensor;
    tensor.name = message.name();
    MGC_ASSIGN_OR_RETURN(tensor.type, FromWire(message.type()));
    MGC_ASSIGN_OR_RETURN(tensor.sharding, FromWire(message.sharding(), tensor.type, mesh));
    tensor.address = message.address();
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

void ToWire(const PlanClass& rank_class, wire::PlanClass* out) {
  out->set_coordinate(rank_class.coordinate);
  for (const HeldBlock& held : rank_class.blocks) {
    wire::HeldBlock* to = out->add_blocks();
    to->set_block(held.block);
    to->set_layer(held.layer);
    to->set_copy(!held.owner);
    to->set_param_base(held.param_base);
    to->set_grad_base(held.grad_base);
    to->set_state_base(held.state_base);
  }
  for (const Chunk& chunk : rank_class.chunks) ToWire(chunk, out->add_chunks());
  for (const Chunk& chunk : rank_class.eval_chunks) ToWire(chunk, out->add_eval_chunks());
  AddCalls(rank_class.update, out->mutable_update());
  AddCalls(rank_class.eval_update, out->mutable_eval_update());
  ToWire(rank_class.train, out->mutable_train());
  ToWire(rank_class.eval, out->mutable_eval());
  AddRanges(rank_class.zeroed, out->mutable_zeroed());
  AddRanges(rank_class.eval_zeroed, out->mutable_eval_zeroed());
  out->set_global_bytes(rank_class.global_bytes);
  out->set_eval_global_bytes(rank_class.eval_global_bytes);
  AddNamed(rank_class.scalars, out->mutable_scalars());
  AddNamed(rank_class.carried, out->mutable_carried());
  AddNamed(rank_class.reports, out->mutable_reports());
  AddNamed(rank_class.eval_reports, out->mutable_eval_reports());
  AddTensors(rank_class.results, out->mutable_results());
  ToWire(rank_class.memory, out->mutable_memory());
}

absl::Status FromWire(const wire::PlanClass& message, const Mesh& mesh, int64_t* room,
                      PlanClass* out) {
  out->coordinate = message.coordinate();
  for (const wire::HeldBlock& held : message.blocks()) {
    out->blocks.push_back({held.block(), held.layer(), !held.copy(), held.param_base(),
                           held.grad_base(), held.state_base()});
  }
  MGC_RETURN_IF_ERROR(ReadChunks(message.chunks(), &out->chunks));
  MGC_RETURN_IF_ERROR(ReadChunks(message.eval_chunks(), &out->eval_chunks));
  MGC_RETURN_IF_ERROR(ReadCalls(message.update(), &out->update));
  MGC_RETURN_IF_ERROR(ReadCalls(message.eval_update(), &out->eval_update));
  MGC_RETURN_IF_ERROR(FromWire(message.train(), room, &out->train));
  MGC_RETURN_IF_ERROR(FromWire(message.eval(), room, &out->eval));
  out->zeroed = ReadRanges(message.zeroed());
  out->eval_zeroed = ReadRanges(message.eval_zeroed());
  out->global_bytes = message.global_bytes();
  out->eval_global_bytes = message.eval_global_bytes();
  out->scalars = ReadNamed(message.scalars());
  out->carried = ReadNamed(message.carried());
  out->reports = ReadNamed(message.reports());
  out->eval_reports = ReadNamed(message.eval_reports());
  MGC_ASSIGN_OR_RETURN(out->results, ReadTensors(message.results(), mesh));
  out->memory = FromWire(message.memory());
  return absl::OkStatus();
}

}  // namespace mgc
