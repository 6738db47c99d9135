#include "graph/ops/reshape_rule.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/ops/op_helpers.h"

namespace mgc {
namespace {

// Factor names of every dim before and after, major first.
struct Sides {
  std::vector<std::vector<std::string>> from;
  std::vector<std::vector<std::string>> to;
};

// One side's next dim and what of it no factor covers yet.
struct Cursor {
  const std::vector<int64_t>& sizes;
  size_t dim = 0;
  int64_t rest = 1;
  void Open() { rest = dim < sizes.size() ? sizes[dim] : 1; }
  bool done() const { return dim >= sizes.size(); }
};

class Matcher {
 public:
  Matcher(const std::vector<int64_t>& from, const std::vector<int64_t>& to) : from_{from}, to_{to} {
    sides_.from.resize(from.size());
    sides_.to.resize(to.size());
  }

  Sides Run() {
    from_.Open();
    to_.Open();
    while (!from_.done() || !to_.done()) Step();
    return std::move(sides_);
  }

 private:
  void Step() {
    const bool both = !from_.done() && !to_.done();
    if (both && from_.rest == to_.rest) return Share(from_.rest);
    // A dim of one element stands for itself when nothing matches it.
    if (!from_.done() && from_.rest == 1) return Alone(&from_, &sides_.from);
    if (!to_.done() && to_.rest == 1) return Alone(&to_, &sides_.to);
    if (from_.rest % to_.rest == 0) return Share(to_.rest);
    if (to_.rest % from_.rest == 0) return Share(from_.rest);
    Block();
  }

  std::string Name() { return absl::StrCat("f", next_++); }

  void Share(int64_t size) {
    const std::string name = Name();
    sides_.from[from_.dim].push_back(name);
    sides_.to[to_.dim].push_back(name);
    Advance(&from_, size);
    Advance(&to_, size);
  }

  void Alone(Cursor* cursor, std::vector<std::vector<std::string>>* side) {
    (*side)[cursor->dim].push_back(Name());
    Advance(cursor, 1);
  }

  static void Advance(Cursor* cursor, int64_t size) {
    cursor->rest /= size;
    if (cursor->rest != 1) return;
    ++cursor->dim;
    cursor->Open();
  }

  // Gives up sharing from here to where the products agree again: every dim there, those begun
  // included, is one factor that stays whole.
  void Block() {
    int64_t left = from_.rest;
    int64_t right = to_.rest;
    size_t i = from_.dim;
    size_t j = to_.dim;
    while (left != right) {
      if (left < right) {
        left *= from_.sizes[++i];
      } else {
        right *= to_.sizes[++j];
      }
    }
    Close(&from_, i, &sides_.from);
    Close(&to_, j, &sides_.to);
  }

  // Ends `cursor`'s dims up to `last`. What is left of a dim that has shared factors is a last,
  // whole factor of it.
  void Close(Cursor* cursor, size_t last, std::vector<std::vector<std::string>>* side) {
    for (; cursor->dim <= last; ++cursor->dim) {
      (*side)[cursor->dim].push_back(absl::StrCat(Name(), "!"));
    }
    cursor->Open();
  }

  Cursor from_;
  Cursor to_;
  Sides sides_;
  int next_ = 0;
};

std::string SideText(const std::vector<std::vector<std::string>>& side) {
  std::string text;
  for (const std::vector<std::string>& dim : side) {
    absl::StrAppend(&text, text.empty() ? "" : " ", dim.size() > 1 ? "(" : "",
                    absl::StrJoin(dim, " "), dim.size() > 1 ? ")" : "");
  }
  return text;
}

// Position of the result dim that is exactly operand dim `dim`, or -1.
int SameDim(const Sides& sides, size_t dim) {
  if (sides.from[dim].size() != 1) return -1;
  for (size_t j = 0; j < sides.to.size(); ++j) {
    if (sides.to[j] == sides.from[dim]) return static_cast<int>(j);
  }
  return -1;
}

}  // namespace

absl::Status CheckReshape(const OpUse& use) {
  const std::vector<int64_t> sizes = use.attrs.Ints("sizes");
  const TensorType& type = *use.operands[0];
  const bool named = use.attrs.Find("names") != nullptr;
  if (named && SplitDimNames(use.attrs.Text("names")).size() != sizes.size()) {
    return Refuse("reshape", 1, "needs one name for each size");
  }
  int64_t rest = type.NumElements();
  for (int64_t size : sizes) {
    if (size < 1) return Refuse("reshape", 3, absl::StrCat("size ", size, " is below 1"));
    if (rest % size != 0) rest = 0;
    rest /= size;
  }
  if (rest != 1) {
    return Refuse("reshape", 2,
                  absl::StrCat(type.ToString(), " has other than ", absl::StrJoin(sizes, " x "),
                               " elements"));
  }
  const Sides sides = Matcher(SizesOf(type), sizes).Run();
  for (size_t i = 0; i < type.dims.size(); ++i) {
    if (type.dims[i].multiple != 1 && SameDim(sides, i) < 0) {
      return Refuse(
          "reshape", 4,
          absl::StrCat("dim ", i, " of ", type.ToString(), " is padded and must stay alone"));
    }
  }
  return absl::OkStatus();
}

absl::Status InferReshape(const OpUse& use, std::vector<TensorType>* results) {
  const std::vector<int64_t> sizes = use.attrs.Ints("sizes");
  const bool named = use.attrs.Find("names") != nullptr;
  TensorType type{use.operands[0]->dtype, {}};
  for (int64_t size : sizes) type.dims.push_back({size, "", 1});
  const Sides sides = Matcher(SizesOf(*use.operands[0]), sizes).Run();
  for (size_t i = 0; i < sides.from.size(); ++i) {
    const int j = SameDim(sides, i);
    if (j >= 0) type.dims[static_cast<size_t>(j)] = use.operands[0]->dims[i];
  }
  const std::vector<std::string> names = SplitDimNames(use.attrs.Text("names"));
  for (size_t j = 0; named && j < names.size(); ++j) type.dims[j].name = names[j];
  results->push_back(std::move(type));
  return absl::OkStatus();
}

std::string ReshapeRule(const OpUse& use) {
  const std::vector<int64_t> sizes = use.attrs.Ints("sizes");
  const Sides sides = Matcher(SizesOf(*use.operands[0]), sizes).Run();
  return absl::StrCat(SideText(sides.from), " -> ", SideText(sides.to));
}

}  // namespace mgc
