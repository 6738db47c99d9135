// The second model of graph/eval/models/scalar.h: pairs of residues modulo two primes, for exact
// equality.
//
// Two programs that mean the same give the same pairs, bit for bit, in whatever order and on
// however many ranks they add; two that differ give the same pair only by chance. Constants, sums,
// products and quotients are what they are modulo both primes. All else is keyed by the model's
// key:
//
//   Fn         a pseudo-random function of name and arguments, both components of all of them at
//              once. f(0) = 0 where declared: when every argument is zero, so that padding stays
//              padding. (min(1, 0) is random like any other: its first argument is not padding.)
//   ExpDiff    E(a) / E(m), E a pseudo-random permutation of pairs, so that softmax, cut into
//   LogShift   blocks or rescaled, stays equal to itself, and a forgotten rescale shows;
//              log_shift(z, m) is the inverse of E at z E(m).
//   Max        by a pseudo-random total order. Values themselves must not order: 1 would be below
//              nearly everything.
//   Random     a pseudo-random pair for each (seed, stream, index, keep).
//   Indexed    a pseudo-random pair for each (name, attributes, index), whatever the real function
//              is: it may depend on a size, which is another one where this model runs.
//   IndexBelow a pseudo-random index, likewise.
//
// NegInf is a symbol: one fixed pair, below everything in Max; E takes it to zero and zero back to
// it. Other arithmetic treats it as a pair like any other. No attribute stands for it: constants
// are finite, and none has its residues.
//
// With the keyed functions taken as random, two different results agree with a probability of at
// most N^2 / 2 (D / p) (D / q), N being calls(), D the degree of what lies between two calls and p
// and q the primes.
//
// A model remembers its last inverses and counts: share none between threads. A copy counts alone.

#ifndef MGC_GRAPH_EVAL_MODELS_RESIDUE_MODEL_H_
#define MGC_GRAPH_EVAL_MODELS_RESIDUE_MODEL_H_

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "graph/base/status.h"
#include "graph/eval/models/residue.h"

namespace mgc {

class ResidueModel {
 public:
  using Scalar = ResiduePair;

  explicit ResidueModel(uint64_t key);

  // x is finite.
  ResiduePair Constant(double x) const {
    MGC_CHECK(std::isfinite(x)) << x;
    if (x == 0) return {};
    return {FirstField::OfDouble(x), SecondField::OfDouble(x)};
  }
  ResiduePair Size(int64_t n) const { return {FirstField::OfInt(n), SecondField::OfInt(n)}; }
  ResiduePair Ratio(int64_t a, int64_t b) const { return Size(a) * Inv(Size(b)); }
  ResiduePair Add(ResiduePair x, ResiduePair y) const { return x + y; }
  ResiduePair Sub(ResiduePair x, ResiduePair y) const { return x - y; }
  ResiduePair Mul(ResiduePair x, ResiduePair y) const { return x * y; }
  // Zero, and counted, when a component of x is zero.
  ResiduePair Inv(ResiduePair x) const {
    const Inverse& known = inverses_[Slot(x)];
    return known.of == x && !x.IsZero() ? known.inverse : ComputeInverse(x);
  }
  ResiduePair NegInf() const { return kNegInf; }
  ResiduePair Max(ResiduePair x, ResiduePair y) const;
  ResiduePair ExpDiff(ResiduePair a, ResiduePair m) const {
    if (a == kNegInf) return {};
    if (m != shift_) SetShift(m);
    return Permute(a) * inverse_shift_;
  }
  ResiduePair LogShift(ResiduePair z, ResiduePair m) const {
    const ResiduePair image = z * Permute(m);
    return image.IsZero() ? kNegInf : Unpermute(image);
  }
  ResiduePair Select(ResiduePair flag, ResiduePair x, ResiduePair y) const {
    return y + flag * (x - y);
  }
  ResiduePair Fn(absl::string_view name, std::initializer_list<ResiduePair> args) const;
  ResiduePair Random(uint64_t seed, uint64_t stream, uint64_t index, double keep) const;
  template <class Real>
  ResiduePair Indexed(absl::string_view name, absl::Span<const double> attrs,
                      std::initializer_list<int64_t> index, const Real& /*real*/) const {
    return AtIndex(name, attrs, index);
  }
  template <class Exact>
  int64_t IndexBelow(int64_t bound, absl::string_view name, absl::Span<const double> attrs,
                     std::initializer_list<int64_t> index, const Exact& /*exact*/) const {
    return static_cast<int64_t>(AtIndex(name, attrs, index).a % static_cast<uint64_t>(bound));
  }

  // Calls so far of Fn, Random, Indexed, IndexBelow and Max, and evaluations of E and its inverse.
  int64_t calls() const { return calls_; }
  // Inverses of zero so far. By chance there is none: one says that an operand was zero where the
  // program divides (which may have been padding).
  int64_t zero_denominators() const { return zero_denominators_; }

