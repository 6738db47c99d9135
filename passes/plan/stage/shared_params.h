// Parameters that several layers use, and the classes of a pipeline that hold those layers.
//
// Every layer that uses such a parameter has a sum of its gradient of its own. A class adds those
// of its layers, then the classes that hold the parameter add theirs: one all-reduce over exactly
// these classes. The class of the first layer owns the parameter, the others keep copies of it.

#ifndef MGC_PASSES_PLAN_STAGE_SHARED_PARAMS_H_
#define MGC_PASSES_PLAN_STAGE_SHARED_PARAMS_H_

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "passes/config/place_layers.h"
#include "passes/plan/stage/crossings.h"
#include "passes/plan/stage/parts.h"

namespace mgc {

class SharedParams {
 public:
  // `parts` and `crossings` are of the training step; all outlive this.
  SharedParams(const Parts& parts, const Crossings& crossings, const LayerPlacement& placement);

  // The classes that hold a parameter which several layers use, ascending.
  const std::vector<int>& ClassesOf(ValueId param) const { return shared_.at(param).classes; }
  // The block that holds it: `tied` of the embedding, the first to use it, `tied.3` of layer 3.
  // What other classes hold that layer 3 is the first to use is in `tied.3.2`. "" of all other
  // parameters.
  std::string BlockOf(ValueId param) const;
  // All such blocks, by the layer that is the first to use their parameters, with the classes that
  // hold them.
  const std::map<std::pair<int, std::string>, std::vector<int>>& blocks() const { return blocks_; }

 private:
  struct Shared {
    std::vector<int> classes;
    std::string block;
  };

  std::set<int> LayersOf(ValueId param) const;
  int ClassOf(int layer) const;
  std::vector<int> ClassesOf(const std::set<int>& layers) const;
  std::string NewBlock(int layer, const std::vector<int>& classes);

  const Parts& parts_;
  const Graph& graph_;
  const Crossings& crossings_;
  const LayerPlacement& placement_;
  std::map<ValueId, Shared> shared_;
  std::map<std::pair<int, std::string>, std::vector<int>> blocks_;
};

}  // namespace mgc

#endif  // MGC_PASSES_PLAN_STAGE_SHARED_PARAMS_H_
