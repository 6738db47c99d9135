// Damage to what a plan states beside its instructions: who owns a tied parameter, how much scratch
// there is, what a user is told.

#include <algorithm>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/verify/damage/mutations.h"

namespace mgc {
namespace {

// --- Owners of tied parameters

// All classes that hold one block for one layer.
struct Copy {
  PlanClass* rank_class;
  HeldBlock* held;
};

std::vector<std::vector<Copy>> TiedBlocks(Plan* plan) {
  std::vector<std::vector<Copy>> tied;
  for (PlanClass& first : plan->classes) {
    for (HeldBlock& held : first.blocks) {
      if (!held.owner) continue;
      std::vector<Copy> copies = {{&first, &held}};
      for (PlanClass& c : plan->classes) {
        for (HeldBlock& other : c.blocks) {
          const bool same = other.block == held.block && other.layer == held.layer;
          if (same && &other != &held) copies.push_back({&c, &other});
        }
      }
      if (copies.size() > 1) tied.push_back(std::move(copies));
    }
  }
  return tied;
}

using TiedDamage = std::function<bool(Plan*, std::vector<Copy>*, Dice*)>;
MutationKind OfTied(const char* name, TiedDamage damage) {
  return {name,
          [damage = std::move(damage)](Plan* plan, Dice* dice, std::string* what) {
            std::vector<std::vector<Copy>> tied = TiedBlocks(plan);
            std::vector<Copy>* copies = dice->Pick(&tied);
            if (copies == nullptr) return false;
            *what = absl::StrCat("owned by class ", (*copies)[0].rank_class->coordinate);
            return damage(plan, copies, dice);
          },
          5};
}

bool OwnerMoved(Plan*, std::vector<Copy>* copies, Dice* dice) {
  (*copies)[0].held->owner = false;
  (*copies)[1 + dice->Below(copies->size() - 1)].held->owner = true;
  return true;
}

bool OwnerNowhere(Plan*, std::vector<Copy>* copies, Dice*) {
  (*copies)[0].held->owner = false;
  return true;
}

bool OwnerTwice(Plan*, std::vector<Copy>* copies, Dice* dice) {
  (*copies)[1 + dice->Below(copies->size() - 1)].held->owner = true;
  return true;
}

ParamEntry* EntryOf(Plan* plan, const Copy& copy, Dice* dice) {
  return dice->Pick(&plan->blocks[static_cast<size_t>(copy.held->block)].entries);
}

bool GradientElsewhere(Plan* plan, std::vector<Copy>* copies, Dice* dice) {
  ParamEntry* entry = EntryOf(plan, (*copies)[0], dice);
  const char* const blocks[] = {"", kTiedBlock, "head", "embedding", "x"};
  const Formal base{Region::kGrads, blocks[dice->Below(5)]};
  if (entry == nullptr || entry->gradient_base == base) return false;
  entry->gradient_base = base;
  return true;
}

bool GradientForgotten(Plan* plan, std::vector<Copy>* copies, Dice* dice) {
  ParamEntry* entry = EntryOf(plan, (*copies)[0], dice);
  if (entry == nullptr || entry->gradient_base.region != Region::kGrads) return false;
  entry->gradient_base = {};
  return true;
}

bool GradientOffsetOff(Plan* plan, std::vector<Copy>* copies, Dice* dice) {
  ParamEntry* entry = EntryOf(plan, (*copies)[0], dice);
  if (entry == nullptr) return false;
  entry->gradient_offset += 64 * (1 + static_cast<int64_t>(dice->Below(4)));
  return true;
}

// --- Scratch

constexpr int64_t kHuge = int64_t{1} << 39;  // 512 GiB

MutationKind SegmentWorkspace(const char* name, std::function<int64_t(int64_t)> stated) {
  return {name,
          [stated = std::move(stated)](Plan* plan, Dice* dice, std::string* what) {
            Segment* segment = dice->Pick(&plan->segments);
            const int64_t old = segment->workspace_bytes;
            segment->workspace_bytes = stated(old);
            *what = segment->name;
            if (segment->workspace_bytes == old || segment->workspace_bytes < 0) return false;
            for (PlanClass& c : plan->classes) {
              c.memory.workspace = std::max(c.memory.workspace, segment->workspace_bytes);
            }
            return true;
          },
          6};
}

MutationKind ClassWorkspace(const char* name, std::function<int64_t(int64_t)> stated) {
  return {name,
          [stated = std::move(stated)](Plan* plan, Dice* dice, std::string* what) {
            PlanClass* c = dice->Pick(&plan->classes);
            const int64_t old = c->memory.workspace;
            c->memory.workspace = stated(old);
            *what = absl::StrCat("class ", c->coordinate);
            return c->memory.workspace != old && c->memory.workspace >= 0;
          },
          6};
}

// --- What a user is told

MutationKind OptionStated(const char* name, const char* flag, int64_t most) {
  return {name,
          [flag, most](Plan* plan, Dice* dice, std::string* what) {
            const int64_t value = most + 1 + static_cast<int64_t>(dice->Below(9));
            *what = absl::StrCat(flag, " ", value);
            plan->options.emplace_back(flag, absl::StrCat(value));
            return true;
          },
          7};
}

// Dims of every type of the plan take another name; its model has none of that name left.
void RenameDims(Plan* plan, const std::string& from, const std::string& to) {
  const auto rename = [&](TensorType* type) {
    for (Dim& dim : type->dims) {
      if (dim.name == from) dim.name = to;
    }
  };
  for (Segment& segment : plan->segments) {
    for (Slot& slot : segment.slots) rename(&slot.type);
  }
  for (ParamBlock& block : plan->blocks) {
    for (ParamEntry& entry : block.entries) rename(&entry.type);
  }
  GraphBuilder builder(plan->model.name(), plan->model.level());
  builder.set_num_layers(plan->model.num_layers());
  for (const std::string& file : plan->model.files()) builder.AddFile(file);
  const Graph model = plan->model;
  for (const GraphInput& input : model.inputs()) {
    TensorType type = model.type(input.value);
    rename(&type);
    builder.AddInput(model.value(input.value).name, type, input.kind, input.attrs);
  }
  for (const Node& node : model.nodes()) {
    std::vector<Value> results;
    for (ValueId id : node.outputs) {
      results.push_back(model.value(id));
      rename(&results.back().type);
    }
    builder.AppendRaw(node, std::move(results));
  }
  for (const GraphOutput& output : model.outputs()) builder.AddOutput(output);
  plan->model = std::move(builder).Finish();
}

MutationKind RenamedAndMisstated(const char* name, const char* dim, int64_t Plan::*number) {
  return {name,
          [dim, number](Plan* plan, Dice* dice, std::string* what) {
            plan->*number = plan->*number * 2 + static_cast<int64_t>(dice->Below(9));
            RenameDims(plan, dim, absl::StrCat(dim, "s"));
            *what = absl::StrCat(plan->*number);
            return true;
          },
          7};
}

MutationKind Misstated(const char* name, int64_t Plan::*number) {
  return {name,
          [number](Plan* plan, Dice* dice, std::string* what) {
            plan->*number += 1 + static_cast<int64_t>(dice->Below(9));
            *what = absl::StrCat(plan->*number);
            return true;
          },
          7};
}

bool StartOfOneChanged(Plan* plan, Dice* dice, std::string* what) {
  ParamBlock* block = dice->Pick(&plan->blocks);
  ParamEntry* entry = dice->Pick(&block->entries);
  if (entry == nullptr) return false;
  entry->init.Set("std", entry->init.Real("std", 0.5) + 0.25);
  *what = entry->name;
  return true;
}

}  // namespace

std::vector<MutationKind> StatedMutations() {
  const auto huge = [](int64_t) { return kHuge; };
  const auto more = [](int64_t old) { return old + 64; };
  const auto twice = [](int64_t old) { return 2 * old; };
  const auto less = [](int64_t old) { return old - 64; };
  const auto none = [](int64_t) { return int64_t{0}; };
  return {
      OfTied("owner of a tied block moved", OwnerMoved),
      OfTied("tied block without an owner", OwnerNowhere),
      OfTied("tied block with two owners", OwnerTwice),
      OfTied("mean of a tied parameter elsewhere", GradientElsewhere),
      OfTied("mean of a tied parameter forgotten", GradientForgotten),
      OfTied("mean of a tied parameter off", GradientOffsetOff),
      SegmentWorkspace("scratch of a segment is 512 GiB", huge),
      SegmentWorkspace("scratch of a segment is more", more),
      SegmentWorkspace("scratch of a segment is less", less),
      SegmentWorkspace("scratch of a segment is twice", twice),
      SegmentWorkspace("scratch of a segment is none", none),
      ClassWorkspace("scratch of a class is 512 GiB", huge),
      ClassWorkspace("scratch of a class is more", more),
      ClassWorkspace("scratch of a class is less", less),
      OptionStated("option: other ranks", "--world-size", 64),
      OptionStated("option: other tp", "--tp", 64),
      OptionStated("option: other pp", "--pp", 64),
      OptionStated("option: other chunks", "--vp", 64),
      OptionStated("option: other micro-batches", "--micro-batch-size", 64),
      OptionStated("option: other batch", "--global-batch-size", 64),
      OptionStated("option: other length", "--seq-length", 64),
      RenamedAndMisstated("vocabulary renamed and misstated", "vocab", &Plan::vocab),
      RenamedAndMisstated("tokens renamed and misstated", "seq", &Plan::seq_length),
      Misstated("vocabulary misstated", &Plan::vocab),
      Misstated("tokens misstated", &Plan::seq_length),
      {"how one starts changed", StartOfOneChanged, 7},
  };
}

}  // namespace mgc
