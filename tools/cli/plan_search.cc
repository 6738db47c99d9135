#include "tools/cli/plan_search.h"

#include <string>
#include <vector>

namespace mgc {

FixedChoices FixedBy(const ParallelFlags& flags) {
  FixedChoices fixed;
  fixed.tp = flags.tp.has_value();
  fixed.cp = flags.cp.has_value();
  const bool by_hand = flags.layout || flags.first_layers || flags.last_layers ||
                       flags.account_for_embedding || flags.account_for_loss || flags.cuts;
  fixed.pp = flags.pp.has_value() || by_hand;
  fixed.cuts = by_hand;
  fixed.chunks = flags.vp || flags.schedule || flags.group_size || by_hand;
  fixed.sequence_parallel = flags.sequence_parallel;
  fixed.micro_batch_size = flags.micro_batch_size.has_value();
  fixed.recompute = flags.recompute.has_value();
  fixed.zero = flags.zero || flags.distributed_optimizer;
  fixed.zero_group = flags.zero_group.has_value();
  fixed.order = flags.order || flags.tp_pp_dp_order;
  return fixed;
}

SearchRequest SearchFor(const ModelSource& source, const ParallelFlags& flags,
                        const ParallelConfig& config, const CompileOptions& options) {
  SearchRequest request;
  request.options = options;
  request.options.parallel = config;
  request.fixed = FixedBy(flags);
  request.dims = source.dims;
  request.lay_out_unnamed = !flags.strategy.has_value();
  const int64_t vocab_multiple = flags.vocab_multiple.value_or(1);
  request.build = [&source, vocab_multiple](const ParallelConfig& of) {
    std::vector<std::string> notes;
    return BuildGraph(source, of, vocab_multiple, &notes);
  };
  return request;
}

}  // namespace mgc
