#include "passes/config/strategy_text.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/text/block_printer.h"
#include "graph/text/lexer.h"
#include "graph/text/token_reader.h"

namespace mgc {
namespace {

constexpr std::array<absl::string_view, 3> kAxes = {"tp", "cp", "dp"};

std::string NamesText(const std::vector<std::string>& names, absl::string_view between) {
  return absl::StrJoin(names, between, [](std::string* out, const std::string& name) {
    absl::StrAppend(out, name.empty() ? "*" : NameText(name));
  });
}

std::string AxesText(const std::vector<std::string>& axes) {
  return axes.empty() ? "-" : NamesText(axes, "*");
}

std::string ScopeText(const std::string& scope) {
  return scope.empty() ? "" : absl::StrCat(" in ", QuotedText(scope));
}

std::string WhenText(StrategyCondition when) {
  return when == StrategyCondition::kAlways ? "" : absl::StrCat(" when ", WordOf(when));
}

std::string RowText(const StrategyRowSpec& row) {
  const std::string pattern =
      row.pattern.empty() ? "*" : absl::StrCat("(", NamesText(row.pattern, ", "), ")");
  const std::string dims = absl::StrJoin(row.dims, ", ", [](std::string* out, const DimAxes& dim) {
    absl::StrAppend(out, NameText(dim.dim), " -> ", AxesText(dim.axes));
  });
  return absl::StrCat("row ", pattern, ScopeText(row.scope), row.home ? " home" : "",
                      WhenText(row.when), dims.empty() ? "" : absl::StrCat(" { ", dims, " }"));
}

// Whether two axes are the same or one is a part of the other: tp holds tp.0.
bool Overlap(absl::string_view a, absl::string_view b) {
  const auto holds = [](absl::string_view axis, absl::string_view part) {
    return axis == part.substr(0, part.find('.'));
  };
  return a == b || holds(a, b) || holds(b, a);
}

constexpr std::initializer_list<StrategyCondition> kConditions = {
    StrategyCondition::kSequenceParallel, StrategyCondition::kZero, StrategyCondition::kZero2,
    StrategyCondition::kZero3};

// Whether states of the same parameters are stored over the same axes as gradients or parameters.
bool HasItsStates(const std::vector<StoreSpec>& before, const StoreSpec& store) {
  return store.kind == StoredKind::kStates ||
         std::any_of(before.begin(), before.end(), [&](const StoreSpec& other) {
           return other.kind == StoredKind::kStates && other.scope == store.scope &&
                  other.axes == store.axes;
         });
}

std::string MissingStatesOf(const StoreSpec& store) {
  StoreSpec states = store;
  states.kind = StoredKind::kStates;
  states.when = StrategyCondition::kAlways;
  return absl::StrCat(WordOf(store.kind), " are stored in the pieces of their states: `",
                      StoreText(states), "`, if need be with a condition, comes before");
}

class StrategyReader {
 public:
  explicit StrategyReader(TokenReader* reader) : reader_(reader) {}

  bool Read(StrategySpec* out) {
    if (!reader_->Accept("strategy")) return reader_->FailExpecting("`strategy`");
    if (!reader_->ExpectSymbol("the name of the strategy, `@name`", &out->name)) return false;
    if (!reader_->Expect("{")) return false;
    bool complete = true;
    while (!reader_->At("}") && !reader_->AtEnd()) {
      const size_t begin = reader_->position();
      if (ReadLine(out)) continue;
      complete = false;
      reader_->SkipLine(begin);
    }
    return reader_->Expect("}") && complete;
  }

 private:
  bool ReadLine(StrategySpec* out) {
    const TextPlace place = reader_->place();
    if (reader_->Accept("split")) return ReadSplit(out);
    if (reader_->Accept("gather")) return ReadGather(out);
    if (reader_->Accept("uneven")) return ReadDims("uneven", &out->uneven);
    if (reader_->Accept("row")) return ReadRow(out) && IsNew(place, RowText(out->rows.back()));
    if (reader_->Accept("store")) return ReadStore(out);
    return reader_->FailExpecting("`split`, `gather`, `uneven`, `row`, `store` or `}`");
  }

