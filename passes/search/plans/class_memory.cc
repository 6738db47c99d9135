#include "passes/search/plans/class_memory.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

namespace mgc {
namespace {

class Holder {
 public:
  // All outlive it.
  Holder(const DraftProfile& draft, const PlanSpread& spread, size_t rank)
      : draft_(draft),
        spread_(spread),
        zero_(spread.config.zero),
        profile_(spread.profile),
        rank_(rank) {}

  MemoryUse Run() {
    const std::vector<StagePlace>& places = spread_.checked.placement.places;
    for (size_t s = 0; s < places.size(); ++s) {
      if (static_cast<size_t>(places[s].rank_class) != rank_) continue;
      for (const size_t layer : spread_.LayersOf(s)) AddLayer(layer);
    }
    for (const int64_t turn : gathered_of_turn_) use_.copies += turn;
    for (const int64_t turn : owed_of_turn_) use_.grads += turn;
    const LayerProfile& all = spread_.parts->ranks[rank_];
    use_.transient = GlobalBytes() + transient_;
    use_.boundaries = 2 * profile_.stream_bytes;
    use_.workspace = all.workspace_bytes;
    return use_;
  }

 private:
  // Beside those of the profile: what sums over more ranks make.
  // Loss and tokens are in one vector, the squares of gradients in another.
  int64_t GlobalBytes() const {
    const ParallelConfig& config = spread_.config;
    int64_t bytes = draft_.global_bytes;
    if (config.pp > 1) bytes += 2 * kSlotAlignment;  // a class's own, before they are packed
    const bool sums_loss = config.pp > 1 || spread_.checked.dp > 1;
    if (config.cp == 1 && sums_loss) bytes += kSlotAlignment;
    const bool sums_squares = config.pp > 1 || (zero_ > 0 && spread_.shares > 1);
    if (config.tp > 1 || !sums_squares) return bytes;
    int64_t params = 0;
    for (const LayerDraft& layer : draft_.layers) params += NumParams(layer);
    return bytes + AlignUp(params * static_cast<int64_t>(sizeof(double)));
  }

  // What a rank has of a value that is cut as parameters are.
  int64_t Piece(int64_t elements, int64_t element_bytes) const {
    return AlignUp((elements + spread_.shares - 1) / spread_.shares * element_bytes);
  }

  void AddLayer(size_t layer) {
    const LayerCalls& calls = *draft_.layers[layer].calls;
    transient_ = std::max({transient_, ForwardOf(calls, spread_).transient_bytes,
                           BackwardOf(calls, spread_).transient_bytes});
    gathered_ = owed_ = 0;
    for (const ParamSize& param : calls.params) {
      AddMaster(param);
      AddSums(param);
      AddCopy(param);
    }
    const bool is_head = layer + 1 == profile_.layers.size();
    if (is_head && draft_.tied.elements > 0) AddTied();
    // The embedding's number is -1: two neighbours differ in the last bit.
    gathered_of_turn_[layer & 1] = std::max(gathered_of_turn_[layer & 1], gathered_);
    owed_of_turn_[layer & 1] = std::max(owed_of_turn_[layer & 1], owed_);
  }

  void AddMaster(const ParamSize& param) {
    const int64_t piece = Piece(param.elements, param.element_bytes);
    use_.params += piece;
    use_.states += param.states * piece;
    if (zero_ == 1 && spread_.shares > 1) use_.grads += piece;  // of the sum over ranks
  }

  // Collected over micro-batches: whole, or in pieces that whole ones are summed into in turn.
  void AddSums(const ParamSize& param) {
    const int64_t whole = AlignUp(param.elements * param.element_bytes);
    const int64_t piece = Piece(param.elements, param.element_bytes);
    if (zero_ < 2 || spread_.shares == 1) {
      use_.grads += whole;
    } else {
      use_.grads += piece;
      owed_ += whole + piece;
    }
  }

  // What is gathered is made of pieces that stay beside it.
  void AddCopy(const ParamSize& param) {
    const bool is_cast = param.copy_element_bytes > 0;
    const int64_t bytes = is_cast ? param.copy_element_bytes : param.element_bytes;
    const int64_t whole = AlignUp(param.elements * bytes);
    const bool is_gathered = zero_ > 0 && spread_.shares > 1;
    if (!is_cast && !is_gathered) return;
    if (is_cast && is_gathered) use_.copies += Piece(param.elements, bytes);
    (is_gathered && spread_.GathersInTurn() ? gathered_ : use_.copies) += whole;
  }

  // The head has its own sum and copy of what it has in common with the embedding; on another rank,
  // all of it.
  void AddTied() {
    AddSums(draft_.tied);
    AddCopy(draft_.tied);
    if (rank_ > 0) AddMaster(draft_.tied);
  }

  static int64_t NumParams(const LayerDraft& layer) {
    return static_cast<int64_t>(layer.calls->params.size());
  }

  const DraftProfile& draft_;
  const PlanSpread& spread_;
  const int zero_;
  const ModelProfile& profile_;
  const size_t rank_;
  MemoryUse use_;
  int64_t transient_ = 0;
  int64_t gathered_ = 0;  // of a layer
  int64_t owed_ = 0;
  std::array<int64_t, 2> gathered_of_turn_ = {};
  std::array<int64_t, 2> owed_of_turn_ = {};
};

}  // namespace

MemoryUse ClassMemory(const DraftProfile& draft, const PlanSpread& spread, size_t rank) {
  return Holder(draft, spread, rank).Run();
}

}  // namespace mgc
