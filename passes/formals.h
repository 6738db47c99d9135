// Names of segments' base addresses.

#ifndef MGC_PASSES_FORMALS_H_
#define MGC_PASSES_FORMALS_H_

namespace mgc {

// What a formal of a segment stands for. Blocks are those of the call's layer; `tied_...` those of
// parameters that more than one layer uses; `grads:<kind>` those of the layer of that kind.
inline constexpr char kTransientFormal[] = "transient";
inline constexpr char kParamFormal[] = "params";
inline constexpr char kGradFormal[] = "grads";
inline constexpr char kStateFormal[] = "states";
inline constexpr char kFrameFormal[] = "frame";
inline constexpr char kInputFormal[] = "input";
inline constexpr char kOutputFormal[] = "output";
inline constexpr char kGradInputFormal[] = "grad_input";
inline constexpr char kGradOutputFormal[] = "grad_output";
inline constexpr char kTiedParamFormal[] = "tied_params";
inline constexpr char kTiedGradFormal[] = "tied_grads";
inline constexpr char kTiedStateFormal[] = "tied_states";
inline constexpr char kNormFormal[] = "norm";
inline constexpr char kGlobalFormal[] = "globals";

}  // namespace mgc

#endif  // MGC_PASSES_FORMALS_H_
