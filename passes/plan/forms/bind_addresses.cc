#include "passes/plan/forms/bind_addresses.h"

#include <utility>

namespace mgc {
namespace {

BaseKind BaseKindOf(StagedBase base) {
  switch (base) {
    case StagedBase::kRegion:
      break;
    case StagedBase::kFrame:
      return BaseKind::kFrame;
    case StagedBase::kInput:
      return BaseKind::kInput;
    case StagedBase::kOutput:
      return BaseKind::kOutput;
    case StagedBase::kGradInput:
      return BaseKind::kGradInput;
    case StagedBase::kGradOutput:
      return BaseKind::kGradOutput;
  }
  return BaseKind::kAbsolute;
}

}  // namespace

BoundarySlots::BoundarySlots(int64_t base, const std::vector<int64_t>& bytes) {
  addresses_.reserve(bytes.size());
  for (const int64_t of_one : bytes) {
    addresses_.push_back(base);
    base += of_one;
  }
}

int64_t BoundarySlots::AddressOf(int64_t slot) const {
  const bool exists = slot >= 0 && slot < static_cast<int64_t>(addresses_.size());
  return exists ? addresses_[static_cast<size_t>(slot)] : -1;
}

std::vector<Call> BindCalls(const std::vector<StagedCall>& staged, const RegionBase& base) {
  std::vector<Call> calls;
  calls.reserve(staged.size());
  for (const StagedCall& from : staged) {
    Call call{from.segment, from.layer, {}, from.running};
    for (size_t f = 0; f < from.bindings.size(); ++f) {
      const StagedBinding& binding = from.bindings[f];
      const int64_t begin = binding.base == StagedBase::kRegion ? base(from, f) : 0;
      call.bindings.push_back({BaseKindOf(binding.base), begin + binding.offset});
    }
    calls.push_back(std::move(call));
  }
  return calls;
}

std::vector<Chunk> BindChunks(const std::vector<StagedChunk>& staged, const RegionBase& base) {
  std::vector<Chunk> chunks;
  chunks.reserve(staged.size());
  for (const StagedChunk& from : staged) {
    Chunk chunk;
    chunk.stage = from.stage;
    chunk.first_layer = from.first_layer;
    chunk.num_layers = from.num_layers;
    chunk.has_embedding = from.has_embedding;
    chunk.has_head = from.has_head;
    for (size_t list = 0; list < kNumChunkLists; ++list) {
      *ListsOf(&chunk)[list] = BindCalls(*ListsOf(from)[list], base);
    }
    chunk.frame_bytes = from.frame_bytes;
    chunks.push_back(std::move(chunk));
  }
  return chunks;
}

Program BindProgram(OrderedProgram ordered, const std::vector<int64_t>& frames,
                    const BoundarySlots& slots) {
  Program program;
  program.compute.reserve(ordered.compute.size());
  for (size_t i = 0; i < ordered.compute.size(); ++i) {
    OrderedAction& from = ordered.compute[i];
    program.compute.push_back({from.ref, frames[i], slots.AddressOf(from.input),
                               slots.AddressOf(from.output), slots.AddressOf(from.grad_input),
                               slots.AddressOf(from.grad_output), std::move(from.waits)});
  }
  program.transfers.reserve(ordered.transfers.size());
  for (OrderedTransfer& from : ordered.transfers) {
    program.transfers.push_back({from.ref, slots.AddressOf(from.slot), from.bytes, from.peer,
                                 from.anchor, from.issued, std::move(from.after),
                                 std::move(from.after_transfers)});
  }
  return program;
}

std::vector<NamedAddress> BindNames(const std::vector<NamedOffset>& offsets, int64_t base) {
  std::vector<NamedAddress> addresses;
  addresses.reserve(offsets.size());
  for (const NamedOffset& named : offsets) {
    addresses.push_back({named.name, base + named.offset});
  }
  return addresses;
}

std::vector<NamedTensor> BindResults(const std::vector<StagedResult>& results, int64_t base) {
  std::vector<NamedTensor> bound;
  for (const StagedResult& result : results) {
    bound.push_back({result.name, result.type, result.sharding, base + result.offset});
  }
  return bound;
}

}  // namespace mgc
