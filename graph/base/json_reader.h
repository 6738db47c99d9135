// Reads a JSON object into a struct, by key, with every problem of the file collected and placed.
//
// The list of keys is closed: what was neither read nor named as ignored is a problem, because a
// key that is silently dropped can change what a file means. The labels in messages:
//   J1  a key is unknown
//   J2  a value is of the wrong kind
//   J3  a number is out of range
//   J4  a key is missing
//   J5  a value is not one of the legal ones
#ifndef MGC_GRAPH_BASE_JSON_READER_H_
#define MGC_GRAPH_BASE_JSON_READER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "graph/base/diagnostic.h"
#include "graph/base/json.h"

namespace mgc {

// A closed range of integers.
struct IntegerRange {
  int64_t low, high;
};

// A range of finite numbers, each end inside or not.
struct NumberRange {
  double low, high;
  bool low_inside = true, high_inside = true;
};

// Reads the members of one object. A key without a default is required; after a problem its least
// legal value is returned, so that the caller can go on. Object, problems and keys outlive the
// reader.
class JsonObjectReader {
 public:
  // `prefix` stands before keys in messages ("rope_scaling."). If `object` is none, that is a
  // problem, and it reads as an empty one without further problems.
  JsonObjectReader(const JsonValue& object, absl::string_view prefix, FileDiagnostics* problems);

  // The value of `key`, or null if the key is absent.
  const JsonValue* Take(absl::string_view key);
  // The same, and null also if the value is JSON's null.
  const JsonValue* TakeUnlessNull(absl::string_view key);

  int64_t Integer(absl::string_view key, IntegerRange range, std::optional<int64_t> absent = {});
  double Number(absl::string_view key, NumberRange range, std::optional<double> absent = {});
  bool Bool(absl::string_view key, bool absent);
  // The index in `legal` of a string.
  size_t Choice(absl::string_view key, absl::Span<const absl::string_view> legal,
                std::optional<size_t> absent = {});
  // If given, the value must be this bool, or null.
  void RequireBool(absl::string_view key, bool legal);
  // If given, the value must be null; `why` follows "must be null: ".
  void RequireNull(absl::string_view key, absl::string_view why);

  // Keys that may be there and mean nothing to the caller; `found`, unless null, receives those
  // that are.
  void Ignore(absl::Span<const absl::string_view> keys, std::vector<const JsonMember*>* found);

  // Reports the members that nobody asked for. Call it last.
  void Finish();

  // Whether reading `key` found a problem, so that its value is a stand-in and no further check
  // makes sense.
  bool Failed(absl::string_view key) const;

  // Adds a problem with the value of `key`, or with the object if the key is absent.
  void Problem(absl::string_view key, absl::string_view what, absl::string_view label);

 private:
  std::string Name(absl::string_view key) const;
  void Missing(absl::string_view key);
  void Refuse(absl::string_view key, const JsonValue& value, absl::string_view what,
              absl::string_view label);
  void WrongKind(absl::string_view key, const JsonValue& value, absl::string_view expected);

  const JsonValue& object_;
  std::string prefix_;
  FileDiagnostics* problems_;
  std::vector<absl::string_view> known_;
  std::vector<absl::string_view> failed_;
};

}  // namespace mgc

#endif  // MGC_GRAPH_BASE_JSON_READER_H_
