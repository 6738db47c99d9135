// What the backward pass of one micro-batch computes on a single device, found by its numbers.
//
// A plan may name what it computes as it likes and leave steps out or take them together; so a
// value of its backward pass is looked up by content. Random residues make that unique.

#ifndef MGC_GRAPH_VERIFY_MEANING_BACKWARD_VALUES_H_
#define MGC_GRAPH_VERIFY_MEANING_BACKWARD_VALUES_H_

#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "graph/types/mesh.h"
#include "graph/types/sharding.h"
#include "graph/types/tensor_type.h"
#include "graph/verify/meaning/step_inputs.h"

namespace mgc {

class BackwardValues {
 public:
  // `whole` is a tensor of real numbers without padding.
  void Add(ResidueTensor whole);
  // Whether one of them has this shape. Pieces of values have others.
  bool HasShape(const std::vector<int64_t>& shape) const { return shapes_.count(shape) > 0; }
  // Whether `tile` is what `rank` holds of one of them, or zero.
  bool Has(const ResidueTensor& tile, const TensorType& type, const Sharding& sharding,
           const Mesh& mesh, int64_t rank) const;

 private:
  std::vector<ResidueTensor> values_;
  std::set<std::vector<int64_t>> shapes_;
  // Which values hold a number, by its residue of the first field.
  absl::flat_hash_map<uint64_t, std::vector<size_t>> by_number_;
};

}  // namespace mgc

#endif  // MGC_GRAPH_VERIFY_MEANING_BACKWARD_VALUES_H_
