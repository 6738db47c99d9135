#include "graph/verify/common/placed_values.h"

#include <iterator>

namespace mgc {

void PlacedValues::Write(int64_t begin, const PlacedValue& value) {
  auto at = values_.lower_bound(begin);
  if (at != values_.begin() && std::prev(at)->second.end > begin) --at;
  while (at != values_.end() && at->first < value.end) at = values_.erase(at);
  values_.insert_or_assign(begin, value);
}

const PlacedValue* PlacedValues::At(int64_t begin) const {
  const auto at = values_.find(begin);
  return at == values_.end() ? nullptr : &at->second;
}

}  // namespace mgc
