// A file that several writers fill, threads or processes, each at its own places, and that takes
// its name when all are done.
//
// Until then it is a temporary file in the directory of `path`, of its final size and permissions;
// what is at `path` stays as it is, and a file that is never published is removed. One process
// creates it and publishes it; the others open it by its temporary name.

#ifndef MGC_GRAPH_BASE_SHARED_FILE_H_
#define MGC_GRAPH_BASE_SHARED_FILE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace mgc {

class SharedFile {
 public:
  // A new file of `bytes` zeros, which is to become `path`; a symbolic link is followed. What
  // killed writers have left in the directory is removed. Where `path` is a device or a pipe, the
  // file is in the system's directory for temporary files, without a name.
  static absl::StatusOr<std::unique_ptr<SharedFile>> Create(const std::string& path, int64_t bytes);
  // What another process has created for `path` as `temporary`.
  static absl::StatusOr<std::unique_ptr<SharedFile>> Open(const std::string& temporary,
                                                          const std::string& path);
  ~SharedFile();
  SharedFile(const SharedFile&) = delete;
  SharedFile& operator=(const SharedFile&) = delete;

  // By which others open it; empty when they cannot, and once it is published.
  const std::string& temporary() const { return temporary_; }

  // Puts `bytes` at `offset`. Any number of threads.
  absl::Status Write(int64_t offset, absl::string_view bytes);
  // Begins to bring what was written to the disk, when what was begun so before is there: called
  // now and then, it leaves little for Sync to wait for.
  void BeginSync();
  // Waits until what was written through this object is on the disk.
  absl::Status Sync();
  // Of the creator, when all writers have synced: renames the file to `path`, or copies it into the
  // device or pipe.
  absl::Status Publish();

 private:
  SharedFile(int file, std::string temporary, std::string path)
      : file_(file), temporary_(std::move(temporary)), path_(std::move(path)) {}
  static absl::StatusOr<std::unique_ptr<SharedFile>> CreateNameless(const std::string& path);

  const int file_;         // of the creator locked, so that no other takes it for a leftover
  std::string temporary_;  // to be removed
  const std::string path_;
  int mode_ = -1;  // of the file that is to be replaced
};

}  // namespace mgc

#endif  // MGC_GRAPH_BASE_SHARED_FILE_H_
