// The iteration by which Muon makes a matrix orthogonal (Jordan et al., Muon, 2024):
//
//   x = d / (|d| + eps), |d| the Frobenius norm; then so many times
//   x = A x + (B g + C g²) x, g = x xᵀ
//
// It moves singular values into about [0.7, 1.2] and takes few steps to do so; it does not converge
// to 1. With fewer columns than rows g = xᵀ x from the right comes to the same.

#ifndef MGC_GRAPH_IR_NEWTON_SCHULZ_H_
#define MGC_GRAPH_IR_NEWTON_SCHULZ_H_

namespace mgc {

inline constexpr int kNewtonSchulzSteps = 5;
inline constexpr double kNewtonSchulzEps = 1e-7;
inline constexpr double kNewtonSchulzA = 3.4445;
inline constexpr double kNewtonSchulzB = -4.7750;
inline constexpr double kNewtonSchulzC = 2.0315;

}  // namespace mgc

#endif  // MGC_GRAPH_IR_NEWTON_SCHULZ_H_
