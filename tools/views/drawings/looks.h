// What pictures of a plan have in common: colours, of Okabe and Ito's palette, which all eyes tell
// apart.

#ifndef MGC_TOOLS_VIEWS_DRAWINGS_LOOKS_H_
#define MGC_TOOLS_VIEWS_DRAWINGS_LOOKS_H_

namespace mgc {

inline constexpr char kPrepareColor[] = "#CC79A7";
inline constexpr char kForwardColor[] = "#56B4E9";
inline constexpr char kBackwardColor[] = "#E69F00";
inline constexpr char kUpdateColor[] = "#009E73";
inline constexpr char kCollectiveColor[] = "#F0E442";

// How an arrow looks; darker than the phases whose results it carries.
struct TransferLook {
  const char* color;
  const char* style;
};
inline TransferLook LookOfTransfer(bool forward) {
  return forward ? TransferLook{"#0072B2", "solid"} : TransferLook{"#D55E00", "dashed"};
}

}  // namespace mgc

#endif  // MGC_TOOLS_VIEWS_DRAWINGS_LOOKS_H_
