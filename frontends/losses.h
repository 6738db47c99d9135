// Losses of models, written with ModelBuilder and nothing else.
//
// A loss term is a sum, so that it does not depend on how a batch is cut. What a user sees, and
// what gradients are of, is the sum of all terms over all samples of a step, each by its weight,
// divided by the model's report `count`: the sum of the weights of what is counted (tokens,
// samples).

#ifndef MGC_FRONTENDS_LOSSES_H_
#define MGC_FRONTENDS_LOSSES_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "frontends/builder.h"
#include "graph/ir/step_names.h"  // of losses, of the count

namespace mgc {

// The cross-entropy of every row in nats, f32[...]: `logits` [..., vocab], `targets` i64[...]. With
// `smoothing` s a target has the probability 1 - s + s / vocab and every other entry s / vocab
// (Szegedy et al. 2016); s outside [0, 1) is an error. The vocabulary may be cut.
Tensor CrossEntropy(ModelBuilder& b, Tensor logits, Tensor targets, double smoothing = 0,
                    CallSite site = CallSite::Current());

// 1 for each target, 0 for those that are `ignore`: weights, f32 of the targets' dims.
Tensor CountedTargets(ModelBuilder& b, Tensor targets, int64_t ignore,
                      CallSite site = CallSite::Current());

// (x - y)^2, element by element.
Tensor SquaredError(ModelBuilder& b, Tensor x, Tensor y, CallSite site = CallSite::Current());

// The binary cross-entropy of every element in nats: labels in [0, 1] against the probabilities
// sigmoid(logits). Exact for large logits, too.
Tensor BinaryCrossEntropy(ModelBuilder& b, Tensor logits, Tensor labels,
                          CallSite site = CallSite::Current());

// The sum over the last dim of x.
Tensor SumOverLast(ModelBuilder& b, Tensor x, CallSite site = CallSite::Current());

// Adds the loss term `name`: the sum of `losses` times `weights`, which have the same dims.
// `weight` is the term's.
void LossTerm(ModelBuilder& b, absl::string_view name, Tensor losses, Tensor weights,
              double weight = 1, CallSite site = CallSite::Current());

// Adds the report `count`: the sum of `weights`.
void ReportCount(ModelBuilder& b, Tensor weights, CallSite site = CallSite::Current());

struct CrossEntropyOptions {
  double smoothing = 0;
  // The target that counts for nothing; nothing: all count, by the data input `weights`.
  absl::optional<int64_t> ignore;
};
// The loss `loss` of logits [batch, seq, vocab] against the data input `targets`, and the report
// `count`.
void CrossEntropyLoss(ModelBuilder& b, Tensor logits, const CrossEntropyOptions& options = {},
                      CallSite site = CallSite::Current());

}  // namespace mgc

#endif  // MGC_FRONTENDS_LOSSES_H_
