#include "graph/base/json_reader.h"

#include <algorithm>
#include <cmath>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/file.h"
#include "graph/base/suggest.h"

namespace mgc {
namespace {

// "a", "a or b", "a, b or c".
std::string Alternatives(absl::Span<const absl::string_view> names) {
  if (names.size() < 2) return std::string(names.empty() ? "" : names[0]);
  return absl::StrCat(absl::StrJoin(names.subspan(0, names.size() - 1), ", "), " or ",
                      names.back());
}

// "at least 0 and below 1".
std::string Describe(const NumberRange& range) {
  return absl::StrCat(range.low_inside ? "at least " : "above ", JsonNumber(range.low), " and ",
                      range.high_inside ? "at most " : "below ", JsonNumber(range.high));
}

bool Contains(const NumberRange& range, double value) {
  bool above = range.low_inside ? value >= range.low : value > range.low;
  bool below = range.high_inside ? value <= range.high : value < range.high;
  return above && below;
}

// Whether a number is whole and beyond what kInteger holds.
bool IsHugeInteger(const JsonValue& value) {
  return value.kind == JsonValue::Kind::kNumber && std::abs(value.number) >= 0x1p63;
}

}  // namespace

JsonObjectReader::JsonObjectReader(const JsonValue& object, absl::string_view prefix,
                                   FileDiagnostics* problems)
    : object_(object), prefix_(prefix), problems_(problems) {
  if (object.kind == JsonValue::Kind::kObject) return;
  absl::string_view name = prefix.empty() ? "the file" : prefix.substr(0, prefix.size() - 1);
  problems->Add(object.place(), "J2",
                absl::StrCat(name, " must be an object, not ", KindName(object.kind)));
}

std::string JsonObjectReader::Name(absl::string_view key) const {
  return absl::StrCat(prefix_, key);
}

const JsonValue* JsonObjectReader::Take(absl::string_view key) {
  known_.push_back(key);
  return object_.Find(key);
}

const JsonValue* JsonObjectReader::TakeUnlessNull(absl::string_view key) {
  const JsonValue* value = Take(key);
  return value != nullptr && value->kind == JsonValue::Kind::kNull ? nullptr : value;
}

void JsonObjectReader::Missing(absl::string_view key) {
  failed_.push_back(key);
  if (object_.kind != JsonValue::Kind::kObject) return;
  problems_->Add(object_.place(), "J4", absl::StrCat(Name(key), " is missing"));
}

void JsonObjectReader::Refuse(absl::string_view key, const JsonValue& value, absl::string_view what,
                              absl::string_view label) {
  failed_.push_back(key);
  problems_->Add(value.place(), label, what);
}

bool JsonObjectReader::Failed(absl::string_view key) const {
  return absl::c_linear_search(failed_, key);
}

void JsonObjectReader::WrongKind(absl::string_view key, const JsonValue& value,
                                 absl::string_view expected) {
  Refuse(key, value, absl::StrCat(Name(key), " must be ", expected, ", not ", KindName(value.kind)),
         "J2");
}

int64_t JsonObjectReader::Integer(absl::string_view key, IntegerRange range,
                                  std::optional<int64_t> absent) {
  const JsonValue* value = Take(key);
  if (value == nullptr) {
    if (!absent.has_value()) Missing(key);
    return absent.value_or(range.low);
  }
  const bool integer = value->kind == JsonValue::Kind::kInteger;
  if (!integer && !IsHugeInteger(*value)) {
    WrongKind(key, *value, "an integer");
    return range.low;
  }
  if (integer && value->integer >= range.low && value->integer <= range.high) {
    return value->integer;
  }
  Refuse(key, *value,
         absl::StrCat(Name(key), " must be from ", range.low, " to ", range.high, ", not ",
                      integer ? absl::StrCat(value->integer) : JsonNumber(value->number)),
         "J3");
  return range.low;
}

double JsonObjectReader::Number(absl::string_view key, NumberRange range,
                                std::optional<double> absent) {
  const JsonValue* value = Take(key);
  if (value == nullptr) {
    if (!absent.has_value()) Missing(key);
    return absent.value_or(range.low);
  }
  if (!value->is_number()) {
    WrongKind(key, *value, "a number");
    return range.low;
  }
  if (!Contains(range, value->number)) {
    Refuse(
        key, *value,
        absl::StrCat(Name(key), " must be ", Describe(range), ", not ", JsonNumber(value->number)),
        "J3");
    return range.low;
  }
  return value->number;
}

bool JsonObjectReader::Bool(absl::string_view key, bool absent) {
  const JsonValue* value = Take(key);
  if (value == nullptr) return absent;
  if (value->kind != JsonValue::Kind::kBool) {
    WrongKind(key, *value, "true or false");
    return absent;
  }
  return value->boolean;
}

size_t JsonObjectReader::Choice(absl::string_view key, absl::Span<const absl::string_view> legal,
                                std::optional<size_t> absent) {
  const JsonValue* value = Take(key);
  if (value == nullptr) {
    if (!absent.has_value()) Missing(key);
    return absent.value_or(0);
  }
  if (value->kind != JsonValue::Kind::kString) {
    WrongKind(key, *value, "a string");
    return 0;
  }
  auto found = absl::c_find(legal, value->text);
  if (found != legal.end()) return found - legal.begin();
  Refuse(key, *value,
         absl::StrCat(Name(key), " must be ", Alternatives(legal), ", not \"",
                      EscapeBytes(value->text), "\"", DidYouMean(value->text, legal)),
         "J5");
  return 0;
}

void JsonObjectReader::RequireBool(absl::string_view key, bool legal) {
  const JsonValue* value = TakeUnlessNull(key);
  if (value == nullptr) return;
  if (value->kind == JsonValue::Kind::kBool && value->boolean == legal) return;
  problems_->Add(value->place(), "J5",
                 absl::StrCat(Name(key), " must be ", legal ? "true" : "false",
                              ": nothing else is supported"));
}

void JsonObjectReader::RequireNull(absl::string_view key, absl::string_view why) {
  const JsonValue* value = TakeUnlessNull(key);
  if (value == nullptr) return;
  Refuse(key, *value, absl::StrCat(Name(key), " must be null: ", why), "J5");
}

void JsonObjectReader::Ignore(absl::Span<const absl::string_view> keys,
                              std::vector<const JsonMember*>* found) {
  for (const JsonMember& member : object_.members) {
    auto key = absl::c_find(keys, member.key);
    if (key == keys.end()) continue;
    known_.push_back(*key);
    if (found != nullptr) found->push_back(&member);
  }
}

void JsonObjectReader::Finish() {
  for (const JsonMember& member : object_.members) {
    if (absl::c_linear_search(known_, member.key)) continue;
    problems_->Add({member.line, member.column}, "J1",
                   absl::StrCat("unknown key ", prefix_, EscapeBytes(member.key),
                                DidYouMean(member.key, known_)));
  }
}

void JsonObjectReader::Problem(absl::string_view key, absl::string_view what,
                               absl::string_view label) {
  const JsonValue* value = object_.Find(key);
  problems_->Add((value == nullptr ? object_ : *value).place(), label, what);
}

}  // namespace mgc
