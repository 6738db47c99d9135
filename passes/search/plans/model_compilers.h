// The compilers of one model's configurations: as many as there are graphs of it, each with what
// does not depend on the rest of a configuration made once (passes/compile.h).

#ifndef MGC_PASSES_SEARCH_PLANS_MODEL_COMPILERS_H_
#define MGC_PASSES_SEARCH_PLANS_MODEL_COMPILERS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "graph/ir/graph.h"
#include "graph/types/model_dims.h"
#include "graph/types/tensor_type.h"
#include "passes/compile.h"
#include "passes/config/parallel_config.h"

namespace mgc {

class ModelCompilers {
 public:
  using Build = std::function<absl::StatusOr<Graph>(const ParallelConfig& config)>;

  // `build`: the logical graph of one micro-batch over all ranks along dp. All configurations have
  // one sequence length and one optimizer; graphs differ in their samples alone, as
  // passes/graph/resize.h makes them.
  ModelCompilers(Build build, const ModelDims& dims) : build_(std::move(build)), dims_(dims) {}

  // Errors: those of `build`. Of large models that do not fold those that were asked for last are
  // kept.
  absl::StatusOr<std::shared_ptr<ModelCompiler>> For(const ParallelConfig& config);

 private:
  struct Made {
    std::shared_ptr<ModelCompiler> model;
    int64_t asked = 0;  // the number of the call that asked for it last
  };
  // Samples of a micro-batch over all ranks along dp, and the type that is computed in.
  using Key = std::pair<int64_t, DType>;

  void MakeRoom();

  const Build build_;
  const ModelDims dims_;
  std::map<Key, Made> models_;
  int64_t calls_ = 0;
};

}  // namespace mgc

#endif  // MGC_PASSES_SEARCH_PLANS_MODEL_COMPILERS_H_
