// What is known about the memory of a class, by address: ranges of bytes, each with a value.
//
// Each part of the proof walks through the writes of a step and asks of a read what was put there.
// They differ in what they keep (a type, a writer, a use, tiles) and in what is left of a value
// that another one cuts; how ranges replace each other is written here, once.
//
// Ranges are half-open, never empty and never overlap; neighbours with the same value stay two. An
// empty range overlaps nothing and holds nothing.

#ifndef MGC_GRAPH_VERIFY_COMMON_ADDRESS_MAP_H_
#define MGC_GRAPH_VERIFY_COMMON_ADDRESS_MAP_H_

#include <cstdint>
#include <iterator>
#include <set>
#include <utility>

#include "graph/plan/plan.h"

namespace mgc {

// T: copyable.
template <typename T>
class AddressMap {
 public:
  struct Entry {
    Range range;
    T value;
  };

 private:
  struct ByBegin {
    using is_transparent = void;
    bool operator()(const Entry& a, const Entry& b) const { return a.range.begin < b.range.begin; }
    bool operator()(const Entry& a, int64_t b) const { return a.range.begin < b; }
    bool operator()(int64_t a, const Entry& b) const { return a < b.range.begin; }
  };
  using Entries = std::set<Entry, ByBegin>;

 public:
  // Entries in the order of their addresses, until the map changes.
  class View {
   public:
    View(typename Entries::const_iterator begin, typename Entries::const_iterator end)
        : begin_(begin), end_(end) {}
    typename Entries::const_iterator begin() const { return begin_; }
    typename Entries::const_iterator end() const { return end_; }

   private:
    typename Entries::const_iterator begin_;
    typename Entries::const_iterator end_;
  };

  View Overlapping(const Range& range) const {
    if (range.begin >= range.end) return {entries_.end(), entries_.end()};
    return {First(range), entries_.lower_bound(range.end)};
  }
  // The first entry that overlaps, or null. What is at `range` exactly is alone there.
  const Entry* Find(const Range& range) const {
    const View found = Overlapping(range);
    return found.begin() == found.end() ? nullptr : &*found.begin();
  }
  // The value whose range begins there, or null.
  const T* At(int64_t begin) const {
    const auto at = entries_.find(begin);
    return at == entries_.end() ? nullptr : &at->value;
  }
  // Where the last range ends; 0 if there is none.
  int64_t End() const { return entries_.empty() ? 0 : entries_.rbegin()->range.end; }

  // Frees the range. `rest(T* value)` is called for each value that overlaps it, in order: whether
  // what lies outside stays, on either side, as what it has made of *value.
  template <typename Rest>
  void Erase(const Range& range, const Rest& rest) {
    if (range.begin >= range.end) return;
    auto at = First(range);
    while (at != entries_.end() && at->range.begin < range.end) {
      auto node = entries_.extract(at++);
      const Range whole = node.value().range;
      T& value = node.value().value;
      if (!rest(&value)) continue;
      if (whole.begin < range.begin) entries_.insert(at, {{whole.begin, range.begin}, value});
      if (range.end < whole.end) entries_.insert(at, {{range.end, whole.end}, std::move(value)});
    }
  }
  // Nothing is left of what overlaps.
  void Erase(const Range& range) {
    Erase(range, [](T* /*value*/) { return false; });
  }

  // Erases the range and gives it to `value`.
  template <typename Rest>
  void Put(const Range& range, T value, const Rest& rest) {
    Erase(range, rest);
    if (range.begin < range.end) entries_.insert({range, std::move(value)});
  }
  void Put(const Range& range, T value) {
    Put(range, std::move(value), [](T* /*value*/) { return false; });
  }

  void Clear() { entries_.clear(); }

 private:
  // Of a range that is not empty: the first entry that ends behind its begin.
  typename Entries::const_iterator First(const Range& range) const {
    auto at = entries_.upper_bound(range.begin);
    return at != entries_.begin() && std::prev(at)->range.end > range.begin ? std::prev(at) : at;
  }

  Entries entries_;
};

}  // namespace mgc

#endif  // MGC_GRAPH_VERIFY_COMMON_ADDRESS_MAP_H_
