#ifndef MGC_RUNTIME_DATA_TOKENS_EVEN_PLACE_H_
#define MGC_RUNTIME_DATA_TOKENS_EVEN_PLACE_H_

#include <cstdint>

namespace mgc {

// Where look number `look` of `looks` goes, so that they lie evenly in [0, size), from 0 on;
// looks <= size, and their product with the rest may be large.
inline int64_t EvenPlace(int64_t look, int64_t looks, int64_t size) {
  return size / looks * look + size % looks * look / looks;
}

}  // namespace mgc

#endif  // MGC_RUNTIME_DATA_TOKENS_EVEN_PLACE_H_
