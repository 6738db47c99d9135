#include "runtime/state/checkpoint_dir.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "graph/base/file.h"
#include "graph/base/file_calls.h"
#include "graph/base/status.h"
#include "runtime/run/host.h"

namespace mgc {
namespace {

constexpr absl::string_view kStepPrefix = "step-";
constexpr absl::string_view kTemporary = ".tmp-";
constexpr char kLatest[] = "latest";
constexpr char kLock[] = "lock";
constexpr int64_t kMostManifestBytes = int64_t{1} << 30;
constexpr int64_t kMostNameBytes = 4096;
constexpr size_t kStepDigits = 8;

std::string In(const std::string& dir, absl::string_view name) {
  return absl::StrCat(dir, "/", name);
}

bool IsTemporary(absl::string_view name) {
  const size_t at = name.find(kTemporary);
  return at != absl::string_view::npos && StepOfName(name.substr(0, at)).has_value();
}

bool Exists(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0;
}

absl::StatusOr<std::vector<std::string>> NamesIn(const std::string& dir) {
  MGC_RETURN_IF_ERROR(CheckNoZeroByte("read", dir));
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(opendir(dir.c_str()), closedir);
  if (listing == nullptr) return SystemError(errno, "read", dir);
  std::vector<std::string> names;
  while (const dirent* entry = readdir(listing.get())) names.emplace_back(entry->d_name);
  return names;
}

// A checkpoint loses its name first, so that no half of it is ever taken for one.
absl::Status Remove(const std::string& folder) {
  std::error_code error;
  std::filesystem::remove_all(folder, error);
  return error ? SystemError(error.value(), "remove", folder) : absl::OkStatus();
}

absl::StatusOr<std::string> NewTemporary(const std::string& dir, int64_t step) {
  uint64_t nonce = 0;
  if (getrandom(&nonce, sizeof(nonce), 0) != sizeof(nonce)) {
    return absl::ResourceExhaustedError("the system gives no random number");
  }
  return In(dir, absl::StrFormat("%s%s%016x", StepName(step), kTemporary, nonce));
}

absl::Status Rename(const std::string& from, const std::string& to) {
  return rename(from.c_str(), to.c_str()) == 0 ? absl::OkStatus() : SystemError(errno, "write", to);
}

// What holds the lock, as it says of itself.
std::string HolderOf(const std::string& lock) {
  const absl::StatusOr<std::string> text = ReadFile(lock, kMostNameBytes);
  return text.ok() ? EscapeBytes(absl::StripSuffix(*text, "\n")) : "";
}

absl::StatusOr<int> TakeLock(const std::string& dir) {
  const std::string path = In(dir, kLock);
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
  if (file < 0) return SystemError(errno, "write", path);
  absl::Status status;
  if (flock(file, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    status = absl::UnavailableError(absl::StrCat("cannot write checkpoints to ", EscapeBytes(dir),
                                                 ": another run does (", HolderOf(path),
                                                 "); give each run a folder of its own"));
  }
  const std::string holder = absl::StrCat("process ", getpid(), " of ", HostName(), "\n");
  if (status.ok() && ftruncate(file, 0) != 0) status = SystemError(errno, "write", path);
  if (status.ok()) status = WriteAll(file, holder, path);
  if (status.ok()) return file;
  close(file);
  return status;
}

}  // namespace

std::string StepName(int64_t step) { return absl::StrFormat("%s%08d", kStepPrefix, step); }

absl::optional<int64_t> StepOfName(absl::string_view name) {
  int64_t step = 0;
  const absl::string_view digits = absl::StripPrefix(name, kStepPrefix);
  if (digits.size() < kStepDigits || !absl::SimpleAtoi(digits, &step)) return absl::nullopt;
  if (step < 0 || StepName(step) != name) return absl::nullopt;
  return step;
}

absl::StatusOr<std::vector<int64_t>> ListSteps(const std::string& dir) {
  const absl::StatusOr<std::vector<std::string>> names = NamesIn(dir);
  if (absl::IsNotFound(names.status())) return std::vector<int64_t>();
  MGC_RETURN_IF_ERROR(names.status());
  std::vector<int64_t> steps;
  for (const std::string& name : *names) {
    const absl::optional<int64_t> step = StepOfName(name);
    if (step.has_value() && Exists(In(In(dir, name), kManifestName))) steps.push_back(*step);
  }
  std::sort(steps.rbegin(), steps.rend());
  const absl::StatusOr<std::string> latest = ReadFile(In(dir, kLatest), kMostNameBytes);
  if (!latest.ok()) return steps;
  const absl::optional<int64_t> last = StepOfName(absl::StripSuffix(*latest, "\n"));
  const auto at = last.has_value() ? std::find_if(steps.begin(), steps.end(),
                                                  [&](int64_t step) { return step <= *last; })
                                   : steps.begin();
  std::rotate(steps.begin(), at, steps.end());
  return steps;
}

absl::StatusOr<std::string> FolderToLoad(const std::string& path) {
  MGC_ASSIGN_OR_RETURN(const std::vector<int64_t> steps, ListSteps(path));
  return steps.empty() ? path : In(path, StepName(steps[0]));
}

absl::StatusOr<Manifest> ReadManifest(const std::string& folder) {
  const std::string path = In(folder, kManifestName);
  MGC_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMostManifestBytes));
  return ParseManifest(text, path);
}

