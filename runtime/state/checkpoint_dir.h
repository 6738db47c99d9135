// A folder of checkpoints, and how one appears in it: whole or not at all.
//
//   DIR/step-00000100/                 a checkpoint: files, and a manifest written last
//   DIR/step-00000100.tmp-5f0c.../     one that is being written, or was when its run died
//   DIR/latest                         the name of the one that was written last
//   DIR/lock                           held by the run that writes here
//
// A checkpoint is written beside its place, synchronized to disk and renamed; nothing in it is ever
// changed. A folder without a manifest that reads is none. One process, the first of a run, does
// what is here.

#ifndef MGC_RUNTIME_STATE_CHECKPOINT_DIR_H_
#define MGC_RUNTIME_STATE_CHECKPOINT_DIR_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "runtime/state/manifest.h"

namespace mgc {

// `step-00000100`.
std::string StepName(int64_t step);
// The step of such a name.
absl::optional<int64_t> StepOfName(absl::string_view name);

// The steps in `dir` of which there is a manifest, in the order in which a run goes on from them:
// what `latest` names, then steps before it, the last first, then those behind it, which a run that
// went back has left. Empty where there is no such folder; else the system's errors.
absl::StatusOr<std::vector<int64_t>> ListSteps(const std::string& dir);

// The checkpoint that `path` names: by its own folder, or by the folder of a run for the one that
// the run would go on from.
absl::StatusOr<std::string> FolderToLoad(const std::string& path);

// Reads the manifest of `folder`.
absl::StatusOr<Manifest> ReadManifest(const std::string& folder);

class CheckpointDir {
 public:
  // Makes the folder where there is none, takes its lock and removes what killed runs have left.
  // Unavailable, with its process and host, while another run has it.
  static absl::StatusOr<std::unique_ptr<CheckpointDir>> Open(const std::string& path);
  ~CheckpointDir();
  CheckpointDir(const CheckpointDir&) = delete;
  CheckpointDir& operator=(const CheckpointDir&) = delete;

  const std::string& path() const { return path_; }

  // A new folder to write a checkpoint into.
  absl::StatusOr<std::string> Begin(int64_t step) const;
  // Makes `folder`, whose files are all on disk, the checkpoint of its manifest's step; one of that
  // step that was there is removed behind it.
  absl::Status Publish(const std::string& folder, const Manifest& manifest) const;
  // Removes what Begin has made.
  void Abandon(const std::string& folder) const;
  // Removes checkpoints until `keep` are left up to `step`; those behind it stay. keep >= 1.
  absl::Status Prune(int64_t step, int64_t keep) const;

 private:
  CheckpointDir(std::string path, int lock) : path_(std::move(path)), lock_(lock) {}

  std::string path_;
  int lock_;
};

}  // namespace mgc

#endif  // MGC_RUNTIME_STATE_CHECKPOINT_DIR_H_
