// Attributes of a node: a few named constants that belong to the op's meaning (a probability, an
// einsum spec, an epsilon). Sorted by name, so that equal attributes print, hash and compare equal.

#ifndef MGC_GRAPH_TYPES_ATTRS_H_
#define MGC_GRAPH_TYPES_ATTRS_H_

#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/string_view.h"

namespace mgc {

using AttrValue = std::variant<int64_t, double, std::string, std::vector<int64_t>>;

class Attrs {
 public:
  using Entry = std::pair<std::string, AttrValue>;

  Attrs() = default;
  Attrs(std::initializer_list<Entry> entries) {
    for (const Entry& entry : entries) Set(entry.first, entry.second);
  }

  // Adds or replaces.
  void Set(absl::string_view name, AttrValue value);
  // Null when absent.
  const AttrValue* Find(absl::string_view name) const;

  // The attribute, or `otherwise` when it is absent. An attribute of another type is a mistake of
  // ours: types are checked when a node is made (OpDef::attrs).
  int64_t Int(absl::string_view name, int64_t otherwise = 0) const;
  double Real(absl::string_view name, double otherwise = 0) const;
  std::string Text(absl::string_view name, absl::string_view otherwise = "") const;
  std::vector<int64_t> Ints(absl::string_view name) const;

  bool empty() const { return entries_.empty(); }
  std::vector<Entry>::const_iterator begin() const { return entries_.begin(); }
  std::vector<Entry>::const_iterator end() const { return entries_.end(); }

  friend bool operator==(const Attrs& a, const Attrs& b) { return a.entries_ == b.entries_; }
  friend bool operator!=(const Attrs& a, const Attrs& b) { return !(a == b); }

 private:
  std::vector<Entry> entries_;  // ascending by name
};

}  // namespace mgc

#endif  // MGC_GRAPH_TYPES_ATTRS_H_
