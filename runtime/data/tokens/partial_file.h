// A file that is not whole yet, under a name by which a later process finds it.

#ifndef MGC_RUNTIME_DATA_TOKENS_PARTIAL_FILE_H_
#define MGC_RUNTIME_DATA_TOKENS_PARTIAL_FILE_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace mgc {

// Locked against other processes, and against others of this one, while it is open.
class PartialFile {
 public:
  // `path` with `.partial` behind it, as it was left, or empty. FailedPrecondition while another
  // one has it open.
  static absl::StatusOr<PartialFile> Open(const std::string& path);
  PartialFile(PartialFile&& other) noexcept;
  PartialFile& operator=(PartialFile&& other) noexcept;
  // Removes it, unless it is to be kept or is published.
  ~PartialFile();

  const std::string& name() const { return name_; }
  void Keep(bool keep) { keep_ = keep; }
  absl::StatusOr<int64_t> Size() const;
  absl::Status Resize(int64_t bytes);
  // Renames it to `path`, with the permissions of what it replaces; a symbolic link is followed.
  // What was written must have been synchronized.
  absl::Status Publish();

 private:
  PartialFile(int file, std::string name, std::string path)
      : file_(file), name_(std::move(name)), path_(std::move(path)) {}

  int file_;  // -1: it has been moved from
  std::string name_, path_;
  bool keep_ = false;
};

}  // namespace mgc

#endif  // MGC_RUNTIME_DATA_TOKENS_PARTIAL_FILE_H_
