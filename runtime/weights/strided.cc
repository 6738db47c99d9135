#include "runtime/weights/strided.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/types/tensor_type.h"
#include "runtime/weights/weight_types.h"

namespace mgc {
namespace {

using Digit = StridedView::Digit;

constexpr int64_t kPanelValues = int64_t{1} << 22;
constexpr int64_t kReadAtOnce = int64_t{1} << 18;  // values

// Those that count on where others end are one with them, and those of one element say nothing.
std::vector<Digit> Joined(absl::Span<const Digit> digits) {
  std::vector<Digit> joined;
  for (const Digit& digit : digits) {
    if (digit.size == 1) continue;
    if (!joined.empty() && joined.back().stride == digit.stride * digit.size) {
      joined.back() = {joined.back().size * digit.size, digit.stride};
    } else {
      joined.push_back(digit);
    }
  }
  return joined;
}

int64_t PlaceOf(absl::Span<const Digit> digits, int64_t number) {
  int64_t place = 0;
  for (size_t d = digits.size(); d-- > 0;) {
    place += number % digits[d].size * digits[d].stride;
    number /= digits[d].size;
  }
  return place;
}

}  // namespace

ParameterPart AsStored(const std::string& name, const std::vector<int64_t>& shape) {
  return {name, shape, {0, {{NumElements(shape), 1}}}, 0};
}

StridedGrid::StridedGrid(const StridedView& view) : begin_(view.begin) {
  const std::vector<Digit> digits = Joined(view.digits);
  const auto along = std::find_if(digits.begin(), digits.end(),
                                  [](const Digit& digit) { return digit.stride == 1; });
  outer_.assign(digits.begin(), along);
  if (along == digits.end()) return;
  rows_ = along->size;
  inner_.assign(along + 1, digits.end());
  for (const Digit& digit : inner_) columns_ *= digit.size;
}

int64_t StridedGrid::Place(int64_t outer, int64_t row, int64_t column) const {
  return begin_ + PlaceOf(outer_, outer) + row + PlaceOf(inner_, column);
}

namespace {

// Collects panels, each row's behind those above it.
class PanelStacker {
 public:
  PanelStacker(int64_t rows, int64_t most) : rows_(rows), most_(most) {}

  // Columns [left, right) of `count` lines, of which outer and row numbers are one.
  void Add(int64_t line, int64_t count, int64_t left, int64_t right) {
    if (left == right) return;
    const int64_t highest = std::max<int64_t>(most_ / (right - left), 1);
    while (count > 0) {
      const int64_t outer = line / rows_;
      const int64_t row = line % rows_;
      size_t& last = last_.try_emplace({left, right}, kNone).first->second;
      if (last != kNone) {
        Panel& above = panels_[last];
        const int64_t taken = std::min({count, rows_ - row, highest - (above.bottom - above.top)});
        if (above.outer == outer && above.bottom == row && taken > 0) {
          above.bottom += taken;
          line += taken;
          count -= taken;
          continue;
        }
      }
      const int64_t taken = std::min({count, rows_ - row, highest});
      last = panels_.size();
      panels_.push_back({outer, row, row + taken, left, right});
      line += taken;
      count -= taken;
    }
  }

  std::vector<Panel> Take() {
    std::sort(panels_.begin(), panels_.end(), [](const Panel& a, const Panel& b) {
      return std::make_tuple(a.outer, a.top, a.left) < std::make_tuple(b.outer, b.top, b.left);
    });
    return std::move(panels_);
  }

