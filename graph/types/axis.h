// Mesh axes as values: an axis is a small number (its place in the mesh, fastest first), a set of
// axes says over which ranks something is summed or grouped, an ordered list of axes says how a
// tensor dim is cut.
//
// Both types are inline, trivially copyable and cheap to compare and hash: shardings hold several
// of them for every value of a graph. Neither knows a mesh; names and sizes of axes are the mesh's
// (graph/types/mesh.h).

#ifndef MGC_GRAPH_TYPES_AXIS_H_
#define MGC_GRAPH_TYPES_AXIS_H_

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <utility>

namespace mgc {

// Number of an atomic axis in its mesh, 0 = fastest varying with the rank. In [0, kMaxAxes).
using AxisId = int;

inline constexpr int kMaxAxes = 16;

// An unordered set of axes. Iterates in ascending axis number.
class AxisSet {
 public:
  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = AxisId;
    using difference_type = std::ptrdiff_t;
    using pointer = const AxisId*;
    using reference = AxisId;

    explicit Iterator(uint32_t bits) : bits_(bits) {}
    AxisId operator*() const { return __builtin_ctz(bits_); }
    Iterator& operator++() {
      bits_ &= bits_ - 1;
      return *this;
    }
    Iterator operator++(int) {
      const Iterator old = *this;
      ++*this;
      return old;
    }
    bool operator!=(const Iterator& other) const { return bits_ != other.bits_; }
    bool operator==(const Iterator& other) const { return bits_ == other.bits_; }

   private:
    uint32_t bits_;
  };

  constexpr AxisSet() = default;
  AxisSet(std::initializer_list<AxisId> axes) {
    for (AxisId axis : axes) Add(axis);
  }
  static constexpr AxisSet FromBits(uint32_t bits) {
    AxisSet set;
    set.bits_ = static_cast<uint16_t>(bits);
    return set;
  }
  // The axes 0 .. count-1.
  static constexpr AxisSet FirstN(int count) { return FromBits((uint32_t{1} << count) - 1); }

  void Add(AxisId axis) {
    assert(axis >= 0 && axis < kMaxAxes);
    bits_ = static_cast<uint16_t>(bits_ | (1u << axis));
  }
  void Remove(AxisId axis) { bits_ = static_cast<uint16_t>(bits_ & ~(1u << axis)); }

  bool Contains(AxisId axis) const {
    return axis >= 0 && axis < kMaxAxes && ((bits_ >> axis) & 1u) != 0;
  }
  bool ContainsAll(AxisSet other) const { return (other.bits_ & ~bits_) == 0; }
  bool Intersects(AxisSet other) const { return (bits_ & other.bits_) != 0; }
  bool empty() const { return bits_ == 0; }
  int size() const { return __builtin_popcount(bits_); }
  uint32_t bits() const { return bits_; }

  Iterator begin() const { return Iterator(bits_); }
  Iterator end() const { return Iterator(0); }

  friend AxisSet operator|(AxisSet a, AxisSet b) { return FromBits(a.bits_ | b.bits_); }
  friend AxisSet operator&(AxisSet a, AxisSet b) { return FromBits(a.bits_ & b.bits_); }
  // The axes of `a` that are not in `b`.
  friend AxisSet operator-(AxisSet a, AxisSet b) { return FromBits(a.bits_ & ~b.bits_); }
  AxisSet& operator|=(AxisSet other) { return *this = *this | other; }
  AxisSet& operator&=(AxisSet other) { return *this = *this & other; }
  AxisSet& operator-=(AxisSet other) { return *this = *this - other; }

  friend bool operator==(AxisSet a, AxisSet b) { return a.bits_ == b.bits_; }
  friend bool operator!=(AxisSet a, AxisSet b) { return a.bits_ != b.bits_; }
  // An arbitrary total order, for sorted containers.
  friend bool operator<(AxisSet a, AxisSet b) { return a.bits_ < b.bits_; }
  template <typename H>
  friend H AbslHashValue(H hash, AxisSet set) {
    return H::combine(std::move(hash), set.bits_);
  }

 private:
  uint16_t bits_ = 0;
};

// An ordered list of axes, major first: a dim cut over (a, b) is cut into |a| pieces, each of them
// into |b|. Holds at most kMaxAxes axes; every user keeps them distinct.
class AxisList {
 public:
  AxisList() = default;
  AxisList(std::initializer_list<AxisId> axes) {
    for (AxisId axis : axes) push_back(axis);
  }

  void push_back(AxisId axis) {
    assert(axis >= 0 && axis < kMaxAxes && size_ < kMaxAxes);
    axes_[size_++] = static_cast<int8_t>(axis);
  }
  void pop_back() {
    assert(size_ > 0);
    axes_[--size_] = 0;
  }
  void clear() { *this = AxisList(); }
  // Appends the axes of `other` as the more minor ones.
  void Append(const AxisList& other) {
    for (AxisId axis : other) push_back(axis);
  }
  // Takes `axis` out and keeps the order of the others; does nothing when it is absent.
  void Remove(AxisId axis) {
    AxisList kept;
    for (AxisId other : *this) {
      if (other != axis) kept.push_back(other);
    }
    *this = kept;
  }

  AxisId operator[](int i) const {
    assert(i >= 0 && i < size_);
    return axes_[static_cast<size_t>(i)];
  }
  AxisId front() const { return (*this)[0]; }
  AxisId back() const { return (*this)[size_ - 1]; }
  bool empty() const { return size_ == 0; }
  int size() const { return size_; }
  const int8_t* begin() const { return axes_.data(); }
  const int8_t* end() const { return axes_.data() + size_; }

  // Position of `axis`, 0 = most major, or -1.
  int IndexOf(AxisId axis) const {
    for (int i = 0; i < size_; ++i) {
      if (axes_[static_cast<size_t>(i)] == axis) return i;
    }
    return -1;
  }
  bool Contains(AxisId axis) const { return IndexOf(axis) >= 0; }
  AxisSet AsSet() const {
    AxisSet set;
    for (AxisId axis : *this) set.Add(axis);
    return set;
  }

  // Unused places are kept at zero, so whole arrays compare.
  friend bool operator==(const AxisList& a, const AxisList& b) {
    return a.size_ == b.size_ && a.axes_ == b.axes_;
  }
  friend bool operator!=(const AxisList& a, const AxisList& b) { return !(a == b); }
  friend bool operator<(const AxisList& a, const AxisList& b) {
    return a.size_ != b.size_ ? a.size_ < b.size_ : a.axes_ < b.axes_;
  }
  template <typename H>
  friend H AbslHashValue(H hash, const AxisList& list) {
    return H::combine(std::move(hash), list.size_, list.axes_);
  }

 private:
  std::array<int8_t, kMaxAxes> axes_ = {};
  int8_t size_ = 0;
};

}  // namespace mgc

#endif  // MGC_GRAPH_TYPES_AXIS_H_
