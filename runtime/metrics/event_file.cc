#include "runtime/metrics/event_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "graph/base/file.h"
#include "graph/base/status.h"

namespace mgc {
namespace {

constexpr double kGibibyte = 1 << 30;
constexpr int kMostNames = 10000;

// CRC-32C, bit by bit from the lowest (RFC 3720, appendix B.4).
constexpr std::array<uint32_t, 256> MakeCrcTable() {
  std::array<uint32_t, 256> table = {};
  for (uint32_t byte = 0; byte < table.size(); ++byte) {
    uint32_t rest = byte;
    for (int bit = 0; bit < CHAR_BIT; ++bit) {
      rest = (rest & 1) != 0 ? (rest >> 1) ^ 0x82F63B78U : rest >> 1;
    }
    table[byte] = rest;
  }
  return table;
}
constexpr std::array<uint32_t, 256> kCrcTable = MakeCrcTable();

uint32_t MaskedCrc(absl::string_view bytes) {
  uint32_t crc = ~0U;
  for (const char c : bytes) crc = kCrcTable[(crc ^ static_cast<uint8_t>(c)) & 0xFF] ^ (crc >> 8);
  crc = ~crc;
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8U;
}

template <typename Number>
std::string LittleEndian(Number number) {
  std::string bytes(sizeof(number), '\0');
  std::memcpy(bytes.data(), &number, sizeof(number));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
  std::reverse(bytes.begin(), bytes.end());
#endif
  return bytes;
}

// Wire types of Protocol Buffers.
enum Wire : uint64_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

std::string Varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes.push_back(static_cast<char>(value | 0x80));
  bytes.push_back(static_cast<char>(value));
  return bytes;
}

std::string Field(uint64_t number, Wire wire, absl::string_view value) {
  const std::string key = Varint(number << 3 | wire);
  return wire == kBytes ? absl::StrCat(key, Varint(value.size()), value) : absl::StrCat(key, value);
}

std::string WallTime(double seconds) { return Field(1, kFixed64, LittleEndian(seconds)); }
std::string Step(int64_t step) { return Field(2, kVarint, Varint(static_cast<uint64_t>(step))); }

std::string Record(absl::string_view data) {
  const std::string length = LittleEndian(static_cast<uint64_t>(data.size()));
  return absl::StrCat(length, LittleEndian(MaskedCrc(length)), data, LittleEndian(MaskedCrc(data)));
}

std::string HostName() {
  std::array<char, 256> name = {};
  if (gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0') return "localhost";
  return name.data();
}

absl::Status WriteError(int error, absl::string_view path) {
  return absl::ErrnoToStatus(error, absl::StrCat("cannot write ", EscapeBytes(path)));
}

double Now() { return absl::ToDoubleSeconds(absl::Now() - absl::UnixEpoch()); }

}  // namespace

TaggedScalars ScalarsOf(const StepRecord& r) {
  TaggedScalars scalars = {{"train/loss", r.loss}};
  for (const auto& [name, loss] : r.other_losses) {
    scalars.emplace_back(absl::StrCat("train/loss_", EscapeBytes(name)), loss);
  }
  scalars.emplace_back("train/grad_norm", r.grad_norm);
  scalars.emplace_back("train/learning_rate", r.lr);
  if (r.loss_scale.has_value()) scalars.emplace_back("train/loss_scale", *r.loss_scale);
  scalars.emplace_back("perf/step_ms", r.ms);
  if (r.predicted_ms.has_value()) scalars.emplace_back("perf/predicted_ms", *r.predicted_ms);
  scalars.emplace_back("perf/tokens_per_second", r.tokens_per_second);
  if (r.flops_per_second.has_value()) {
    scalars.emplace_back("perf/tflops", *r.flops_per_second / 1e12);
  }
  if (r.peak_share.has_value()) scalars.emplace_back("perf/peak_share", *r.peak_share);
  scalars.emplace_back("perf/data_wait_ms", r.data_wait_ms);
  scalars.emplace_back("perf/checkpoint_stall_ms", r.checkpoint_stall_ms);
  scalars.emplace_back("memory/peak_gib", static_cast<double>(r.peak_bytes) / kGibibyte);
  return scalars;
}

TaggedScalars ScalarsOf(const EvalRecord& r) { return {{"valid/loss", r.loss}}; }

std::string VersionEvent(double wall_time) {
  return Record(absl::StrCat(WallTime(wall_time), Field(3, kBytes, "brain.Event:2")));
}

std::string RestartEvent(double wall_time, int64_t step) {
  const std::string start = Field(1, kVarint, Varint(1));  // SessionLog.status: START
  return Record(absl::StrCat(WallTime(wall_time), Step(step), Field(7, kBytes, start)));
}

std::string ScalarsEvent(double wall_time, int64_t step, const TaggedScalars& scalars) {
  std::string summary;
  for (const auto& [tag, value] : scalars) {
    const std::string one = absl::StrCat(
        Field(1, kBytes, tag), Field(2, kFixed32, LittleEndian(static_cast<float>(value))));
    absl::StrAppend(&summary, Field(1, kBytes, one));
  }
  return Record(absl::StrCat(WallTime(wall_time), Step(step), Field(5, kBytes, summary)));
}

absl::StatusOr<EventFile> EventFile::Create(const std::string& folder, int64_t step) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return WriteError(error.value(), folder);
  const double now = Now();
  const std::string stem = absl::StrFormat("%s/events.out.tfevents.%010d.%s.%d", folder,
                                           static_cast<int64_t>(now), HostName(), getpid());
  for (int number = 0; number < kMostNames; ++number) {
    const std::string path = absl::StrCat(stem, ".", number);
    const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
    if (file < 0 && errno == EEXIST) continue;
    if (file < 0) return WriteError(errno, path);
    EventFile events(file, path);
    MGC_RETURN_IF_ERROR(events.Write(VersionEvent(now)));
    if (step > 0) MGC_RETURN_IF_ERROR(events.Write(RestartEvent(now, step + 1)));
    return events;
  }
  return WriteError(EEXIST, folder);
}

EventFile::EventFile(EventFile&& other) noexcept
    : file_(std::exchange(other.file_, -1)), path_(std::move(other.path_)) {}

EventFile& EventFile::operator=(EventFile&& other) noexcept {
  std::swap(file_, other.file_);
  std::swap(path_, other.path_);
  return *this;
}

EventFile::~EventFile() {
  if (file_ >= 0) close(file_);
}

absl::Status EventFile::Add(int64_t step, const TaggedScalars& scalars) {
  return Write(ScalarsEvent(Now(), step, scalars));
}

absl::Status EventFile::Write(absl::string_view record) {
  while (!record.empty()) {
    const ssize_t written = write(file_, record.data(), record.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return WriteError(errno, path_);
    record.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

}  // namespace mgc
