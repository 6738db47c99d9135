// What a checkpoint's folder holds and stands for: manifest.json, written last.
//
// It names every file and tensor with its hash and carries a hash of itself, so that a folder with
// a manifest that reads is whole, or is found not to be when it is loaded.

#ifndef MGC_RUNTIME_STATE_MANIFEST_H_
#define MGC_RUNTIME_STATE_MANIFEST_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/state/tensor_file.h"

namespace mgc {

inline constexpr int64_t kManifestVersion = 2;
inline constexpr char kManifestName[] = "manifest.json";

// Names and values, in an order that is kept.
using NamedTexts = std::vector<std::pair<std::string, std::string>>;

struct StoredFile {
  std::string name;  // in the folder: `parameters.safetensors`
  std::vector<StoredTensor> tensors;
};

// Where a run stands between two steps.
struct TrainingState {
  int64_t step = 0;     // steps done
  int64_t samples = 0;  // taken so far; the next step begins with this one
  // Numbers that a step leaves for the next one, by name (PlanClass::carried).
  std::vector<std::pair<std::string, double>> carried;
  NamedTexts options;   // what decides the numbers of a run beside plan and data
  NamedTexts data;      // what the run is fed from: names, and sizes with hashes
  std::string version;  // of mgc, that has written it
};

struct Manifest {
  TrainingState state;
  std::vector<StoredFile> files;

  // Nothing but parameters, to begin from (runtime/weights/begin_checkpoint.h).
  bool IsOfWeights() const { return state.step == 0 && files.size() == 1; }
};

// One text for one manifest.
std::string ManifestText(const Manifest& manifest);

// `file` stands for it in messages. DataLoss when the text is not as it was written,
// InvalidArgument when it is of another version or says what cannot be.
absl::StatusOr<Manifest> ParseManifest(absl::string_view text, absl::string_view file);

}  // namespace mgc

#endif  // MGC_RUNTIME_STATE_MANIFEST_H_
