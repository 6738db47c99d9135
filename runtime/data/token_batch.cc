#include "runtime/data/token_batch.h"

#include <string>
#include <variant>

#include "graph/plan/data_input.h"
#include "graph/types/sharding.h"

namespace mgc {
namespace {

bool LoadsText(const Plan& plan, const Segment& segment, const Instr& instr) {
  const AttrValue* name = instr.attrs.Find("name");
  if (instr.kind != InstrKind::kLoad || name == nullptr) return false;
  const TensorType& type = segment.slots[static_cast<size_t>(instr.outputs[0])].type;
  return IsOfText(FeedOf(std::get<std::string>(*name), type, plan.seq_length));
}

void AddTextSlots(const Plan& plan, const std::vector<Chunk>& chunks,
                  std::vector<const Slot*>* slots) {
  for (const Chunk& chunk : chunks) {
    for (const std::vector<Call>* calls : ListsOf(chunk)) {
      for (const Call& call : *calls) {
        const Segment& segment = plan.segments[static_cast<size_t>(call.segment)];
        for (const Instr& instr : segment.instrs) {
          if (!LoadsText(plan, segment, instr)) continue;
          slots->push_back(&segment.slots[static_cast<size_t>(instr.outputs[0])]);
        }
      }
    }
  }
}

}  // namespace

TokenBatch::TokenBatch(absl::Span<const int64_t> rows, int64_t batch_size, int64_t seq_length)
    : stride_(seq_length + 1),
      places_(static_cast<size_t>(batch_size), -1),
      read_(static_cast<size_t>(batch_size), false),
      tokens_(rows.size() * static_cast<size_t>(stride_)) {
  int64_t place = 0;
  for (const int64_t row : rows) {
    places_[static_cast<size_t>(row)] = place;
    place += stride_;
  }
}

void TokenBatch::Read(const TokenDataset& text, int64_t row, int64_t sample) {
  const auto index = static_cast<size_t>(row);
  const auto to = absl::MakeSpan(tokens_).subspan(static_cast<size_t>(places_[index]),
                                                  static_cast<size_t>(stride_));
  read_[index] = text.ReadSample(sample, 0, /*vocabulary=*/0, to).ok();
}

void TokenBatch::Clear() { read_.assign(read_.size(), false); }

absl::Span<const int32_t> TokenBatch::Row(int64_t row) const {
  const auto index = static_cast<size_t>(row);
  if (row < 0 || index >= read_.size() || !read_[index]) return {};
  return absl::MakeConstSpan(tokens_).subspan(static_cast<size_t>(places_[index]),
                                              static_cast<size_t>(stride_));
}

std::vector<int64_t> TextRowsOf(const Plan& plan, int64_t begin, int64_t end) {
  std::vector<std::vector<const Slot*>> slots;  // of each class
  for (const PlanClass& plan_class : plan.classes) {
    slots.emplace_back();
    AddTextSlots(plan, plan_class.chunks, &slots.back());
    AddTextSlots(plan, plan_class.eval_chunks, &slots.back());
  }
  const int64_t rows = plan.global_batch_size / plan.num_micro_batches;
  std::vector<bool> taken(static_cast<size_t>(rows), false);
  for (int64_t rank = begin; rank < end; ++rank) {
    for (const Slot* slot : slots[static_cast<size_t>(ClassOfRank(plan.mesh, rank))]) {
      const DimPiece piece = PieceOf(slot->type.dims[0], slot->sharding.dims[0], plan.mesh, rank);
      for (int64_t i = 0; i < piece.valid; ++i) {
        taken[static_cast<size_t>(piece.begin + i)] = true;
      }
    }
  }
  std::vector<int64_t> all;
  for (int64_t row = 0; row < plan.global_batch_size; ++row) {
    if (taken[static_cast<size_t>(row % rows)]) all.push_back(row);
  }
  return all;
}

}  // namespace mgc
