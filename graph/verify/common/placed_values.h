// What stands where in the memory of a class: the types and shardings last written, by address.

#ifndef MGC_GRAPH_VERIFY_COMMON_PLACED_VALUES_H_
#define MGC_GRAPH_VERIFY_COMMON_PLACED_VALUES_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "absl/strings/string_view.h"
#include "graph/plan/plan.h"

namespace mgc {

// A value as it was written. Types and shardings belong to the plan.
struct PlacedValue {
  int64_t end = 0;
  const TensorType* type = nullptr;
  const Sharding* sharding = nullptr;
  absl::string_view name;
  const Segment* by = nullptr;  // who wrote it; null: there from the start
  size_t instr = 0;
  bool of_stage = false;  // made for one layer: the other stages have none
  int tied_sums = 0;      // how often the copies of a tied weight were summed on its way
};

// One address space: the arena of a class, the frame or a boundary of a chunk.
class PlacedValues {
 public:
  using Map = std::map<int64_t, PlacedValue>;

  void Clear() { values_.clear(); }
  // Whatever it overlaps is gone.
  void Write(int64_t begin, const PlacedValue& value);
  // The value that begins there, or null.
  const PlacedValue* At(int64_t begin) const;
  const Map& values() const { return values_; }

 private:
  Map values_;
};

}  // namespace mgc

#endif  // MGC_GRAPH_VERIFY_COMMON_PLACED_VALUES_H_
