#include "runtime/state/tensor_file.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <map>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "graph/base/file.h"
#include "graph/base/positional_file.h"
#include "graph/base/shared_file.h"
#include "graph/base/status.h"
#include "graph/ir/step_names.h"
#include "runtime/comm/team_file.h"
#include "runtime/data/safetensors.h"
#include "runtime/state/tensor_shapes.h"

namespace mgc {
namespace {

// What makes means of the sums of gradients, from the first process that has a rank that reports
// it.
absl::StatusOr<float> GradientFactor(const Executor& executor) {
  const absl::StatusOr<double> own = executor.Report(kGradFactorReport, false);
  absl::string_view mine;
  if (own.ok()) mine = {reinterpret_cast<const char*>(&*own), sizeof(*own)};
  MGC_ASSIGN_OR_RETURN(const std::vector<std::string> all, executor.team().Gather(mine));
  for (const std::string& given : all) {
    double factor = 0;
    if (given.size() != sizeof(factor)) continue;
    std::copy(given.begin(), given.end(), reinterpret_cast<char*>(&factor));
    return static_cast<float>(factor);
  }
  return own.status();
}

// What becomes of values before they are written: they may be changed or refused.
using Pass = absl::FunctionRef<absl::Status(size_t tensor, int64_t whole, absl::Span<float>)>;

// Behind so many bytes the disk gets to work: it is not left until all are there, and other writers
// are not held up by a whole checkpoint.
constexpr int64_t kSyncedAtOnce = int64_t{1} << 26;

// What is written: tiles of the ranks here, or a copy of them.
struct Tiles {
  const Executor& executor;
  absl::Span<const HeldTensor> tensors;
  absl::Span<float> copy;  // of all tensors, one behind the other; empty: none
};

// Writes tiles to their places and to the disk.
absl::Status WriteTiles(const Tiles& tiles, const SafetensorsLayout& layout, Pass pass,
                        SharedFile& file, absl::FunctionRef<void()> comes_on) {
  // All processes have the same header.
  if (tiles.executor.team().is_lead()) MGC_RETURN_IF_ERROR(file.Write(0, layout.header()));
  absl::Status status;
  int64_t waiting = 0;  // bytes that are not on their way to the disk
  const auto write = [&](size_t t, int64_t whole, absl::Span<float> values) -> absl::Status {
    MGC_RETURN_IF_ERROR(pass(t, whole, values));
    const absl::string_view bytes(reinterpret_cast<const char*>(values.data()),
                                  values.size() * sizeof(float));
    const int64_t offset = whole * static_cast<int64_t>(sizeof(float));
    MGC_RETURN_IF_ERROR(file.Write(layout.OffsetOf(t) + offset, bytes));
    waiting += static_cast<int64_t>(bytes.size());
    if (waiting < kSyncedAtOnce) return absl::OkStatus();
    waiting = 0;
    comes_on();
    file.BeginSync();
    return absl::OkStatus();
  };
  absl::Span<float> copy = tiles.copy;  // of what is left
  for (size_t t = 0; t < tiles.tensors.size(); ++t) {
    const HeldTensor& tensor = tiles.tensors[t];
    const auto take = [&](int64_t whole, absl::Span<float> values) {
      if (status.ok()) status = write(t, whole, values);
    };
    if (copy.empty()) {
      ForEachRunHere(tiles.executor, tensor, take);
    } else {
      copy.remove_prefix(static_cast<size_t>(ForEachRunOfCopy(tiles.executor, tensor, copy, take)));
    }
    MGC_RETURN_IF_ERROR(Annotate(status, tensor.name));
    comes_on();
  }
  return file.Sync();
}

absl::StatusOr<SafetensorsLayout> LayoutOf(absl::Span<const HeldTensor> tensors) {
  std::vector<SafetensorsSpec> specs;
  specs.reserve(tensors.size());
  for (const HeldTensor& tensor : tensors) {
    specs.push_back({tensor.name, SafetensorsType::kF32, SizesOf(*tensor.type)});
  }
  return SafetensorsLayout::Create(specs);
}

// The sums over all processes, modulo 2^64.
absl::Status SumHashes(Team& team, std::vector<uint64_t>* hashes) {
  const size_t bytes = hashes->size() * sizeof(uint64_t);
  MGC_ASSIGN_OR_RETURN(const std::vector<std::string> all,
                       team.Gather({reinterpret_cast<const char*>(hashes->data()), bytes}));
  std::fill(hashes->begin(), hashes->end(), 0);
  for (const std::string& given : all) {
    if (given.size() != bytes) return absl::InternalError("processes have other tensors");
    for (size_t t = 0; t < hashes->size(); ++t) {
      uint64_t hash = 0;
      std::memcpy(&hash, given.data() + t * sizeof(hash), sizeof(hash));
      (*hashes)[t] += hash;
    }
  }
  return absl::OkStatus();
}

TensorShapes ShapesOf(absl::Span<const HeldTensor> tensors) {
  TensorShapes shapes;
  for (const HeldTensor& tensor : tensors) shapes[tensor.name] = SizesOf(*tensor.type);
  return shapes;
}

// The file begins and ends as the tensors say.
absl::Status CheckFrame(const PositionalFile& file, absl::Span<const StoredTensor> tensors) {
  std::vector<SafetensorsSpec> specs;
  specs.reserve(tensors.size());
  for (const StoredTensor& tensor : tensors) {
    specs.push_back({tensor.name, SafetensorsType::kF32, tensor.shape});
  }
  MGC_ASSIGN_OR_RETURN(const SafetensorsLayout layout, SafetensorsLayout::Create(specs));
  const auto loss = [&](const auto&... text) {
    return absl::DataLossError(absl::StrCat(EscapeBytes(file.path()), ": ", text...));
  };
  for (size_t t = 0; t < tensors.size(); ++t) {
    if (tensors[t].offset == layout.OffsetOf(t)) continue;
    return loss("tensor ", EscapeBytes(tensors[t].name), " is said to begin at byte ",
                tensors[t].offset, ", not at ", layout.OffsetOf(t));
  }
  if (file.bytes() != layout.file_bytes()) {
    return loss("has ", file.bytes(), " bytes, and ", layout.file_bytes(), " were written");
  }
  std::string header(layout.header().size(), '\0');
  MGC_RETURN_IF_ERROR(file.Read(0, absl::MakeSpan(header)));
  return header == layout.header() ? absl::OkStatus() : loss("its header is damaged");
}

using StoredByName = std::map<std::string, const StoredTensor*>;

// What the ranks here hold; adds the hash of what counts to that of its tensor, and the bytes.
absl::Status FillFrom(const PositionalFile& file, absl::Span<const HeldTensor> held,
                      const StoredByName& stored, Executor& executor,
                      std::map<std::string, uint64_t>* hashes, int64_t* bytes_read) {
  for (const HeldTensor& tensor : held) {
    const int64_t begin = stored.at(tensor.name)->offset;
    uint64_t& hash = (*hashes)[tensor.name];
    const auto fill = [&](int64_t whole, absl::Span<float> values, bool counts) -> absl::Status {
      const size_t bytes = values.size() * sizeof(float);
      *bytes_read += static_cast<int64_t>(bytes);
      const absl::Span<char> room(reinterpret_cast<char*>(values.data()), bytes);
      MGC_RETURN_IF_ERROR(file.Read(begin + whole * static_cast<int64_t>(sizeof(float)), room));
      if (counts) hash += HashOfRun(whole, values);
      return absl::OkStatus();
    };
    MGC_RETURN_IF_ERROR(
        Annotate(FillRunsHere(tensor, executor, fill), absl::StrCat("tensor ", tensor.name)));
    executor.team().ComesOn();
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> FillHere(TensorRole role, const std::string& path,
                                 absl::Span<const StoredTensor> tensors, Executor& executor,
                                 std::map<std::string, uint64_t>* hashes) {
  MGC_ASSIGN_OR_RETURN(const std::vector<HeldTensor> held,
                       HeldTensors(executor.plan(), role, Holders::kAll));
  StoredByName stored;
  for (const StoredTensor& tensor : tensors) stored[tensor.name] = &tensor;
  MGC_RETURN_IF_ERROR(CheckSameTensors(ShapesOf(tensors), path, ShapesOf(held), "the plan"));
  MGC_ASSIGN_OR_RETURN(const PositionalFile file, PositionalFile::Open(path));
  MGC_RETURN_IF_ERROR(CheckFrame(file, tensors));
  int64_t bytes = 0;
  MGC_RETURN_IF_ERROR(FillFrom(file, held, stored, executor, hashes, &bytes));
  return bytes;
}

}  // namespace

absl::Status WriteTensors(const Executor& executor, TensorRole role, const std::string& path) {
  // The plan alone decides about these, and so all processes alike.
  MGC_ASSIGN_OR_RETURN(const std::vector<HeldTensor> tensors, HeldTensors(executor.plan(), role));
  MGC_RETURN_IF_ERROR(CheckHeldAsCalled(tensors));
  MGC_ASSIGN_OR_RETURN(const SafetensorsLayout layout, LayoutOf(tensors));
  float factor = 1;
  if (role == TensorRole::kMeanGradient) {
    MGC_ASSIGN_OR_RETURN(factor, GradientFactor(executor));
  }
  // What is not to be changed goes into the file as it is, whatever its bits.
  const auto multiply = [factor](size_t, int64_t, absl::Span<float> values) {
    if (factor != 1) {
      for (float& value : values) value *= factor;
    }
    return absl::OkStatus();
  };
  MGC_ASSIGN_OR_RETURN(TeamFile file, TeamFile::Begin(executor.team(), path, layout.file_bytes()));
  const auto comes_on = [&executor] { executor.team().ComesOn(); };
  return file.End(executor.team(),
                  WriteTiles({executor, tensors, {}}, layout, multiply, file.file(), comes_on));
}

TensorShapes ShapesOf(absl::Span<const StoredTensor> tensors) {
  TensorShapes shapes;
  for (const StoredTensor& tensor : tensors) shapes[tensor.name] = tensor.shape;
  return shapes;
}

uint64_t HashOfRun(int64_t whole, absl::Span<const float> values) {
  // Keys are a Weyl sequence in steps of 2^64 over the golden ratio. Of a value's 32 bits plus one
  // half of its key the product with the other half, odd, is another one for all bits, and stays so
  // when its upper half is mixed into the lower one; it is one multiplication of 32 bits.
  constexpr uint64_t kStep = 0x9E3779B97F4A7C15;
  constexpr uint64_t kLow = 0xFFFFFFFF;
  constexpr size_t kLanes = 4;  // that compilers bring side by side
  uint64_t keys[kLanes];
  uint64_t sums[kLanes] = {};
  for (size_t l = 0; l < kLanes; ++l) keys[l] = (static_cast<uint64_t>(whole) + l + 1) * kStep;
  const auto mixed = [](uint32_t bits, uint64_t key) {
    const uint64_t z = ((bits + key) & kLow) * (key >> 32 | 1);
    return z ^ z >> 32;
  };
  size_t i = 0;
  for (; i + kLanes <= values.size(); i += kLanes) {
    uint32_t bits[kLanes];
    std::memcpy(bits, &values[i], sizeof(bits));
    for (size_t l = 0; l < kLanes; ++l) {
      sums[l] += mixed(bits[l], keys[l]);
      keys[l] += kLanes * kStep;
    }
  }
  for (size_t l = 0; i + l < values.size(); ++l) {
    uint32_t bits = 0;
    std::memcpy(&bits, &values[i + l], sizeof(bits));
    sums[l] += mixed(bits, keys[l]);
  }
  return std::accumulate(std::begin(sums), std::end(sums), uint64_t{0});
}

bool AllFinite(absl::Span<const float> values) {
  constexpr size_t kLanes = 16;
  float sums[kLanes] = {};  // NaN where a value is not finite, else zero
  size_t i = 0;
  for (; i + kLanes <= values.size(); i += kLanes) {
    for (size_t l = 0; l < kLanes; ++l) sums[l] += values[i + l] * 0.0f;
  }
  for (size_t l = 0; i + l < values.size(); ++l) sums[l] += values[i + l] * 0.0f;
  return std::accumulate(std::begin(sums), std::end(sums), 0.0f) == 0;
}

absl::Status CheckHash(const std::string& path, const StoredTensor& tensor, uint64_t hash) {
  if (hash == tensor.hash) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(
      EscapeBytes(path), ": tensor ", EscapeBytes(tensor.name), " is damaged: its hash is ",
      absl::Hex(hash, absl::kZeroPad16), ", not ", absl::Hex(tensor.hash, absl::kZeroPad16)));
}

TensorStore::TensorStore(const Executor& executor, std::vector<HeldTensor> tensors,
                         SafetensorsLayout layout, TeamFile file)
    : executor_(executor),
      tensors_(std::move(tensors)),
      layout_(std::move(layout)),
      file_(std::move(file)),
      hashes_(tensors_.size()) {}

absl::StatusOr<std::unique_ptr<TensorStore>> TensorStore::Begin(const Executor& executor,
                                                                TensorRole role,
                                                                const std::string& path) {
  MGC_ASSIGN_OR_RETURN(std::vector<HeldTensor> tensors, HeldTensors(executor.plan(), role));
  MGC_RETURN_IF_ERROR(CheckHeldAsCalled(tensors));
  MGC_ASSIGN_OR_RETURN(SafetensorsLayout layout, LayoutOf(tensors));
  MGC_ASSIGN_OR_RETURN(TeamFile file, TeamFile::Begin(executor.team(), path, layout.file_bytes()));
  return std::unique_ptr<TensorStore>(
      new TensorStore(executor, std::move(tensors), std::move(layout), std::move(file)));
}

int64_t TensorStore::Copy(Parallel& parallel, absl::Span<float> room) {
  size_t copied = 0;
  for (const HeldTensor& tensor : tensors_) {
    copied +=
        static_cast<size_t>(CopyValuesHere(executor_, tensor, parallel, room.subspan(copied)));
    executor_.team().ComesOn();
  }
  copy_ = room.subspan(0, copied);
  return static_cast<int64_t>(copied);
}

absl::Status TensorStore::Write(absl::FunctionRef<void()> comes_on) {
  const auto look = [&](size_t t, int64_t whole, absl::Span<float> values) -> absl::Status {
    hashes_[t] += HashOfRun(whole, values);
    return AllFinite(values) ? absl::OkStatus()
                             : absl::OutOfRangeError("has values that are not finite");
  };
  return WriteTiles({executor_, tensors_, copy_}, layout_, look, file_.file(), comes_on);
}

absl::StatusOr<std::vector<StoredTensor>> TensorStore::End(const absl::Status& written) {
  MGC_RETURN_IF_ERROR(file_.End(executor_.team(), written));
  MGC_RETURN_IF_ERROR(SumHashes(executor_.team(), &hashes_));
  std::vector<StoredTensor> stored;
  stored.reserve(tensors_.size());
  for (size_t t : layout_.order()) {
    stored.push_back(
        {tensors_[t].name, SizesOf(*tensors_[t].type), layout_.OffsetOf(t), hashes_[t]});
  }
  return stored;
}

absl::StatusOr<int64_t> RestoreTensors(TensorRole role, const std::string& path,
                                       absl::Span<const StoredTensor> tensors, Executor& executor) {
  std::map<std::string, uint64_t> by_name;
  const absl::StatusOr<int64_t> bytes = FillHere(role, path, tensors, executor, &by_name);
  MGC_RETURN_IF_ERROR(executor.team().Agree(bytes.status()));
  std::vector<uint64_t> hashes;
  hashes.reserve(tensors.size());
  for (const StoredTensor& tensor : tensors) hashes.push_back(by_name[tensor.name]);
  MGC_RETURN_IF_ERROR(SumHashes(executor.team(), &hashes));
  for (size_t t = 0; t < tensors.size(); ++t) {
    MGC_RETURN_IF_ERROR(CheckHash(path, tensors[t], hashes[t]));
  }
  return *bytes;
}

absl::StatusOr<int64_t> VerifyTensors(const std::string& path,
                                      absl::Span<const StoredTensor> tensors) {
  constexpr int64_t kReadAtOnce = int64_t{1} << 18;  // values
  MGC_ASSIGN_OR_RETURN(const PositionalFile file, PositionalFile::Open(path));
  MGC_RETURN_IF_ERROR(CheckFrame(file, tensors));
  std::vector<float> values(static_cast<size_t>(kReadAtOnce));
  for (const StoredTensor& tensor : tensors) {
    const int64_t count = NumElements(tensor.shape);
    uint64_t hash = 0;
    for (int64_t at = 0; at < count; at += kReadAtOnce) {
      const int64_t part = std::min(count - at, kReadAtOnce);
      const int64_t begin = tensor.offset + at * static_cast<int64_t>(sizeof(float));
      MGC_RETURN_IF_ERROR(file.Read(begin, {reinterpret_cast<char*>(values.data()),
                                            static_cast<size_t>(part) * sizeof(float)}));
      hash += HashOfRun(at, absl::MakeConstSpan(values).subspan(0, static_cast<size_t>(part)));
    }
    MGC_RETURN_IF_ERROR(CheckHash(path, tensor, hash));
  }
  return file.bytes();
}

}  // namespace mgc