 private:
  static constexpr size_t kNone = ~size_t{0};
  const int64_t rows_;
  const int64_t most_;
  std::vector<Panel> panels_;
  std::map<std::pair<int64_t, int64_t>, size_t> last_;  // by columns: the panel that may grow
};

}  // namespace

std::vector<Panel> PanelsOf(const StridedGrid& grid, absl::Span<const ElementRange> wanted,
                            int64_t most) {
  PanelStacker stacker(grid.rows(), most);
  const int64_t columns = grid.columns();
  for (const ElementRange& range : wanted) {
    int64_t line = range.begin / columns;
    const int64_t left = range.begin % columns;
    const int64_t last = range.end / columns;
    const int64_t right = range.end % columns;
    if (line == last) {
      stacker.Add(line, 1, left, right);
      continue;
    }
    if (left > 0) stacker.Add(line++, 1, left, columns);
    stacker.Add(line, last - line, 0, columns);
    stacker.Add(last, 1, 0, right);
  }
  return stacker.Take();
}

absl::Status ForEachFileRun(
    const StridedGrid& grid, const Panel& panel,
    absl::FunctionRef<absl::Status(int64_t place, int64_t column, int64_t count)> fn) {
  for (int64_t column = panel.left; column < panel.right; ++column) {
    MGC_RETURN_IF_ERROR(
        fn(grid.Place(panel.outer, panel.top, column), column, panel.bottom - panel.top));
  }
  return absl::OkStatus();
}

StridedReader::StridedReader(const PlacedPart& from, const std::vector<ElementRange>& wanted)
    : from_(from), grid_(from.part->view), panels_(PanelsOf(grid_, wanted, kPanelValues)) {}

absl::Status StridedReader::ReadRun(int64_t place, absl::Span<float> values) {
  const int64_t each = BytesOf(from_.type);
  std::string bytes(values.size() * static_cast<size_t>(each), '\0');
  MGC_RETURN_IF_ERROR(from_.file->Read(from_.offset + place * each, absl::MakeSpan(bytes)));
  bytes_read_ += static_cast<int64_t>(bytes.size());
  Decode(bytes, from_.type, values);
  if (from_.part->added == 0) return absl::OkStatus();  // a zero keeps its sign
  for (float& value : values) value += from_.part->added;
  return absl::OkStatus();
}

absl::Status StridedReader::Load(Loaded* loaded) {
  const Panel& panel = loaded->panel;
  const int64_t width = panel.width();
  loaded->values.resize(static_cast<size_t>(panel.values()));
  // Runs that meet in the file are read at once.
  std::vector<float> run;
  int64_t begin = 0;
  std::vector<int64_t> columns;
  const int64_t height = panel.bottom - panel.top;
  const auto flush = [&]() -> absl::Status {
    if (columns.empty()) return absl::OkStatus();
    run.resize(columns.size() * static_cast<size_t>(height));
    MGC_RETURN_IF_ERROR(ReadRun(begin, absl::MakeSpan(run)));
    size_t at = 0;
    for (int64_t column : columns) {
      float* to = &loaded->values[static_cast<size_t>(column - panel.left)];
      for (int64_t row = 0; row < height; ++row, to += width) *to = run[at++];
    }
    columns.clear();
    return absl::OkStatus();
  };
  MGC_RETURN_IF_ERROR(ForEachFileRun(
      grid_, panel, [&](int64_t place, int64_t column, int64_t count) -> absl::Status {
        const auto known = static_cast<int64_t>(columns.size()) * count;
        if (place != begin + known || known + count > kReadAtOnce) {
          MGC_RETURN_IF_ERROR(flush());
          begin = place;
        }
        columns.push_back(column);
        return absl::OkStatus();
      }));
  return flush();
}

StridedReader::Loaded* StridedReader::Find(int64_t line, int64_t column) {
  const auto first = [&](const Panel& panel) { return panel.outer * grid_.rows() + panel.top; };
  const auto end = [&](const Panel& panel) { return panel.outer * grid_.rows() + panel.bottom; };
  if (line < line_) {
    live_.clear();
    next_ = 0;
  }
  if (line != line_ || next_ == 0) {
    live_.erase(std::remove_if(live_.begin(), live_.end(),
                               [&](const Loaded& l) { return end(l.panel) <= line; }),
                live_.end());
    for (; next_ < panels_.size() && first(panels_[next_]) <= line; ++next_) {
      if (end(panels_[next_]) > line) live_.push_back({panels_[next_], {}});
    }
  }
  line_ = line;
  for (Loaded& loaded : live_) {
    if (loaded.panel.left <= column && column < loaded.panel.right) return &loaded;
  }
  return nullptr;
}

absl::Status StridedReader::Read(int64_t begin, absl::Span<float> values) {
  while (!values.empty()) {
    const int64_t line = begin / grid_.columns();
    const int64_t column = begin % grid_.columns();
    Loaded* const loaded = Find(line, column);
    if (loaded == nullptr)
      return absl::InternalError(absl::StrCat("element ", begin, " is no wanted one"));
    if (loaded->values.empty()) MGC_RETURN_IF_ERROR(Load(loaded));
    const Panel& panel = loaded->panel;
    const int64_t at =
        (line - panel.outer * grid_.rows() - panel.top) * panel.width() + column - panel.left;
    const bool whole_rows = panel.width() == grid_.columns();
    const int64_t there = whole_rows ? panel.values() - at : panel.right - column;
    const int64_t count = std::min(there, static_cast<int64_t>(values.size()));
    std::copy_n(loaded->values.begin() + at, count, values.begin());
    values.remove_prefix(static_cast<size_t>(count));
    begin += count;
  }
  return absl::OkStatus();
}

}  // namespace mgc
