// JSON in, with the place of every value; JSON out, for numbers and strings.
//
// A configuration error must name file, line and column, a key given twice must be refused (the
// usual parsers keep the last one silently), and a number that is not finite must survive. This is
// the only file that includes a JSON library.
#ifndef MGC_GRAPH_BASE_JSON_H_
#define MGC_GRAPH_BASE_JSON_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/base/diagnostic.h"

namespace mgc {

struct JsonMember;

// A parsed value. Lines and columns start at 1 and columns count bytes.
struct JsonValue {
  enum class Kind { kNull, kBool, kInteger, kNumber, kString, kArray, kObject };

  Kind kind = Kind::kNull;
  bool boolean = false;
  int64_t integer = 0;           // of kInteger: written without fraction and exponent, and in range
  double number = 0;             // of kInteger and kNumber
  std::string text;              // of kString
  std::vector<JsonValue> items;  // of kArray
  std::vector<JsonMember> members;  // of kObject, in the file's order, keys unique
  int line = 0;
  int column = 0;

  TextPlace place() const { return {line, column}; }
  bool is_number() const { return kind == Kind::kInteger || kind == Kind::kNumber; }
  // The member of an object with this key, or null.
  const JsonValue* Find(absl::string_view key) const;
};

struct JsonMember {
  std::string key;
  int line = 0;
  int column = 0;
  JsonValue value;
};

// Parses one JSON text (RFC 8259, UTF-8). Errors are InvalidArgument, one line each,
// "file:line:col: what"; `file` is escaped here. The first syntax error ends the list; keys that
// repeat are all reported. Values nested deeper than 64 are refused.
absl::StatusOr<JsonValue> ParseJson(absl::string_view text, absl::string_view file);

// "an integer", "a string", ... for messages.
absl::string_view KindName(JsonValue::Kind kind);

// `text` as a JSON string with its quotes; bytes that are not UTF-8 become U+FFFD.
std::string JsonQuote(absl::string_view text);

// The shortest decimal number that reads back as `value`; "NaN", "Infinity" and "-Infinity" become
// JSON strings.
std::string JsonNumber(double value);

}  // namespace mgc

#endif  // MGC_GRAPH_BASE_JSON_H_