 private:
  static constexpr ResiduePair kNegInf = {0x0243F6A8885A308D, 0x1198A2E03707344A};
  static constexpr uint64_t kOrderTag = uint64_t{1} << 32;  // above all that Tag makes
  static constexpr int kSlotBits = 12;
  static constexpr size_t kRounds = 4;

  struct Inverse {
    ResiduePair of;
    ResiduePair inverse;
  };
  // State of a hash of pairs, 128 bits wide so that it keeps what a pair tells.
  struct Hash {
    uint64_t x;
    uint64_t y;
  };

  // Both halves of a product of 128 bits, folded: the nonlinear step of all hashes here.
  static uint64_t Fold(uint64_t x, uint64_t y) {
    const unsigned __int128 product = static_cast<unsigned __int128>(x) * y;
    return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
  }
  static size_t Slot(ResiduePair x) {
    return static_cast<size_t>((x.a * 0x9E3779B97F4A7C15 ^ x.b * 0xC2B2AE3D27D4EB4F) >>
                               (64 - kSlotBits));
  }
  // Of a function's name; different for all of ScalarFunctions(). Known when compiling, where the
  // name is.
  static uint64_t Tag(absl::string_view name) {
    const auto at = [name](size_t i) { return static_cast<uint64_t>(name[i]); };
    const size_t n = name.size();
    return n == 0 ? 0 : n | at(0) << 8 | at(n / 2) << 16 | at(n - 1) << 24;
  }

  // Hashes for different purposes differ in `tag`.
  Hash Begin(uint64_t tag) const { return {keys_[0] ^ tag, keys_[1] + tag}; }
  Hash Absorb(Hash h, uint64_t a, uint64_t b) const {
    return {Fold(h.x ^ a, keys_[2] ^ b), Fold(h.y ^ b, keys_[3] ^ a)};
  }
  ResiduePair Finish(Hash h) const {
    return {FirstField::Reduce(Fold(h.x ^ keys_[4], h.y ^ keys_[5])),
            SecondField::Reduce(Fold(h.x ^ keys_[6], h.y ^ keys_[7]))};
  }

  // Round r of the Feistel network that is E: to add or subtract, below either prime.
  uint64_t Round(size_t r, uint64_t x) const {
    const uint64_t turned = x << 32 | x >> 32;
    return SecondField::Reduce(Fold(x + round_keys_[2 * r], turned ^ round_keys_[2 * r + 1]));
  }
  ResiduePair Permute(ResiduePair x) const {
    if (x == kNegInf) return {};
    ++calls_;
    for (size_t r = 0; r < kRounds; r += 2) {
      x.a = FirstField::Add(x.a, Round(r, x.b));
      x.b = SecondField::Add(x.b, Round(r + 1, x.a));
    }
    return x;
  }
  ResiduePair Unpermute(ResiduePair x) const {
    ++calls_;
    for (size_t r = kRounds; r > 0; r -= 2) {
      x.b = SecondField::Sub(x.b, Round(r - 1, x.a));
      x.a = FirstField::Sub(x.a, Round(r - 2, x.b));
    }
    return x;
  }

  ResiduePair AtIndex(absl::string_view name, absl::Span<const double> attrs,
                      std::initializer_list<int64_t> index) const;
  ResiduePair ComputeInverse(ResiduePair x) const;
  void SetShift(ResiduePair m) const;
  static bool IsZeroAtZero(absl::string_view name);

  std::array<uint64_t, 8> keys_;
  std::array<uint64_t, 2 * kRounds> round_keys_;
  mutable std::vector<Inverse> inverses_;  // [Slot]
  mutable ResiduePair shift_;              // the m of the last ExpDiff; at first, no pair
  mutable ResiduePair inverse_shift_;      // 1 / E(shift_)
  mutable int64_t calls_ = 0;
  mutable int64_t zero_denominators_ = 0;
};

inline ResiduePair ResidueModel::Max(ResiduePair x, ResiduePair y) const {
  if (x == kNegInf || x == y) return y;
  if (y == kNegInf) return x;
  ++calls_;
  const ResiduePair of_x = Finish(Absorb(Begin(kOrderTag), x.a, x.b));
  const ResiduePair of_y = Finish(Absorb(Begin(kOrderTag), y.a, y.b));
  if (of_x.a != of_y.a) return of_x.a > of_y.a ? x : y;
  return of_x.b > of_y.b ? x : y;
}

inline ResiduePair ResidueModel::Fn(absl::string_view name,
                                    std::initializer_list<ResiduePair> args) const {
  ++calls_;
  Hash hash = Begin(Tag(name));
  uint64_t bits = 0;
  for (const ResiduePair& arg : args) {
    bits |= arg.a | arg.b;
    hash = Absorb(hash, arg.a, arg.b);
  }
  if (bits == 0 && IsZeroAtZero(name)) return {};
  return Finish(hash);
}

}  // namespace mgc

#endif  // MGC_GRAPH_EVAL_MODELS_RESIDUE_MODEL_H_
