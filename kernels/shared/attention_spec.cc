#include "kernels/shared/attention_spec.h"

#include <vector>

#include "graph/base/random.h"

namespace mgc {

AttentionShape AttentionShapeOf(const KernelSpec& spec, size_t q, size_t k) {
  const std::vector<int64_t>& queries = spec.input_shapes[q];
  const std::vector<int64_t>& keys = spec.input_shapes[k];
  AttentionShape s;
  s.batch = queries[0];
  s.queries = queries[1];
  s.heads = queries[2];
  s.dim = queries[3];
  s.keys = keys[1];
  s.kv_heads = keys[2];
  s.scale = static_cast<float>(spec.attrs.Real("scale"));
  if (spec.attrs.Find("window") != nullptr) s.window = spec.attrs.Int("window");
  if (spec.attrs.Find("cap") != nullptr) s.cap = static_cast<float>(spec.attrs.Real("cap"));
  if (spec.attrs.Find("causal") != nullptr) s.causal = spec.attrs.Int("causal") != 0;
  return s;
}

AttentionPositions PositionsOf(const KernelRun& run, int at, bool segments) {
  AttentionPositions positions = {In<int64_t>(run, at), In<int64_t>(run, at + 1)};
  if (segments) {
    positions.query_segments = In<int64_t>(run, at + 2);
    positions.key_segments = In<int64_t>(run, at + 3);
  }
  return positions;
}

AttentionDropout AttentionDropoutOf(const KernelSpec& spec) {
  AttentionDropout dropout;
  dropout.p = spec.attrs.Real("p");
  dropout.stream = {spec.seed, StreamOf(spec.attrs.Text("key"))};
  dropout.query = WholeSize(spec, "t");
  dropout.head = dropout.query * WholeSize(spec, "s");
  dropout.kv_head = dropout.head * WholeSize(spec, "g");
  dropout.batch = dropout.kv_head * WholeSize(spec, "k");
  const auto begin = [&spec](const char* factor) {
    return static_cast<uint64_t>(PieceNamed(spec, factor).begin);
  };
  dropout.base = begin("b") * dropout.batch + begin("k") * dropout.kv_head +
                 begin("g") * dropout.head + begin("s") * dropout.query + begin("t");
  return dropout;
}

uint64_t SampleStride(const KernelSpec& spec, const AttentionDropout& dropout) {
  return BatchFactor(spec) == spec.rule.Find("b") ? dropout.batch : 0;
}

}  // namespace mgc
