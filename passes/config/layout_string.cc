#include "passes/config/layout_string.h"

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "graph/base/status.h"

namespace mgc {
namespace {

// Writes a layout out, one item after the other.
class LayoutWriter {
 public:
  explicit LayoutWriter(absl::string_view text) : text_(text) {}

  absl::StatusOr<std::string> WriteOut() {
    std::string out;
    MGC_RETURN_IF_ERROR(Items(/*in_group=*/false, &out));
    return out;
  }

 private:
  absl::Status Error(absl::string_view what) const {
    return absl::InvalidArgumentError(
        absl::StrCat("layout '", text_.substr(0, 200), "', column ", position_ + 1, ": ", what));
  }
  void SkipCommas() {
    while (position_ < text_.size() && text_[position_] == ',') ++position_;
  }
  bool AtEnd() {
    SkipCommas();
    return position_ == text_.size();
  }

  absl::Status Items(bool in_group, std::string* out) {
    while (!AtEnd() && !(in_group && text_[position_] == ')')) {
      MGC_RETURN_IF_ERROR(Item(in_group, out));
    }
    return absl::OkStatus();
  }

  absl::Status Item(bool in_group, std::string* out) {
    const char letter = text_[position_];
    std::string unit(1, letter);
    const bool is_group = letter == '(';
    if (is_group) {
      if (in_group) return Error("groups do not nest");
      MGC_RETURN_IF_ERROR(Group(&unit));
    } else if (absl::string_view("EtmL|").find(letter) == absl::string_view::npos) {
      return Error(absl::StrCat("'", text_.substr(position_, 1),
                                "' is not one of E, t, m, L, |, ( )*n, *n"));
    } else {
      ++position_;
    }
    int64_t count = 1;
    if (!AtEnd() && text_[position_] == '*') {
      MGC_RETURN_IF_ERROR(Count(&count));
    } else if (is_group) {
      return Error("a group needs a count, as in (tt|)*2");
    }
    if (count * static_cast<int64_t>(unit.size()) + static_cast<int64_t>(out->size()) >
        kMaxLayoutLetters) {
      return Error(absl::StrCat("more than ", kMaxLayoutLetters, " letters written out"));
    }
    for (int64_t i = 0; i < count; ++i) out->append(unit);
    return absl::OkStatus();
  }

  absl::Status Group(std::string* unit) {
    ++position_;
    unit->clear();
    MGC_RETURN_IF_ERROR(Items(/*in_group=*/true, unit));
    if (AtEnd()) return Error("the group is not closed");
    ++position_;
    return unit->empty() ? Error("the group is empty") : absl::OkStatus();
  }

  absl::Status Count(int64_t* count) {
    ++position_;
    SkipCommas();
    const size_t first = position_;
    *count = 0;
    while (position_ < text_.size() &&
           absl::ascii_isdigit(static_cast<unsigned char>(text_[position_]))) {
      *count = *count * 10 + (text_[position_] - '0');
      if (*count > kMaxLayoutLetters) return Error("the count is too large");
      ++position_;
    }
    return position_ == first ? Error("a count must follow '*'") : absl::OkStatus();
  }

  const absl::string_view text_;
  size_t position_ = 0;
};

}  // namespace

absl::StatusOr<std::vector<std::string>> ParseLayoutString(absl::string_view layout) {
  MGC_ASSIGN_OR_RETURN(const std::string letters, LayoutWriter(layout).WriteOut());
  return std::vector<std::string>(absl::StrSplit(letters, '|'));
}

}  // namespace mgc
