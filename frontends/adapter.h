// Low-rank adapters (Hu et al. 2021, LoRA): beside the product x W of a linear layer, which is kept
// as it is, stands (x A) B * alpha / rank, of two narrow weights that are trained.

#ifndef MGC_FRONTENDS_ADAPTER_H_
#define MGC_FRONTENDS_ADAPTER_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "frontends/builder.h"

namespace mgc {

// The dim between A and B, and what stands behind a linear layer's name in theirs.
inline constexpr char kAdapterDim[] = "adapter";
inline constexpr char kAdapterA[] = "lora_a";
inline constexpr char kAdapterB[] = "lora_b";

// Linear layers with one A, by their names below the layer: `attention.q`. They have the same
// input, and are built in this order: A has the name of the first.
using AdaptedLayers = std::vector<std::string>;

struct AdapterOptions {
  int64_t rank = 8;
  double alpha = 8;
  std::vector<AdaptedLayers> layers;

  double Scale() const { return alpha / static_cast<double>(rank); }

  // What is adapted at the path of a linear layer's weight: the layer as it stands above, and the
  // path of the one whose A it has.
  struct Place {
    std::string layer, owner;
  };
  absl::optional<Place> PlaceOf(const std::string& path) const;
};

// Whether a path, or what stands behind one of its dots, is `name`.
bool EndsInName(absl::string_view path, absl::string_view name);

// What one model that is built has of an adapter.
class Adapter {
 public:
  explicit Adapter(AdapterOptions options) : options_(std::move(options)) {}
  const AdapterOptions& options() const { return options_; }

  // The term of the linear layer whose scope is open, of input `x` that ends in the dims `in`, with
  // output dims `out`; empty where it has none. A [in..., adapter] starts normal, with the variance
  // of torch's linear layers, B [adapter, out...] as zeros: a model begins as it was.
  Tensor Term(ModelBuilder& b, Tensor x, const std::vector<std::string>& in,
              const std::vector<std::string>& out, CallSite site);

  // Of the layers in the options those that there were none of.
  std::vector<std::string> Unmet() const;

 private:
  struct Narrow {
    Tensor x, product;  // x A * alpha / rank
  };

  const AdapterOptions options_;
  std::map<std::string, Narrow> narrow_;  // by the path of A
  std::set<std::string> met_;
};

}  // namespace mgc

#endif  // MGC_FRONTENDS_ADAPTER_H_
