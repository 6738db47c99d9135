#include "runtime/metrics.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "graph/base/file.h"
#include "graph/base/json.h"

namespace mgc {
namespace {

absl::Status WriteError(absl::string_view path) {
  return absl::ErrnoToStatus(errno, absl::StrCat("cannot write ", EscapeBytes(path)));
}

// Three to four digits before a unit: "950", "95.0 k", "1.2 M".
std::string FormatRate(double rate) {
  if (rate >= 1e6) return absl::StrFormat("%.1f M", rate / 1e6);
  if (rate >= 1e4) return absl::StrFormat("%.1f k", rate / 1e3);
  return absl::StrFormat("%.0f", rate);
}

}  // namespace

std::string FormatBytes(int64_t bytes) {
  if (bytes < 1024) return absl::StrCat(bytes, " B");
  double value = static_cast<double>(bytes) / 1024;
  const char* unit = "KiB";
  for (const char* larger : {"MiB", "GiB", "TiB"}) {
    if (value < 1024) break;
    value /= 1024;
    unit = larger;
  }
  return absl::StrFormat("%.1f %s", value, unit);
}

std::string StepLine(const StepRecord& r) {
  std::string line = absl::StrFormat("step %d | loss %.4f", r.step, r.loss);
  for (const auto& [name, loss] : r.other_losses) {
    absl::StrAppendFormat(&line, " | %s %.4f", EscapeBytes(name), loss);
  }
  absl::StrAppendFormat(&line, " | grad norm %.3f | %.1f ms", r.grad_norm, r.ms);
  if (r.predicted_ms.has_value() && *r.predicted_ms > 0) {
    absl::StrAppendFormat(&line, " (plan %.1f, %+.1f%%)", *r.predicted_ms,
                          (r.ms / *r.predicted_ms - 1) * 100);
  }
  absl::StrAppend(&line, " | ", FormatRate(r.tokens_per_second), " tokens/s | ",
                  FormatBytes(r.peak_bytes));
  return line;
}

std::string StepJson(const StepRecord& r) {
  std::vector<std::string> others;
  for (const auto& [name, loss] : r.other_losses) {
    others.push_back(absl::StrCat(JsonQuote(name), ":", JsonNumber(loss)));
  }
  return absl::StrCat("{\"step\":", r.step, ",\"loss\":", JsonNumber(r.loss),
                      others.empty() ? "" : ",\"other_losses\":{", absl::StrJoin(others, ","),
                      others.empty() ? "" : "}", ",\"grad_norm\":", JsonNumber(r.grad_norm),
                      ",\"lr\":", JsonNumber(r.lr), ",\"ms\":", JsonNumber(r.ms),
                      ",\"tokens_per_second\":", JsonNumber(r.tokens_per_second), "}");
}

absl::StatusOr<MetricsFile> MetricsFile::Create(const std::string& path) {
  int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666);
  if (file < 0) return WriteError(path);
  return MetricsFile(file, path);
}

MetricsFile::MetricsFile(int file, std::string path) : file_(file), path_(std::move(path)) {}

MetricsFile::MetricsFile(MetricsFile&& other) noexcept
    : file_(std::exchange(other.file_, -1)), path_(std::move(other.path_)) {}

MetricsFile& MetricsFile::operator=(MetricsFile&& other) noexcept {
  std::swap(file_, other.file_);
  std::swap(path_, other.path_);
  return *this;
}

MetricsFile::~MetricsFile() {
  if (file_ >= 0) close(file_);
}

absl::Status MetricsFile::Append(const StepRecord& record) {
  std::string line = absl::StrCat(StepJson(record), "\n");
  absl::string_view rest = line;
  while (!rest.empty()) {
    ssize_t written = write(file_, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return WriteError(path_);
    rest.remove_prefix(written);
  }
  return absl::OkStatus();
}

}  // namespace mgc
