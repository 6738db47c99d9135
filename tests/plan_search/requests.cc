#include "tests/plan_search/requests.h"

#include <vector>

#include "frontends/model_config.h"
#include "frontends/models.h"

namespace mgc {

SearchRequest RequestFor(const std::string& model, const std::string& machine, int64_t world_size,
                         int64_t global_batch_size) {
  std::vector<std::string> notes;
  const ModelConfig config = LoadModelConfig(model, &notes).value();
  SearchRequest request;
  request.options.machine = FindMachinePreset(machine).value();
  ParallelConfig& parallel = request.options.parallel;
  parallel.world_size = world_size;
  parallel.global_batch_size = global_batch_size;
  parallel.seq_length = config.seq_length;
  request.dims = DimsOf(config);
  request.build = [config](const ParallelConfig& of) {
    return BuildModel(config, of.micro_batch_size * DataParallelSize(of), of.seq_length,
                      ModelOptions());
  };
  return request;
}

}  // namespace mgc
