#include "passes/search/plans/group_tree.h"

#include <algorithm>
#include <cmath>

#include "graph/plan/instr_collective.h"
#include "passes/plan/time/cost.h"

namespace mgc {
namespace {

bool IsFiner(const ProfileKey& key, const ProfileKey& than) {
  return key.micro_batch_size == than.micro_batch_size && key.compute_type == than.compute_type &&
         key.tp % than.tp == 0 && key.cp % than.cp == 0 && key.tp * key.cp > than.tp * than.cp &&
         key.sequence_parallel >= than.sequence_parallel;
}

int64_t ExposedNs(const LayerProfile& layer) {
  return std::max<int64_t>(0, layer.forward_ns + layer.backward_ns - layer.compute_ns);
}

}  // namespace

GroupTree::GroupTree(const SearchSpace& space, const ModelDims& dims, const Machine& machine)
    : groups_(space.groups),
      world_size_(space.base.world_size),
      global_batch_size_(space.base.global_batch_size),
      machine_(machine),
      kv_share_(dims.heads == 0
                    ? 1
                    : static_cast<double>(dims.kv_heads) / static_cast<double>(dims.heads)),
      finer_(groups_.size()) {
  for (size_t g = 0; g < groups_.size(); ++g) {
    bool is_root = true;
    for (size_t h = 0; h < groups_.size(); ++h) {
      if (IsFiner(groups_[h].key, groups_[g].key)) finer_[g].push_back(h);
      is_root = is_root && !IsFiner(groups_[g].key, groups_[h].key);
    }
    if (is_root) roots_.push_back(g);
  }
}

int64_t GroupTree::LeastStepNs(const ModelProfile& profile, size_t group, size_t finer) const {
  const ProfileKey& from = groups_[group].key;
  const ProfileKey& to = groups_[finer].key;
  const bool shares_cores = machine_.cores > 0;
  double compute = 0;
  double exposed = 0;
  for (const LayerProfile& layer : profile.layers) {
    compute += static_cast<double>(layer.compute_ns);
    exposed += static_cast<double>(shares_cores ? layer.forward_queue_ns + layer.backward_queue_ns
                                                : ExposedNs(layer));
  }
  const auto ranks = static_cast<double>(to.tp * to.cp);
  const double parts = ranks / static_cast<double>(from.tp * from.cp);
  const double micro_batches =
      static_cast<double>(global_batch_size_) / static_cast<double>(to.micro_batch_size);
  const auto spread = static_cast<double>(shares_cores ? machine_.cores : world_size_);
  const double ns = (compute / parts + exposed) * micro_batches * ranks / spread;
  return static_cast<int64_t>(std::min(ns, static_cast<double>(kMaxNs)));
}

// Four all-reduces of the stream.
int64_t GroupTree::TensorNs(const ProfileKey& key, int64_t stream) const {
  if (key.tp == 1) return 0;
  const int64_t ends[] = {0, key.tp - 1};
  const int64_t wire = RingWireBytes(CollectiveKind::kAllReduce, stream / key.cp, key.tp);
  return 4 * TransferNs(machine_.TierOf(ends), wire);
}

// Three gathers of keys and values.
int64_t GroupTree::ContextNs(const ProfileKey& key, int64_t stream) const {
  if (key.cp == 1) return 0;
  const int64_t ends[] = {0, (key.cp - 1) * key.tp};
  const int64_t piece = stream / key.tp;
  const auto bytes = static_cast<int64_t>(2 * kv_share_ * static_cast<double>(piece));
  const int64_t wire = RingWireBytes(CollectiveKind::kAllGather, bytes, key.cp);
  return 3 * TransferNs(machine_.TierOf(ends), wire);
}

ModelProfile GroupTree::Expect(const ModelProfile& profile, size_t group, size_t finer) const {
  const ProfileKey& from = groups_[group].key;
  const ProfileKey& to = groups_[finer].key;
  const int64_t parts = (to.tp / from.tp) * (to.cp / from.cp);
  const int64_t stream = profile.stream_bytes * from.cp * (from.sequence_parallel ? from.tp : 1);
  const int64_t tensor = TensorNs(from, stream);
  ModelProfile expected = profile;
  expected.stream_bytes /= parts;
  for (LayerProfile& layer : expected.layers) {
    int64_t exposed = Later(TensorNs(to, stream), ContextNs(to, stream));
    if (tensor > 0) {
      const double more = static_cast<double>(TensorNs(to, stream)) / static_cast<double>(tensor);
      exposed = ContextNs(to, stream) + std::llround(static_cast<double>(ExposedNs(layer)) * more);
    }
    const int64_t backward = layer.backward_ns - ExposedNs(layer) / 2;
    const int64_t forward = layer.compute_ns - std::min(layer.compute_ns, backward);
    layer.forward_ns = Later(forward / parts, exposed / 2);
    layer.backward_ns = Later(backward / parts, exposed / 2);
    for (int64_t* value :
         {&layer.compute_ns, &layer.update_ns, &layer.frame_bytes, &layer.param_bytes,
          &layer.grad_bytes, &layer.state_bytes, &layer.copy_bytes, &layer.transient_bytes}) {
      *value /= parts;
    }
  }
  return expected;
}

}  // namespace mgc
