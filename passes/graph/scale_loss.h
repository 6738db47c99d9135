// A training step whose loss is scaled, for gradients in a type of few exponents.
//
//   %seed = constant() {value=1.0}                 %seed = constant() {value=1.0}
//   ... gradients from %seed                       %seed.scaled = mul(%seed, %loss_scale)
//                                                  ... gradients from %seed.scaled
//   %grad_factor = inv(%tokens)                ->  %grad_factor = inv(mul(%tokens, %loss_scale))
//   %grad_norm = mul(%root, %grad_factor)          %grad_norm = mul(%root, %grad_factor)
//                                                  %finite = is_finite(%grad_norm)
//   %w, %w/m, %w/v = adamw(..., %correction1,      %w, %w/m, %w/v = guarded_adamw(...,
//       %correction2, %clip.factor)                    bias_correction(%beta1, %adam_steps),
//                                                      bias_correction(%beta2, %adam_steps),
//                                                      %clip.factor, %finite)
//                                                  %loss_scale, ... = next_loss_scale(...)
//                                                  %adam_steps = add(%adam_steps, %finite)
//
// Every gradient is multiplied by the scale once, in the seed, and divided by it once, by the
// factor that the norm and the optimizer multiply sums by. The norm is that of all gradients on all
// ranks: it is a number if and only if they are. Where it is none the step changes neither
// parameters nor moments, by selection, and Adam does not count it. The scale follows Megatron-LM's
// rule; it, its two counters and Adam's steps are numbers that every rank carries from step to step
// (states without `of`). All ranks have the same norm, so they have the same numbers.
//
// Losses are sums over tokens here, so the scale is that of a sum: one that overflows as a mean's
// scale does is smaller by the number of tokens.

#ifndef MGC_PASSES_GRAPH_SCALE_LOSS_H_
#define MGC_PASSES_GRAPH_SCALE_LOSS_H_

#include "absl/status/statusor.h"
#include "graph/ir/graph.h"

namespace mgc {

// `step` is what Differentiate makes. InvalidArgument (scale_loss_c1) where it has a value of a
// name that is added here.
absl::StatusOr<Graph> ScaleLoss(const Graph& step);

}  // namespace mgc

#endif  // MGC_PASSES_GRAPH_SCALE_LOSS_H_
