// Logical to training: appends backward and the update.
//
//   %y = matmul(%x, %w)   ->   every micro-batch:
//                                %x.grad = matmul(%y.grad, %w)
//                                %w.grad = matmul(%x, %y.grad)
//                                %w/grad.next = accumulate(%w/grad, %w.grad)
//                              every step:
//                                %w/grad.resolved = reshard(%w/grad.next)
//                                %w, %w/m, %w/v = adamw(%w, %w/grad.resolved, ..., clip / tokens)
//
// Runs before sharding, so that forward, backward and optimizer are sharded by one mechanism.
// Contributions of one layer to a parameter's gradient are added in that layer. Every layer that
// uses a parameter has an accumulator of its own; they are added in the update, in order of use, so
// that cutting a weight tied at both ends over stages changes no bit. A gradient stays a sum over
// tokens in memory: its mean would be another pass over all gradients. One over the token count of
// the whole step, once, multiplies the norm and, with what clips, each gradient that an optimizer
// has read. A parameter with train=0 has none of this: it is read, and stays as it is.

#ifndef MGC_PASSES_GRAPH_DIFFERENTIATE_H_
#define MGC_PASSES_GRAPH_DIFFERENTIATE_H_

#include "absl/status/statusor.h"
#include "graph/ir/graph.h"

namespace mgc {

// InvalidArgument when the graph has no loss or no `count` report, a loss term has the name of
// another report, the loss depends on no parameter that is trained, or no loss on one that is; and
// where a loss depends on a value through which no gradient flows, unless stop_gradient says so.
absl::StatusOr<Graph> Differentiate(const Graph& logical);

// The forward-only counterpart for evaluation, at the training level: dropout off, losses and
// tokens summed over the micro-batches and reported. Of a model that is asked
// (graph/ir/results.h) this is the step itself, with its results.
absl::StatusOr<Graph> Evaluation(const Graph& logical);

}  // namespace mgc

#endif  // MGC_PASSES_GRAPH_DIFFERENTIATE_H_
