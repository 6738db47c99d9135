#include "graph/verify/shrink/drop_axes.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "graph/ir/op.h"
#include "graph/plan/instr_collective.h"
#include "graph/verify/shrink/keep_issued.h"

namespace mgc {
namespace {

// `tp` of `tp.0`.
std::string StemOf(const std::string& axis) { return axis.substr(0, axis.find('.')); }

// Of a name divided into sub-axes, those that are left are numbered anew; one alone has the name.
absl::StatusOr<Mesh> MeshWithout(const Mesh& mesh, AxisSet dropped) {
  std::map<std::string, int> left;
  for (AxisId axis = 0; axis < mesh.num_axes(); ++axis) {
    if (!dropped.Contains(axis)) ++left[StemOf(mesh.axes()[static_cast<size_t>(axis)].name)];
  }
  std::map<std::pair<std::string, std::string>, int> numbers;  // by stem and old name, ascending
  for (const MeshAxis& axis : mesh.axes()) numbers[{StemOf(axis.name), axis.name}] = 0;
  std::map<std::string, int> next;
  for (auto& [key, number] : numbers) {
    if (!dropped.Contains(mesh.FindAtomic(key.second))) number = next[key.first]++;
  }
  std::vector<MeshAxis> axes;
  for (AxisId axis = 0; axis < mesh.num_axes(); ++axis) {
    if (dropped.Contains(axis)) continue;
    MeshAxis kept = mesh.axes()[static_cast<size_t>(axis)];
    const std::string stem = StemOf(kept.name);
    kept.name = left[stem] == 1 ? stem : absl::StrCat(stem, ".", numbers[{stem, kept.name}]);
    axes.push_back(std::move(kept));
  }
  return Mesh::Create(axes);
}

class AxisDropper {
 public:
  AxisDropper(const Plan& plan, AxisSet dropped) : plan_(plan), dropped_(dropped) {
    AxisId next = 0;
    for (AxisId axis = 0; axis < plan.mesh.num_axes(); ++axis) {
      now_.push_back(dropped.Contains(axis) ? AxisId{-1} : next++);
    }
  }

  absl::StatusOr<Plan> Run() {
    Plan made = plan_;
    MGC_ASSIGN_OR_RETURN(made.mesh, MeshWithout(plan_.mesh, dropped_));
    for (ParamBlock& block : made.blocks) {
      for (ParamEntry& entry : block.entries) {
        entry.sharding = Without(entry.sharding);
        entry.state_sharding = Without(entry.state_sharding);
      }
    }
    for (Segment& segment : made.segments) MGC_RETURN_IF_ERROR(Rewrite(&segment));
    for (PlanClass& c : made.classes) {
      KeepIssued(
          plan_,
          [this](const Call& call, int start) {
            return bool{kept_[static_cast<size_t>(call.segment)][static_cast<size_t>(start)]};
          },
          &c);
    }
    return made;
  }

 private:
  AxisSet Without(AxisSet axes) const {
    AxisSet left;
    for (AxisId axis : axes) {
      if (!dropped_.Contains(axis)) left.Add(now_[static_cast<size_t>(axis)]);
    }
    return left;
  }
  AxisList Without(const AxisList& axes) const {
    AxisList left;
    for (AxisId axis : axes) {
      if (!dropped_.Contains(axis)) left.push_back(now_[static_cast<size_t>(axis)]);
    }
    return left;
  }
  Sharding Without(const Sharding& sharding) const {
    Sharding left = sharding;
    for (AxisList& axes : left.dims) axes = Without(axes);
    left.sum = Without(sharding.sum);
    left.max = Without(sharding.max);
    left.storage = Without(sharding.storage);
    return left;
  }

  // Whether all of what a collective does is over axes that are dropped.
  bool Vanishes(const Segment& segment, const Instr& instr) const {
    if (instr.op == nullptr || !instr.op->collective || JoinsClasses(instr)) return false;
    for (size_t part = 0; part < instr.inputs.size(); ++part) {
      const absl::StatusOr<Collective> collective = CollectiveOfPart(segment, instr, part);
      if (!collective.ok() || !dropped_.ContainsAll(collective->axes.AsSet())) return false;
    }
    return true;
  }

  static void AddCopies(const Instr& instr, std::vector<Instr>* instrs) {
    for (size_t part = 0; part < instr.inputs.size(); ++part) {
      Instr copy = instr;
      copy.kind = InstrKind::kCompute;
      copy.op = FindOp("reshard");
      copy.attrs = {};
      copy.collective = -1;
      copy.inputs = {instr.inputs[part]};
      copy.outputs = {instr.outputs[part]};
      instrs->push_back(std::move(copy));
    }
  }

  absl::Status Rewrite(Segment* segment) {
    std::vector<bool>& kept = kept_.emplace_back();
    std::map<int, int> numbers;  // of the collectives that stay
    for (const Instr& instr : segment->instrs) {
      if (instr.kind != InstrKind::kStart) continue;
      kept.push_back(!Vanishes(*segment, instr));
      if (kept.back()) numbers.emplace(instr.collective, static_cast<int>(numbers.size()));
    }
    std::vector<Instr> instrs;
    for (const Instr& instr : segment->instrs) {
      const bool exchanges = instr.kind == InstrKind::kStart || instr.kind == InstrKind::kWait;
      if (exchanges ? numbers.count(instr.collective) > 0 : !Vanishes(*segment, instr)) {
        instrs.push_back(instr);
        if (exchanges) instrs.back().collective = numbers[instr.collective];
      } else if (instr.kind != InstrKind::kWait) {
        AddCopies(instr, &instrs);
      }
    }
    segment->instrs = std::move(instrs);
    segment->num_collectives = static_cast<int>(numbers.size());
    for (Slot& slot : segment->slots) slot.sharding = Without(slot.sharding);
    return CheckCollectives(*segment);
  }

  static absl::Status CheckCollectives(const Segment& segment) {
    for (const Instr& instr : segment.instrs) {
      if (instr.op == nullptr || !instr.op->collective || JoinsClasses(instr)) continue;
      for (size_t part = 0; part < instr.inputs.size(); ++part) {
        const absl::Status status = CollectiveOfPart(segment, instr, part).status();
        if (status.ok()) continue;
        return absl::InvalidArgumentError(absl::StrCat(
            "segment ", segment.name, ", with fewer axes: ", status.message(), " [meaning_v1]"));
      }
    }
    return absl::OkStatus();
  }

  const Plan& plan_;
  const AxisSet dropped_;
  std::vector<AxisId> now_;              // by axis
  std::vector<std::vector<bool>> kept_;  // by segment, by the order of starts
};

}  // namespace

absl::StatusOr<Plan> WithoutAxes(const Plan& plan, AxisSet dropped) {
  if (dropped.empty()) return plan;
  return AxisDropper(plan, dropped).Run();
}

}  // namespace mgc