  bool ReadSplit(StrategySpec* out) {
    AxisSplit split;
    const TextPlace place = reader_->place();
    if (!ReadAxis(&split.axis)) return false;
    const bool in_groups = reader_->Accept("in");
    if (!reader_->Expect(in_groups ? "zero_groups" : "by")) return false;
    if (!in_groups && !ReadDim(&split.dim)) return false;
    if (!IsNew(place, absl::StrCat("split ", split.axis))) return false;
    if (absl::StrContains(split.axis, '.')) {
      return FailAt(place, "strategy_c1", "a part of an axis is not split again");
    }
    for (const char* part : {".0", ".1"}) parts_.push_back(split.axis + part);
    out->splits.push_back(std::move(split));
    return true;
  }

  bool ReadGather(StrategySpec* out) {
    GatherSpec gather;
    if (!ReadDims("gather", &gather.dims) ||
        !ReadWord({GatherTaken::kSilent, GatherTaken::kNote, GatherTaken::kError}, &gather.taken)) {
      return false;
    }
    out->gathers.push_back(std::move(gather));
    return true;
  }

  // Dims, of each of which `word` is said once.
  bool ReadDims(absl::string_view word, std::vector<std::string>* out) {
    do {
      const TextPlace place = reader_->place();
      if (!ReadDim(&out->emplace_back())) return false;
      if (!IsNew(place, absl::StrCat(word, " ", out->back()))) return false;
    } while (reader_->Accept(","));
    return true;
  }

  bool ReadRow(StrategySpec* out) {
    StrategyRowSpec row;
    if (!ReadPattern(&row) || !ReadScope(&row.scope)) return false;
    row.home = reader_->Accept("home");
    if (!ReadWhen(&row.when)) return false;
    if (reader_->Accept("{")) {
      std::set<std::string> dims;
      do {
        row.dims.emplace_back();
        if (!ReadDimAxes(row.pattern, &dims, &row.dims.back())) return false;
      } while (reader_->Accept(","));
      if (!reader_->Expect("}")) return false;
    } else if (!row.home) {
      return reader_->FailMissing("`{` and the axes of a dim");
    }
    out->rows.push_back(std::move(row));
    return true;
  }

  bool ReadPattern(StrategyRowSpec* out) {
    if (reader_->Accept("*")) return true;
    if (!reader_->Accept("(")) return reader_->FailMissing("`*` or `(` and the names of dims");
    do {
      out->pattern.emplace_back();
      if (!reader_->Accept("*") && !ReadDim(&out->pattern.back())) return false;
    } while (reader_->Accept(","));
    return reader_->Expect(")");
  }

  bool ReadDimAxes(const std::vector<std::string>& pattern, std::set<std::string>* dims,
                   DimAxes* out) {
    const TextPlace place = reader_->place();
    if (!ReadDim(&out->dim)) return false;
    if (!dims->insert(out->dim).second) {
      return FailAt(place, "strategy_c2", absl::StrCat("dim ", NameText(out->dim), " twice"));
    }
    const auto names = [&](const std::string& name) { return name.empty() || name == out->dim; };
    if (!pattern.empty() && std::none_of(pattern.begin(), pattern.end(), names)) {
      return FailAt(place, "strategy_c4",
                    absl::StrCat("the row's values have no dim ", NameText(out->dim)));
    }
    return reader_->Expect("->") && ReadAxes(&out->axes);
  }

  bool ReadStore(StrategySpec* out) {
    StoreSpec store;
    const TextPlace place = reader_->place();
    if (!ReadWord({StoredKind::kStates, StoredKind::kGradients, StoredKind::kParameters},
                  &store.kind) ||
        !ReadScope(&store.scope) || !reader_->Expect("->") || !ReadAxes(&store.axes) ||
        !ReadWhen(&store.when)) {
      return false;
    }
    if (!IsNew(place, absl::StrCat("store ", WordOf(store.kind), store.scope))) return false;
    if (!HasItsStates(out->stores, store)) {
      return FailAt(place, "strategy_c3", MissingStatesOf(store));
    }
    out->stores.push_back(std::move(store));
    return true;
  }

  bool ReadScope(std::string* out) {
    if (!reader_->Accept("in")) return true;
    if (reader_->Peek().kind == TokenKind::kString && reader_->Peek().text.empty()) {
      return reader_->Fail("a scope is not empty: `\"*\"` is everywhere");
    }
    return reader_->ExpectString("a pattern of names, `\"layers.*.mlp.*\"`", out);
  }

