// Names that frontends, compiler, proof and trainer share: what a step is fed with, what it
// reports, and what belongs to a parameter.

#ifndef MGC_GRAPH_IR_STEP_NAMES_H_
#define MGC_GRAPH_IR_STEP_NAMES_H_

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "graph/types/attrs.h"

namespace mgc {

// Data inputs of a model.
inline constexpr char kTokensInput[] = "tokens";
inline constexpr char kTargetsInput[] = "targets";
inline constexpr char kWeightsInput[] = "weights";  // what each token counts

// Of one that is asked for the next token of samples: which row of each is meant, as ones among
// zeros; what it answers.
inline constexpr char kRowInput[] = "row";
// Where keys and values are kept: the row of the first token that a step is given; a 1 for the one
// token that it is given, and for the kept ones that it sees (SeenInput in graph/ir/results.h).
inline constexpr char kPlaceInput[] = "place";
inline constexpr char kSeesInput[] = "sees";
inline constexpr char kSeenInput[] = "seen";
inline constexpr char kLogitsResult[] = "logits";

// What a model reports of a micro-batch, beside its loss terms: the tokens that the loss sums over.
inline constexpr char kCountReport[] = "count";

// What a step reports. The first loss term goes by kLossReport, each other one by its own name; all
// are sums over the step divided by its tokens, without their weights.
inline constexpr char kLossReport[] = "loss";           // mean nats per token of the step
inline constexpr char kGradNormReport[] = "grad_norm";  // before clipping
inline constexpr char kTokenReport[] = "tokens";        // tokens of the step
// What makes sums of gradients means: 1 / tokens; where the loss is scaled, that over the scale.
inline constexpr char kGradFactorReport[] = "grad_factor";

// Scalars that a step's update is given, as far as its optimizers take them.
inline constexpr char kRateScalar[] = "lr";
inline constexpr char kDecayScalar[] = "decay";
inline constexpr char kBeta1Scalar[] = "beta1";
inline constexpr char kBeta2Scalar[] = "beta2";
inline constexpr char kEpsScalar[] = "eps";
inline constexpr char kLionBeta1Scalar[] = "lion_beta1";
inline constexpr char kLionBeta2Scalar[] = "lion_beta2";
inline constexpr char kSgdMomentumScalar[] = "sgd_momentum";
inline constexpr char kMuonMomentumScalar[] = "muon_momentum";
inline constexpr char kCorrection1Scalar[] = "correction1";
inline constexpr char kCorrection2Scalar[] = "correction2";
inline constexpr char kMaxNormScalar[] = "max_norm";

// Of a step that scales its loss (passes/graph/scale_loss.h): further scalars it is given, ...
inline constexpr char kMinScaleScalar[] = "min_scale";
inline constexpr char kScaleWindowScalar[] = "scale_window";
inline constexpr char kHysteresisScalar[] = "hysteresis";
// ... what it carries on to the next step, numbers all of them, ...
inline constexpr char kLossScale[] = "loss_scale";
inline constexpr char kGrowthCount[] = "loss_scale/growth";         // good steps in a row
inline constexpr char kHysteresisLeft[] = "loss_scale/hysteresis";  // overflows until it falls
inline constexpr char kAdamSteps[] = "adam_steps";                  // that were taken
inline constexpr const char* kCarriedNames[] = {kLossScale, kGrowthCount, kHysteresisLeft,
                                                kAdamSteps};
// ... and what it reports beside all others: the scale of the next step, and 1, or 0 where the
// gradient was not finite and nothing has been stepped.
inline constexpr char kLossScaleReport[] = "loss_scale";
inline constexpr char kFiniteReport[] = "finite";

// What reports call a collective, `f`, `g`, `gradient`, `loss`, ... (docs/glossary.md): attribute
// of collectives, and of the reshards that they are made from.
inline constexpr char kLabelAttr[] = "label";

// Attribute of a parameter, 1 unless it says otherwise: 0 keeps it as it is. A step has then no
// gradient of it, no states, and no share of the norm.
inline constexpr char kTrainAttr[] = "train";
inline bool IsTrained(const Attrs& of_param) { return of_param.Int(kTrainAttr, 1) != 0; }

// A parameter's sum of gradients, of several uses the first. What an optimizer keeps of it has
// names of its own (graph/ir/optimizers.h).
inline constexpr char kGradSuffix[] = "/grad";
inline std::string GradName(absl::string_view param) { return absl::StrCat(param, kGradSuffix); }

}  // namespace mgc

#endif  // MGC_GRAPH_IR_STEP_NAMES_H_
