#include "tests/fuzz/dice.h"

namespace mgc {

uint64_t Dice::Next() {
  // Steele, Lea, Flood: "Fast splittable pseudorandom number generators", OOPSLA 2014.
  uint64_t z = state_ += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

}  // namespace mgc
