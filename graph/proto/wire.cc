// Documents, meshes, machines and the parts; graphs are in wire_graph.cc.

#include "graph/proto/wire.h"

#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/file.h"
#include "graph/base/status.h"
#include "graph/ir/assemble.h"

namespace mgc {
namespace {

absl::Status Refuse(absl::string_view label, absl::string_view message) {
  return absl::InvalidArgumentError(absl::StrCat(message, " [", label, "]"));
}

void ToWire(const AxisList& axes, wire::AxisList* out) {
  for (AxisId axis : axes) out->add_axes(static_cast<uint32_t>(axis));
}

// Appends axes to a list; none may be out of range or in `used`, which they join.
template <typename Axes>
absl::Status ReadAxes(const Axes& message, int num_axes, AxisSet* used, AxisList* out) {
  for (uint32_t axis : message) {
    if (axis >= static_cast<uint32_t>(num_axes)) {
      return Refuse("wire_c5", absl::StrCat("axis ", axis, " of ", num_axes));
    }
    const AxisId id = static_cast<AxisId>(axis);
    if (used->Contains(id))
      return Refuse("sharding_c2", absl::StrCat("axis ", axis, " occurs twice"));
    used->Add(id);
    out->push_back(id);
  }
  return absl::OkStatus();
}

absl::StatusOr<wire::Document> ReadDocument(absl::string_view bytes,
                                            wire::Document::ObjectCase object) {
  wire::Document document;
  const bool fits = bytes.size() <= static_cast<size_t>(std::numeric_limits<int>::max());
  if (!fits || !document.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return Refuse("wire_c1", "the bytes are no mgc document");
  }
  if (document.version() != kWireVersion) {
    return Refuse("wire_c2", absl::StrCat("the document is of version ", document.version(),
                                          ", this program reads version ", kWireVersion));
  }
  if (document.object_case() != object) {
    return Refuse("wire_c3", "the document holds another kind of object");
  }
  return document;
}

void ToWire(const EfficiencyPoint& point, wire::EfficiencyPoint* out) {
  out->set_size(point.size);
  out->set_efficiency(point.efficiency);
}

EfficiencyPoint FromWire(const wire::EfficiencyPoint& message) {
  return {message.size(), message.efficiency()};
}

}  // namespace

std::string SerializeGraph(const Graph& graph) {
  wire::Document document;
  document.set_version(kWireVersion);
  ToWire(graph, document.mutable_graph());
  return document.SerializeAsString();
}

std::string SerializeMesh(const Mesh& mesh) {
  wire::Document document;
  document.set_version(kWireVersion);
  ToWire(mesh, document.mutable_mesh());
  return document.SerializeAsString();
}

std::string SerializeMachine(const Machine& machine) {
  wire::Document document;
  document.set_version(kWireVersion);
  ToWire(machine, document.mutable_machine());
  return document.SerializeAsString();
}

absl::StatusOr<Graph> DeserializeGraph(absl::string_view bytes) {
  MGC_ASSIGN_OR_RETURN(const wire::Document document, ReadDocument(bytes, wire::Document::kGraph));
  return FromWire(document.graph());
}

absl::StatusOr<Mesh> DeserializeMesh(absl::string_view bytes) {
  MGC_ASSIGN_OR_RETURN(const wire::Document document, ReadDocument(bytes, wire::Document::kMesh));
  return FromWire(document.mesh());
}

absl::StatusOr<Machine> DeserializeMachine(absl::string_view bytes) {
  MGC_ASSIGN_OR_RETURN(const wire::Document document,
                       ReadDocument(bytes, wire::Document::kMachine));
  return FromWire(document.machine());
}

void ToWire(const Attrs& attrs, google::protobuf::RepeatedPtrField<wire::Attr>* out) {
  for (const Attrs::Entry& entry : attrs) {
    wire::Attr* attr = out->Add();
    attr->set_name(entry.first);
    if (const int64_t* integer = std::get_if<int64_t>(&entry.second)) {
      attr->set_integer(*integer);
    } else if (const double* real = std::get_if<double>(&entry.second)) {
      attr->set_real(*real);
    } else if (const std::string* text = std::get_if<std::string>(&entry.second)) {
      attr->set_text(*text);
    } else {
      wire::IntList* list = attr->mutable_integers();
      for (int64_t item : std::get<std::vector<int64_t>>(entry.second)) list->add_items(item);
    }
  }
}

absl::StatusOr<Attrs> FromWire(const google::protobuf::RepeatedPtrField<wire::Attr>& message) {
  Attrs attrs;
  for (const wire::Attr& attr : message) {
    if (attrs.Find(attr.name()) != nullptr) {
      return Refuse("text_c3", absl::StrCat("attribute `", EscapeBytes(attr.name()),
                                            "` is given "
                                            "twice"));
    }
    switch (attr.value_case()) {
      case wire::Attr::kInteger:
        attrs.Set(attr.name(), attr.integer());
        break;
      case wire::Attr::kReal:
        attrs.Set(attr.name(), attr.real());
        break;
      case wire::Attr::kText:
        attrs.Set(attr.name(), attr.text());
        break;
      case wire::Attr::kIntegers:
        attrs.Set(attr.name(), std::vector<int64_t>(attr.integers().items().begin(),
                                                    attr.integers().items().end()));
        break;
      default:
        return Refuse("wire_c4", absl::StrCat("attribute `", EscapeBytes(attr.name()),
                                              "` has no "
                                              "value"));
    }
  }
  return attrs;
}

void ToWire(const TensorType& type, wire::TensorType* out) {
  out->set_dtype(std::string(NameOf(type.dtype)));
  for (const Dim& dim : type.dims) {
    wire::Dim* to = out->add_dims();
    to->set_size(dim.size);
    to->set_name(dim.name);
    if (dim.multiple != 1) to->set_multiple(dim.multiple);
  }
}

absl::StatusOr<TensorType> FromWire(const wire::TensorType& message) {
  TensorType type;
  if (!ParseDType(message.dtype(), &type.dtype)) {
    return Refuse("wire_c4",
                  absl::StrCat("unknown element type `", EscapeBytes(message.dtype()), "`"));
  }
  for (const wire::Dim& dim : message.dims()) {
    type.dims.push_back({dim.size(), dim.name(), dim.multiple() == 0 ? 1 : dim.multiple()});
  }
  MGC_RETURN_IF_ERROR(CheckTypeBounds(type));
  return type;
}

void ToWire(const Sharding& sharding, wire::Sharding* out) {
  for (const AxisList& axes : sharding.dims) ToWire(axes, out->add_dims());
  for (AxisId axis : sharding.sum) out->add_sum(static_cast<uint32_t>(axis));
  for (AxisId axis : sharding.max) out->add_max(static_cast<uint32_t>(axis));
  if (!sharding.storage.empty()) ToWire(sharding.storage, out->mutable_storage());
}

absl::StatusOr<Sharding> FromWire(const wire::Sharding& message, const TensorType& type,
                                  const Mesh& mesh) {
  Sharding sharding;
  AxisSet used;
  AxisList sum, max;
  for (const wire::AxisList& axes : message.dims()) {
    sharding.dims.emplace_back();
    MGC_RETURN_IF_ERROR(ReadAxes(axes.axes(), mesh.num_axes(), &used, &sharding.dims.back()));
  }
  MGC_RETURN_IF_ERROR(ReadAxes(message.sum(), mesh.num_axes(), &used, &sum));
  MGC_RETURN_IF_ERROR(ReadAxes(message.max(), mesh.num_axes(), &used, &max));
  MGC_RETURN_IF_ERROR(
      ReadAxes(message.storage().axes(), mesh.num_axes(), &used, &sharding.storage));
  sharding.sum = sum.AsSet();
  sharding.max = max.AsSet();
  MGC_RETURN_IF_ERROR(CheckShardingBounds(type, sharding, mesh));
  return sharding;
}

void ToWire(const Mesh& mesh, wire::Mesh* out) {
  for (const MeshAxis& axis : mesh.axes()) {
    wire::MeshAxis* to = out->add_axes();
    to->set_name(axis.name);
    to->set_size(axis.size);
  }
  for (const MeshProduct& product : mesh.products()) {
    wire::MeshProduct* to = out->add_products();
    to->set_name(product.name);
    ToWire(product.axes, to->mutable_axes());
  }
}

absl::StatusOr<Mesh> FromWire(const wire::Mesh& message) {
  std::vector<MeshAxis> axes;
  for (const wire::MeshAxis& axis : message.axes()) axes.push_back({axis.name(), axis.size()});
  MGC_ASSIGN_OR_RETURN(Mesh mesh, Mesh::Create(axes));
  for (const wire::MeshProduct& product : message.products()) {
    AxisSet used;
    AxisList list;
    MGC_RETURN_IF_ERROR(ReadAxes(product.axes().axes(), mesh.num_axes(), &used, &list));
    std::vector<std::string> factors;
    for (AxisId axis : list) factors.push_back(mesh.name(axis));
    MGC_ASSIGN_OR_RETURN(mesh, mesh.WithProduct(product.name(), factors));
  }
  return mesh;
}

void ToWire(const Machine& machine, wire::Machine* out) {
  out->set_name(machine.name);
  out->set_memory(machine.memory);
  out->set_memory_bandwidth(machine.memory_bandwidth);
  out->set_memory_efficiency(machine.memory_efficiency);
  out->set_op_overhead(machine.op_overhead);
  out->set_cores(machine.cores);
  out->set_gpu(machine.host == KernelHost::kGpu);
  for (const ComputeRate& rate : machine.compute) {
    wire::ComputeRate* to = out->add_compute();
    to->set_dtype(rate.dtype);
    to->set_flops(rate.flops);
    to->set_efficiency(rate.efficiency);
    for (const EfficiencyPoint& point : rate.points) ToWire(point, to->add_points());
  }
  for (const OpFactor& of : machine.ops) {
    wire::OpFactor* to = out->add_ops();
    to->set_op(of.op);
    to->set_dtype(of.dtype);
    to->set_factor(of.factor);
  }
  for (const NetworkTier& tier : machine.tiers) {
    wire::NetworkTier* to = out->add_tiers();
    to->set_name(tier.name);
    to->set_ranks(tier.ranks);
    to->set_bandwidth(tier.bandwidth);
    to->set_efficiency(tier.efficiency);
    to->set_latency(tier.latency);
    to->set_hop(tier.hop);
    for (const EfficiencyPoint& point : tier.points) ToWire(point, to->add_points());
  }
}

absl::StatusOr<Machine> FromWire(const wire::Machine& message) {
  Machine machine;
  machine.name = message.name();
  machine.memory = message.memory();
  machine.memory_bandwidth = message.memory_bandwidth();
  machine.memory_efficiency = message.memory_efficiency();
  machine.op_overhead = message.op_overhead();
  machine.cores = message.cores();
  machine.host = message.gpu() ? KernelHost::kGpu : KernelHost::kCpu;
  for (const wire::ComputeRate& rate : message.compute()) {
    ComputeRate& to = machine.compute.emplace_back();
    to = {rate.dtype(), rate.flops(), rate.efficiency()};
    for (const wire::EfficiencyPoint& point : rate.points()) to.points.push_back(FromWire(point));
  }
  for (const wire::OpFactor& of : message.ops()) {
    machine.ops.push_back({of.op(), of.dtype(), of.factor()});
  }
  for (const wire::NetworkTier& tier : message.tiers()) {
    NetworkTier& to = machine.tiers.emplace_back();
    to = {tier.name(),       tier.ranks(),   tier.bandwidth(),
          tier.efficiency(), tier.latency(), tier.hop()};
    for (const wire::EfficiencyPoint& point : tier.points()) to.points.push_back(FromWire(point));
  }
  MGC_RETURN_IF_ERROR(CheckMachine(machine));
  return machine;
}

}  // namespace mgc
