#include "passes/plan/time/simulated_step.h"

#include <algorithm>

#include "passes/plan/time/cost.h"

namespace mgc {

int64_t CollectiveTime::ExposedNs() const {
  int64_t ns = 0;
  for (const auto& [axes, waited] : exposed) ns = Later(ns, waited);
  return ns;
}

int64_t StepNs(const SimulatedStep& step, const Mesh& mesh, const Machine& machine) {
  if (machine.cores == 0) return step.makespan_ns;
  const size_t classes = step.busy_ns.size();
  double work = 0;
  for (size_t c = 0; c < classes; ++c) {
    work += static_cast<double>(step.busy_ns[c]) + static_cast<double>(step.collectives[c].all_ns);
  }
  const double ranks = static_cast<double>(mesh.world_size()) / static_cast<double>(classes);
  const double ns = work * ranks / static_cast<double>(machine.cores);
  return static_cast<int64_t>(std::min(ns, static_cast<double>(kMaxNs)));
}

}  // namespace mgc