absl::StatusOr<std::unique_ptr<CheckpointDir>> CheckpointDir::Open(const std::string& path) {
  MGC_RETURN_IF_ERROR(CheckNoZeroByte("write", path));
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return SystemError(error.value(), "write", path);
  MGC_ASSIGN_OR_RETURN(const int lock, TakeLock(path));
  std::unique_ptr<CheckpointDir> dir(new CheckpointDir(path, lock));
  MGC_ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesIn(path));
  for (const std::string& name : names) {
    if (IsTemporary(name)) MGC_RETURN_IF_ERROR(Remove(In(path, name)));
  }
  return dir;
}

CheckpointDir::~CheckpointDir() { close(lock_); }

absl::StatusOr<std::string> CheckpointDir::Begin(int64_t step) const {
  MGC_ASSIGN_OR_RETURN(std::string folder, NewTemporary(path_, step));
  if (mkdir(folder.c_str(), 0777) != 0) return SystemError(errno, "write", folder);
  return folder;
}

absl::Status CheckpointDir::Publish(const std::string& folder, const Manifest& manifest) const {
  MGC_RETURN_IF_ERROR(WriteFileAtomically(In(folder, kManifestName), ManifestText(manifest)));
  const std::string name = StepName(manifest.state.step);
  const std::string target = In(path_, name);
  const bool replaces = Exists(target);
  if (replaces &&
      renameat2(AT_FDCWD, folder.c_str(), AT_FDCWD, target.c_str(), RENAME_EXCHANGE) != 0) {
    // File systems without an exchange: for a moment the step has no checkpoint.
    MGC_ASSIGN_OR_RETURN(const std::string old, NewTemporary(path_, manifest.state.step));
    MGC_RETURN_IF_ERROR(Rename(target, old));
    MGC_RETURN_IF_ERROR(Rename(folder, target));
    MGC_RETURN_IF_ERROR(Remove(old));
  } else if (!replaces) {
    MGC_RETURN_IF_ERROR(Rename(folder, target));
  }
  // Synchronizes the folder behind both renames; `latest` may name what is not there yet.
  MGC_RETURN_IF_ERROR(WriteFileAtomically(In(path_, kLatest), absl::StrCat(name, "\n")));
  return replaces ? Remove(folder) : absl::OkStatus();
}

void CheckpointDir::Abandon(const std::string& folder) const {
  Remove(folder).IgnoreError();  // the next run does it
}

absl::Status CheckpointDir::Prune(int64_t step, int64_t keep) const {
  MGC_ASSIGN_OR_RETURN(std::vector<int64_t> steps, ListSteps(path_));
  std::sort(steps.rbegin(), steps.rend());
  int64_t kept = 0;
  for (int64_t old : steps) {
    if (old > step || ++kept <= keep) continue;
    MGC_ASSIGN_OR_RETURN(const std::string away, NewTemporary(path_, old));
    MGC_RETURN_IF_ERROR(Rename(In(path_, StepName(old)), away));
    MGC_RETURN_IF_ERROR(Remove(away));
  }
  return absl::OkStatus();
}

}  // namespace mgc
