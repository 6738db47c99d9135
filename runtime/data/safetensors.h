// Tensors in the safetensors format (https://github.com/huggingface/safetensors).
//
// A file is the header's length (u64, little endian), a JSON header that gives every tensor's type,
// shape and place, and the tensors' bytes in row-major order without holes. What is written here
// holds logical tensors: nothing in it depends on the plan that made them.
#ifndef MGC_RUNTIME_DATA_SAFETENSORS_H_
#define MGC_RUNTIME_DATA_SAFETENSORS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "graph/base/positional_file.h"

namespace mgc {

// The types we use; files with others are refused.
enum class SafetensorsType { kF32, kF64, kI32, kI64, kBF16, kF16 };
absl::string_view NameOf(SafetensorsType type);  // `BF16`

struct SafetensorsSpec {
  std::string name;
  SafetensorsType type = SafetensorsType::kF32;
  std::vector<int64_t> shape;
};

// Where everything lies in the file of some tensors; their bytes need not be there to know it.
class SafetensorsLayout {
 public:
  // Tensors are ordered by falling alignment of their type (I64, F64, I32, F32, BF16, F16), then by
  // name, the data aligned to 8 bytes. InvalidArgument if two names are equal, a name is
  // "__metadata__" or not UTF-8, or sizes are negative or too large to be counted.
  static absl::StatusOr<SafetensorsLayout> Create(absl::Span<const SafetensorsSpec> tensors);

  // What the file begins with; the data follows.
  const std::string& header() const { return header_; }
  // Of a tensor, by its place in Create's list: where it begins, from the begin of the file.
  int64_t OffsetOf(size_t tensor) const { return offsets_[tensor]; }
  // Create's places in the order of the file.
  const std::vector<size_t>& order() const { return order_; }
  int64_t file_bytes() const { return file_bytes_; }

 private:
  std::string header_;
  std::vector<size_t> order_;
  std::vector<int64_t> offsets_;
  int64_t file_bytes_ = 0;
};

// A tensor to be written. The caller keeps the bytes alive.
struct SafetensorsView {
  std::string name;
  SafetensorsType type = SafetensorsType::kF32;
  std::vector<int64_t> shape;
  absl::string_view bytes;  // as many as type and shape say
};

// Views of vectors or spans, with the type that fits.
SafetensorsView ViewOf(std::string name, std::vector<int64_t> shape,
                       absl::Span<const float> values);
SafetensorsView ViewOf(std::string name, std::vector<int64_t> shape,
                       absl::Span<const double> values);
SafetensorsView ViewOf(std::string name, std::vector<int64_t> shape,
                       absl::Span<const int64_t> values);

// Writes `tensors` to `path` (see WriteFileAtomically), laid out as above. InvalidArgument where no
// layout is possible, or bytes and shape disagree.
absl::Status WriteSafetensors(const std::string& path, std::vector<SafetensorsView> tensors);

// What a file says of itself.
struct SafetensorsHeader {
  struct Entry {
    SafetensorsType type;
    std::vector<int64_t> shape;
    int64_t begin, end;  // bytes, from the start of the data
  };
  std::map<std::string, Entry> entries;
  int64_t data_begin = 0;  // from the begin of the file

  // Reads and checks it; of the tensors nothing is read. Refused with InvalidArgument: a header
  // above 25 MB, unknown keys or types, repeated names, negative or overflowing shapes, sizes that
  // disagree with shapes, holes, overlaps, bytes left over.
  static absl::StatusOr<SafetensorsHeader> Read(const PositionalFile& file);
};

// The content of a file. Immutable; the accessors copy, because the format promises no alignment.
class SafetensorsFile {
 public:
  using Entry = SafetensorsHeader::Entry;

  // Reads all of `path`. Errors as of SafetensorsHeader::Read.
  static absl::StatusOr<SafetensorsFile> Read(const std::string& path);

  // The same of a file's `bytes`; `name` stands for the file in messages.
  static absl::StatusOr<SafetensorsFile> Parse(std::string bytes, absl::string_view name);

  const std::map<std::string, Entry>& entries() const { return header_.entries; }

  // The values of a tensor; NotFound without such a name, InvalidArgument if it has another type.
  // Integers widens I32.
  absl::StatusOr<std::vector<float>> Floats(const std::string& name) const;
  absl::StatusOr<std::vector<double>> Doubles(const std::string& name) const;
  absl::StatusOr<std::vector<int64_t>> Integers(const std::string& name) const;

 private:
  SafetensorsFile(std::string bytes, std::string name, SafetensorsHeader header);

  template <typename T>
  absl::StatusOr<std::vector<T>> Values(const std::string& name, SafetensorsType type) const;

  std::string bytes_;
  std::string name_;  // escaped
  SafetensorsHeader header_;
};

}  // namespace mgc

#endif  // MGC_RUNTIME_DATA_SAFETENSORS_H_
