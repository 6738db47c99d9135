#include "passes/plan/stage/fold_segments.h"

#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/ir/op.h"

namespace mgc {
namespace {

template <class T>
void AppendBytes(const T& value, std::string* key) {
  key->append(reinterpret_cast<const char*>(&value), sizeof(value));
}

void AppendAttr(const Attrs::Entry& entry, std::string* key) {
  absl::StrAppend(key, entry.first, "=");
  std::visit(
      [key](const auto& value) {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, std::vector<int64_t>>) {
          absl::StrAppend(key, absl::StrJoin(value, ","));
        } else if constexpr (std::is_same_v<T, double>) {
          AppendBytes(value, key);
        } else {
          absl::StrAppend(key, value);
        }
      },
      entry.second);
  key->push_back(';');
}

void AppendSharding(const Sharding& sharding, std::string* key) {
  for (const AxisList& axes : sharding.dims) {
    for (AxisId axis : axes) AppendBytes(axis, key);
    key->push_back('|');
  }
  AppendBytes(sharding.sum.bits(), key);
  AppendBytes(sharding.max.bits(), key);
  for (AxisId axis : sharding.storage) AppendBytes(axis, key);
}

// Everything that makes two segments differ, as one string.
std::string KeyOf(const Segment& segment) {
  std::string key = absl::StrCat(segment.name, "\n");
  for (const Formal& formal : segment.formals) absl::StrAppend(&key, ToString(formal), ",");
  key.push_back('\n');
  for (const Slot& slot : segment.slots) {
    absl::StrAppend(&key, slot.name, " ", slot.type.ToString(), " ");
    AppendSharding(slot.sharding, &key);
    AppendBytes(slot.formal, &key);
    AppendBytes(slot.offset, &key);
  }
  for (const Instr& instr : segment.instrs) {
    AppendBytes(instr.kind, &key);
    AppendBytes(reinterpret_cast<uintptr_t>(instr.op), &key);
    for (const Attrs::Entry& entry : instr.attrs) AppendAttr(entry, &key);
    for (int slot : instr.inputs) AppendBytes(slot, &key);
    key.push_back('>');
    for (int slot : instr.outputs) AppendBytes(slot, &key);
    AppendBytes(instr.collective, &key);
  }
  return key;
}

}  // namespace

int SegmentFolder::Add(Segment segment) {
  auto [it, fresh] = by_key_.try_emplace(KeyOf(segment), static_cast<int>(segments_.size()));
  if (!fresh) return it->second;
  const int same_name = ++name_count_[segment.name];
  if (same_name > 1) absl::StrAppend(&segment.name, ".", same_name);
  segments_.push_back(std::move(segment));
  return it->second;
}

}  // namespace mgc
