// Random choices for tests, the same on every platform.

#ifndef MGC_TESTS_FUZZ_DICE_H_
#define MGC_TESTS_FUZZ_DICE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace mgc {

// A small random number generator.
class Dice {
 public:
  explicit Dice(uint64_t seed) : state_(seed) {}
  uint64_t Next();
  size_t Below(size_t n) { return static_cast<size_t>(Next() % n); }
  bool Flip() { return Below(2) == 0; }
  bool OneIn(size_t n) { return Below(n) == 0; }
  // Null for an empty list.
  template <class T>
  T* Pick(std::vector<T>* list) {
    return list->empty() ? nullptr : &(*list)[Below(list->size())];
  }
  // `from` holds something.
  template <class T>
  T Of(const std::vector<T>& from) {
    return from[Below(from.size())];
  }

 private:
  uint64_t state_;
};

}  // namespace mgc

#endif  // MGC_TESTS_FUZZ_DICE_H_
