// Quantized weights: whole numbers of i8 in the place of a parameter, and a scale for each channel.

#ifndef MGC_GRAPH_WEIGHTS_QUANTIZED_H_
#define MGC_GRAPH_WEIGHTS_QUANTIZED_H_

namespace mgc {

// What becomes of a parameter `w`: `w.int8`, of its shape, and `w.scale`, of the dims that count
// its channels. Files hold `w`, of which the whole numbers are made when they are read: w of a
// channel is as near to number times scale as numbers from -127 to 127 allow, where the scale is
// the largest magnitude of the channel over 127.
inline constexpr char kQuantizedSuffix[] = ".int8";
inline constexpr char kScaleSuffix[] = ".scale";
inline constexpr float kMostQuantized = 127;

// Attribute of `w.int8`: the first of its dims that count channels, which follow each other. There
// are as many as the scale has.
inline constexpr char kChannelsAttr[] = "channels";

}  // namespace mgc

#endif  // MGC_GRAPH_WEIGHTS_QUANTIZED_H_
