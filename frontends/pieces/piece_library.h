// SentencePiece's library behind types of the standard library alone: its header has a namespace
// absl of its own, so that no file includes both.

#ifndef MGC_FRONTENDS_PIECES_PIECE_LIBRARY_H_
#define MGC_FRONTENDS_PIECES_PIECE_LIBRARY_H_

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sentencepiece {
class SentencePieceProcessor;
}  // namespace sentencepiece

namespace mgc {

// A model. What returns text returns what went wrong, empty if nothing. Any number of threads once
// it is loaded.
class PieceLibrary {
 public:
  PieceLibrary();
  ~PieceLibrary();
  PieceLibrary(const PieceLibrary&) = delete;
  PieceLibrary& operator=(const PieceLibrary&) = delete;

  // The content of a tokenizer.model.
  std::string Load(std::string_view model);

  int size() const;
  // The piece that is written like this.
  std::optional<int> Find(std::string_view piece) const;
  // The model's end of a sentence.
  std::optional<int> end() const;
  std::string Encode(std::string_view text, std::vector<int>* ids) const;
  // Ids below size().
  std::string Decode(const std::vector<int>& ids, std::string* text) const;

 private:
  std::unique_ptr<sentencepiece::SentencePieceProcessor> processor_;
};

}  // namespace mgc

#endif  // MGC_FRONTENDS_PIECES_PIECE_LIBRARY_H_
