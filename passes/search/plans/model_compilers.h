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
  // one sequence length and one optimizer.
  ModelCompilers(Build build, const ModelDims& dims) : build_(std::move(build)), dims_(dims) {}

  // Errors: those of `build`. Of large models those that were asked for last are kept. `kept`: it
  // is asked for kept layers alone (CompileOptions); of these a model is made once.
  absl::StatusOr<std::shared_ptr<ModelCompiler>> For(const ParallelConfig& config,
                                                     bool kept = false);

 private:
  struct Made {
    std::shared_ptr<ModelCompiler> model;
    int64_t nodes = 0;   // 0: of its layers the kept ones are left
    bool whole = false;  // whether more than its kept layers has been asked for
    int64_t asked = 0;   // the number of the call that asked for it last
  };

  void MakeRoom();

  const Build build_;
  const ModelDims dims_;
  // By samples of a micro-batch over all ranks along dp, and the type that is computed in.
  std::map<std::pair<int64_t, DType>, Made> models_;
  int64_t nodes_ = 0;  // of all together
  int64_t calls_ = 0;
};

}  // namespace mgc

#endif  // MGC_PASSES_SEARCH_PLANS_MODEL_COMPILERS_H_
