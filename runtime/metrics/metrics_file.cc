#include "runtime/metrics/metrics_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/types/optional.h"
#include "graph/base/file.h"
#include "graph/base/json.h"
#include "graph/base/status.h"

namespace mgc {
namespace {

// Names tried for an earlier file, and files opened before it is given up that others replace them.
constexpr int kMostEarlier = 10000;
constexpr int kMostOpened = 100;

absl::Status WriteError(int error, absl::string_view path) {
  return absl::ErrnoToStatus(error, absl::StrCat("cannot write ", EscapeBytes(path)));
}

std::string Resolved(const std::string& path) {
  const std::unique_ptr<char, void (*)(void*)> real(realpath(path.c_str(), nullptr), std::free);
  return real == nullptr ? path : std::string(real.get());
}

bool IsRegular(int file) {
  struct stat info;
  return fstat(file, &info) == 0 && S_ISREG(info.st_mode);
}

bool IsEmpty(int file) {
  struct stat info;
  return fstat(file, &info) == 0 && info.st_size == 0;
}

// The last `bytes` of a file, where it is one that can lose them.
void TakeBack(int file, off_t bytes) {
  struct stat info;
  if (bytes == 0 || fstat(file, &info) != 0 || !S_ISREG(info.st_mode)) return;
  if (ftruncate(file, info.st_size - bytes) != 0) return;  // half a line stays
}

// Gives the file at `path` the next free name and returns that.
absl::StatusOr<std::string> SetAside(const std::string& path) {
  for (int number = 1; number <= kMostEarlier; ++number) {
    std::string name = absl::StrCat(path, ".", number);
    if (link(path.c_str(), name.c_str()) == 0) {
      return unlink(path.c_str()) == 0 ? absl::StatusOr<std::string>(std::move(name))
                                       : WriteError(errno, path);
    }
    if (errno != EEXIST) return WriteError(errno, name);
  }
  return absl::FailedPreconditionError(absl::StrCat("cannot write ", EscapeBytes(path), ": ",
                                                    kMostEarlier, " earlier files are kept"));
}

// The lines of a metrics file that a run keeps which goes on behind a step.
struct KeptLines {
  std::string text;
  int64_t dropped = 0;
};

// None of a text that is no metrics.
absl::optional<KeptLines> LinesUpTo(absl::string_view text, int64_t step) {
  KeptLines kept;
  for (absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    if (line.end() == text.end()) {  // it lacks its end
      ++kept.dropped;
      continue;
    }
    const absl::StatusOr<JsonValue> object = ParseJson(line, "");
    const JsonValue* of_step = object.ok() ? object->Find("step") : nullptr;
    if (of_step == nullptr || of_step->kind != JsonValue::Kind::kInteger) return absl::nullopt;
    if (of_step->integer > step) {
      ++kept.dropped;
    } else {
      absl::StrAppend(&kept.text, line, "\n");
    }
  }
  return kept;
}

}  // namespace

absl::StatusOr<MetricsFile> MetricsFile::Open(const std::string& path) {
  for (int opened = 0; opened < kMostOpened; ++opened) {
    const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (file < 0) return WriteError(errno, path);
    MetricsFile metrics(file, path);
    if (!IsRegular(file)) return metrics;
    if (flock(file, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      return absl::UnavailableError(
          absl::StrCat("cannot write ", EscapeBytes(path), ": another run is writing it"));
    }
    // Between opening and locking, another run may have set this very file aside.
    const std::string resolved = Resolved(path);
    if (!IsNamed(file, resolved)) continue;
    return metrics;
  }
  return WriteError(EBUSY, path);
}

absl::StatusOr<MetricsFile> MetricsFile::Create(const std::string& path) {
  std::string earlier;
  for (int opened = 0; opened < kMostOpened; ++opened) {
    MGC_ASSIGN_OR_RETURN(MetricsFile metrics, Open(path));
    metrics.earlier_ = earlier;
    if (!IsRegular(metrics.file_) || IsEmpty(metrics.file_)) return metrics;
    MGC_ASSIGN_OR_RETURN(earlier, SetAside(Resolved(path)));
  }
  return WriteError(EBUSY, path);
}

absl::StatusOr<MetricsFile> MetricsFile::Continue(const std::string& path, int64_t step) {
  absl::optional<KeptLines> kept;
  {
    MGC_ASSIGN_OR_RETURN(MetricsFile metrics, Open(path));
    if (!IsRegular(metrics.file_) || IsEmpty(metrics.file_)) return metrics;
    MGC_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
    kept = LinesUpTo(text, step);
    if (kept.has_value() && kept->dropped == 0) return metrics;
    if (kept.has_value()) MGC_RETURN_IF_ERROR(WriteFileAtomically(path, kept->text));
  }
  if (!kept.has_value()) return Create(path);
  MGC_ASSIGN_OR_RETURN(MetricsFile metrics, Open(path));  // the file that has replaced it
  metrics.dropped_ = kept->dropped;
  return metrics;
}

MetricsFile::MetricsFile(MetricsFile&& other) noexcept
    : file_(std::exchange(other.file_, -1)),
      path_(std::move(other.path_)),
      earlier_(std::move(other.earlier_)),
      dropped_(other.dropped_) {}

MetricsFile& MetricsFile::operator=(MetricsFile&& other) noexcept {
  std::swap(file_, other.file_);
  std::swap(path_, other.path_);
  std::swap(earlier_, other.earlier_);
  std::swap(dropped_, other.dropped_);
  return *this;
}

MetricsFile::~MetricsFile() {
  if (file_ >= 0) close(file_);
}

absl::Status MetricsFile::Append(absl::string_view object) {
  const std::string line = absl::StrCat(object, "\n");
  absl::string_view rest = line;
  while (!rest.empty()) {
    const ssize_t written = write(file_, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      const int error = errno;
      TakeBack(file_, static_cast<off_t>(line.size() - rest.size()));
      return WriteError(error, path_);
    }
    rest.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

}  // namespace mgc