  bool ReadWhen(StrategyCondition* out) {
    return !reader_->Accept("when") || ReadWord(kConditions, out);
  }

  // One of the words that an enum has.
  template <typename T>
  bool ReadWord(std::initializer_list<T> values, T* out) {
    std::vector<std::string> words;
    for (T value : values) {
      if (reader_->Accept(WordOf(value))) {
        *out = value;
        return true;
      }
      words.push_back(absl::StrCat("`", WordOf(value), "`"));
    }
    return reader_->FailMissing(absl::StrJoin(words, " or "));
  }

  bool ReadDim(std::string* out) {
    if (reader_->Peek().kind == TokenKind::kString && reader_->Peek().text.empty()) {
      return reader_->Fail("a dim without a name cannot be named: `*` stands for any");
    }
    return reader_->ExpectName("the name of a dim", out);
  }

  bool ReadAxes(std::vector<std::string>* out) {
    if (reader_->Accept("-")) return true;
    do {
      const TextPlace place = reader_->place();
      out->emplace_back();
      if (!ReadAxis(&out->back())) return false;
      for (size_t i = 0; i + 1 < out->size(); ++i) {
        if (!Overlap((*out)[i], out->back())) continue;
        return FailAt(place, "strategy_c2",
                      absl::StrCat("axis ", out->back(), " twice in a product"));
      }
    } while (reader_->Accept("*"));
    return true;
  }

  bool ReadAxis(std::string* out) {
    const TextPlace place = reader_->place();
    if (!reader_->ExpectName("the name of an axis", out)) return false;
    std::vector<absl::string_view> known(kAxes.begin(), kAxes.end());
    known.insert(known.end(), parts_.begin(), parts_.end());
    if (std::find(known.begin(), known.end(), *out) != known.end()) return true;
    if (*out == "pp") return FailAt(place, "strategy_c1", "pp cuts layers, not the dims of values");
    return FailAt(place, "strategy_c1",
                  absl::StrCat("no axis is named ", NameText(*out), "; there are ",
                               absl::StrJoin(known, ", ")));
  }

  // Reports, at `place`, what the strategy has said before.
  bool IsNew(TextPlace place, const std::string& said) {
    return said_.insert(said).second || FailAt(place, "strategy_c2", "said twice");
  }

  bool FailAt(TextPlace place, absl::string_view label, absl::string_view text) {
    reader_->diagnostics().Add(place, label, text);
    return false;
  }

  TokenReader* reader_;
  std::vector<std::string> parts_;  // of axes that are split
  std::set<std::string> said_;
};

}  // namespace

std::string RowTextOf(const StrategyRowSpec& row, const DimAxes& dim) {
  StrategyRowSpec part = row;
  part.dims = {dim};
  return RowText(part);
}

std::string StoreText(const StoreSpec& store) {
  return absl::StrCat("store ", WordOf(store.kind), ScopeText(store.scope), " -> ",
                      AxesText(store.axes), WhenText(store.when));
}

std::string PrintStrategy(const StrategySpec& spec) {
  BlockPrinter printer;
  printer.Open("strategy ", SymbolText(spec.name));
  for (const AxisSplit& split : spec.splits) {
    const bool in_groups = split.dim.empty();
    printer.Line("split ", NameText(split.axis), in_groups ? " in " : " by ",
                 in_groups ? "zero_groups" : NameText(split.dim));
  }
  for (const GatherSpec& gather : spec.gathers) {
    printer.Line("gather ", NamesText(gather.dims, ", "), " ", WordOf(gather.taken));
  }
  if (!spec.uneven.empty()) printer.Line("uneven ", NamesText(spec.uneven, ", "));
  for (const StrategyRowSpec& row : spec.rows) printer.Line(RowText(row));
  for (const StoreSpec& store : spec.stores) printer.Line(StoreText(store));
  printer.Close();
  return printer.Take();
}

absl::StatusOr<StrategySpec> ParseStrategy(absl::string_view text, absl::string_view filename) {
  FileDiagnostics diagnostics(filename);
  TokenReader reader(text, &diagnostics);
  StrategySpec spec;
  if (StrategyReader(&reader).Read(&spec) && !reader.AtEnd()) {
    reader.FailExpecting("the end of the text");
  }
  if (!diagnostics.empty()) return diagnostics.ToStatus();
  return spec;
}

}  // namespace mgc
