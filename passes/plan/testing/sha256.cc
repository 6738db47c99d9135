#include "passes/plan/testing/sha256.h"

#include <array>
#include <cstdint>

#include "absl/strings/str_cat.h"

namespace mgc {
namespace {

using Words = std::array<uint32_t, 8>;

constexpr std::array<uint32_t, 64> kPrimes = {
    2,   3,   5,   7,   11,  13,  17,  19,  23,  29,  31,  37,  41,  43,  47,  53,
    59,  61,  67,  71,  73,  79,  83,  89,  97,  101, 103, 107, 109, 113, 127, 131,
    137, 139, 149, 151, 157, 163, 167, 173, 179, 181, 191, 193, 197, 199, 211, 223,
    227, 229, 233, 239, 241, 251, 257, 263, 269, 271, 277, 281, 283, 293, 307, 311};

uint32_t RotateRight(uint32_t x, int n) { return (x >> n) | (x << (32 - n)); }

// The first 32 bits of the fraction of n^(1/root): the largest r with r^root <= n * 2^(32 root),
// found bit by bit in 128 bits and taken modulo 2^32. n < 2^9, root 2 or 3.
uint32_t FractionOfRoot(uint32_t n, int root) {
  const unsigned __int128 target = static_cast<unsigned __int128>(n) << (32 * root);
  unsigned __int128 r = 0;
  for (int bit = 36; bit >= 0; --bit) {
    const unsigned __int128 next = r | (static_cast<unsigned __int128>(1) << bit);
    if ((root == 2 ? next * next : next * next * next) <= target) r = next;
  }
  return static_cast<uint32_t>(r);
}

void AddBlock(const uint8_t* block, Words* hash) {
  std::array<uint32_t, 64> w = {};
  for (size_t i = 0; i < 16; ++i) {
    w[i] = uint32_t{block[4 * i]} << 24 | uint32_t{block[4 * i + 1]} << 16 |
           uint32_t{block[4 * i + 2]} << 8 | uint32_t{block[4 * i + 3]};
  }
  for (size_t i = 16; i < 64; ++i) {
    const uint32_t a = w[i - 15];
    const uint32_t b = w[i - 2];
    w[i] = w[i - 16] + (RotateRight(a, 7) ^ RotateRight(a, 18) ^ (a >> 3)) + w[i - 7] +
           (RotateRight(b, 17) ^ RotateRight(b, 19) ^ (b >> 10));
  }
  Words h = *hash;
  for (size_t i = 0; i < 64; ++i) {
    const uint32_t sum1 = RotateRight(h[4], 6) ^ RotateRight(h[4], 11) ^ RotateRight(h[4], 25);
    const uint32_t choice = (h[4] & h[5]) ^ (~h[4] & h[6]);
    static const std::array<uint32_t, 64> kRound = [] {
      std::array<uint32_t, 64> constants = {};
      for (size_t k = 0; k < 64; ++k) constants[k] = FractionOfRoot(kPrimes[k], 3);
      return constants;
    }();
    const uint32_t t1 = h[7] + sum1 + choice + kRound[i] + w[i];
    const uint32_t sum0 = RotateRight(h[0], 2) ^ RotateRight(h[0], 13) ^ RotateRight(h[0], 22);
    const uint32_t majority = (h[0] & h[1]) ^ (h[0] & h[2]) ^ (h[1] & h[2]);
    h = {t1 + sum0 + majority, h[0], h[1], h[2], h[3] + t1, h[4], h[5], h[6]};
  }
  for (size_t i = 0; i < 8; ++i) (*hash)[i] += h[i];
}

}  // namespace

std::string Sha256Hex(absl::string_view text) {
  std::string message(text);
  message.push_back('\x80');
  while (message.size() % 64 != 56) message.push_back('\0');
  const uint64_t bits = uint64_t{text.size()} * 8;
  for (int shift = 56; shift >= 0; shift -= 8) message.push_back(static_cast<char>(bits >> shift));
  Words hash;
  for (size_t i = 0; i < 8; ++i) hash[i] = FractionOfRoot(kPrimes[i], 2);
  for (size_t i = 0; i < message.size(); i += 64) {
    AddBlock(reinterpret_cast<const uint8_t*>(message.data()) + i, &hash);
  }
  std::string hex;
  for (uint32_t word : hash) absl::StrAppend(&hex, absl::Hex(word, absl::kZeroPad8));
  return hex;
}

}  // namespace mgc
