#include "graph/eval/models/residue_model.h"

#include <cstring>

#include "graph/eval/models/scalar.h"

namespace mgc {
namespace {

// Beside ResidueModel::kOrderTag and above all tags of functions.
constexpr uint64_t kRandomTag = uint64_t{2} << 32;
constexpr uint64_t kIndexedTag = uint64_t{3} << 32;

uint64_t BitsOf(double x) {
  uint64_t bits = 0;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}

// The next number of a sequence that `state` begins (Steele, Lea, Flood: "Fast splittable
// pseudorandom number generators", OOPSLA 2014).
uint64_t SplitMix(uint64_t* state) {
  uint64_t z = *state += 0x9E3779B97F4A7C15;
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
  z = (z ^ z >> 27) * 0x94D049BB133111EB;
  return z ^ z >> 31;
}

}  // namespace

ResidueModel::ResidueModel(uint64_t key)
    : inverses_(size_t{1} << kSlotBits), shift_{~uint64_t{0}, 0} {
  for (uint64_t& made : keys_) made = SplitMix(&key);
  for (uint64_t& made : round_keys_) made = SplitMix(&key);
}

ResiduePair ResidueModel::Random(uint64_t seed, uint64_t stream, uint64_t index,
                                 double keep) const {
  ++calls_;
  return Finish(Absorb(Absorb(Begin(kRandomTag), seed, stream), index, BitsOf(keep)));
}

// How many attributes there are is hashed with the index: no list of them is the beginning of
// another.
ResiduePair ResidueModel::AtIndex(absl::string_view name, absl::Span<const double> attrs,
                                  std::initializer_list<int64_t> index) const {
  ++calls_;
  Hash hash = Begin(kIndexedTag | Tag(name));
  for (double attr : attrs) hash = Absorb(hash, BitsOf(attr), 0);
  for (int64_t i : index) hash = Absorb(hash, static_cast<uint64_t>(i), attrs.size());
  return Finish(hash);
}

ResiduePair ResidueModel::ComputeInverse(ResiduePair x) const {
  if (x.a == 0 || x.b == 0) {
    ++zero_denominators_;
    return {};
  }
  const ResiduePair inverse = {FirstField::Inverse(x.a), SecondField::Inverse(x.b)};
  inverses_[Slot(x)] = {x, inverse};
  return inverse;
}

void ResidueModel::SetShift(ResiduePair m) const {
  shift_ = m;
  inverse_shift_ = Inv(Permute(m));
}

bool ResidueModel::IsZeroAtZero(absl::string_view name) {
  return ScalarFunctionOf(name).zero_at_zero;
}

}  // namespace mgc
