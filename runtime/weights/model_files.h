// The weights of a model directory: what its safetensors files hold, by the parameters of a model.

#ifndef MGC_RUNTIME_WEIGHTS_MODEL_FILES_H_
#define MGC_RUNTIME_WEIGHTS_MODEL_FILES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "graph/base/positional_file.h"
#include "graph/weights/weight_map.h"
#include "runtime/data/safetensors.h"
#include "runtime/weights/strided.h"

namespace mgc {

inline constexpr char kWeightsFile[] = "model.safetensors";
inline constexpr char kWeightsIndex[] = "model.safetensors.index.json";

// The files of a directory, with what was found in them.
class ModelFiles {
 public:
  // Reads headers alone: those of the files that `model.safetensors.index.json` names, or of
  // `model.safetensors`. NotFound where there is neither. InvalidArgument names every tensor of the
  // map that is missing, twice there, or of another shape or type, and every file that does not
  // hold what the index says. `name`: of the file, where there is no index.
  static absl::StatusOr<ModelFiles> Open(const std::string& dir, WeightMap map,
                                         const std::string& name = kWeightsFile);

  // Takes what other files hold: parameters that are not here. The map is then that of both.
  void Add(ModelFiles other);

  const std::string& dir() const { return dir_; }
  const WeightMap& map() const { return map_; }
  // Of the map's tensors, by their order.
  SafetensorsType TypeOf(size_t tensor) const { return placed_[tensor].type; }
  // Every parameter once.
  const std::vector<PlacedPart>& parts() const { return parts_; }

  // For people: how many tensors were matched, then a line for those ignored for each reason.
  std::vector<std::string> Report() const;
  // What lies where, as a text: equal for equal headers.
  std::string Identity() const;

 private:
  struct Placed {
    const PositionalFile* file = nullptr;
    int64_t offset = 0;
    SafetensorsType type = SafetensorsType::kF32;
  };
  class Matcher;
  void ListParts();

  std::string dir_;
  WeightMap map_;
  std::vector<std::unique_ptr<PositionalFile>> files_;
  std::vector<Placed> placed_;  // by the map's tensors
  std::vector<PlacedPart> parts_;
  std::vector<std::pair<std::string, std::string>> ignored_;  // names and reasons
};

}  // namespace mgc

#endif  // MGC_RUNTIME_WEIGHTS_MODEL_FILES_H_
