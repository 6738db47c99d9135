#include "frontends/pieces/piece_library.h"

#include <sentencepiece_processor.h>

namespace mgc {
namespace {

std::string TextOf(const sentencepiece::util::Status& status) {
  return status.ok() ? "" : status.ToString();
}

}  // namespace

PieceLibrary::PieceLibrary()
    : processor_(std::make_unique<sentencepiece::SentencePieceProcessor>()) {}

PieceLibrary::~PieceLibrary() = default;

std::string PieceLibrary::Load(std::string_view model) {
  return TextOf(processor_->LoadFromSerializedProto(model));
}

int PieceLibrary::size() const { return processor_->GetPieceSize(); }

std::optional<int> PieceLibrary::Find(std::string_view piece) const {
  const int id = processor_->PieceToId(piece);  // that of unknown pieces where there is none
  if (id < 0 || id >= size() || processor_->IdToPiece(id) != piece) return std::nullopt;
  return id;
}

std::optional<int> PieceLibrary::end() const {
  const int id = processor_->eos_id();
  return id >= 0 && id < size() ? std::optional<int>(id) : std::nullopt;
}

std::string PieceLibrary::Encode(std::string_view text, std::vector<int>* ids) const {
  return TextOf(processor_->Encode(text, ids));
}

std::string PieceLibrary::Decode(const std::vector<int>& ids, std::string* text) const {
  return TextOf(processor_->Decode(ids, text));
}

}  // namespace mgc
