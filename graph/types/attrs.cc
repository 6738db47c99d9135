#include "graph/types/attrs.h"

#include <algorithm>

namespace mgc {
namespace {

bool NameLess(const Attrs::Entry& entry, absl::string_view name) { return entry.first < name; }

}  // namespace

void Attrs::Set(absl::string_view name, AttrValue value) {
  auto it = std::lower_bound(entries_.begin(), entries_.end(), name, NameLess);
  if (it != entries_.end() && it->first == name) {
    it->second = std::move(value);
  } else {
    entries_.emplace(it, std::string(name), std::move(value));
  }
}

const AttrValue* Attrs::Find(absl::string_view name) const {
  auto it = std::lower_bound(entries_.begin(), entries_.end(), name, NameLess);
  return it != entries_.end() && it->first == name ? &it->second : nullptr;
}

int64_t Attrs::Int(absl::string_view name, int64_t otherwise) const {
  const AttrValue* value = Find(name);
  return value == nullptr ? otherwise : std::get<int64_t>(*value);
}

double Attrs::Real(absl::string_view name, double otherwise) const {
  const AttrValue* value = Find(name);
  return value == nullptr ? otherwise : std::get<double>(*value);
}

std::string Attrs::Text(absl::string_view name, absl::string_view otherwise) const {
  const AttrValue* value = Find(name);
  return value == nullptr ? std::string(otherwise) : std::get<std::string>(*value);
}

std::vector<int64_t> Attrs::Ints(absl::string_view name) const {
  const AttrValue* value = Find(name);
  return value == nullptr ? std::vector<int64_t>() : std::get<std::vector<int64_t>>(*value);
}

}  // namespace mgc
