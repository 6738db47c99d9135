#include "runtime/cuda/nccl/nccl_exchanges.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/base/status.h"
#include "runtime/comm/run_exchanges.h"
#include "runtime/cuda/exchange/exchanges.h"

namespace mgc {
namespace {

constexpr int64_t kAlignment = 256;  // of what lies in a staging buffer

ncclDataType_t TypeOf(DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return ncclFloat64;
    case DType::kI64:
      return ncclInt64;
    case DType::kBF16:
      return ncclBfloat16;
    case DType::kF16:
      return ncclFloat16;
    case DType::kI8:
      return ncclInt8;
    case DType::kF32:
      break;
  }
  return ncclFloat32;
}

// A member's tile as pieces for, or of, all members.
struct Pieces {
  int64_t outer = 1, whole = 0, room = 0, inner = 1;

  int64_t each() const { return outer * room * inner; }
};

// The tile that a member sends pieces of. That of an all-to-all is [outer, dim, middle, second,
// inner], the two dims in either order, and cut along the second.
Pieces Sent(const Exchange& x) {
  if (x.kind == CollectiveKind::kReduceScatter) return {x.outer, x.whole, x.room, x.inner};
  if (x.second_is_minor) {
    return {x.outer * x.room * x.middle, x.second_whole, x.second_room, x.inner};
  }
  return {x.outer, x.second_whole, x.second_room, x.middle * x.room * x.inner};
}

// And the one that it gets pieces of: joined along the first.
Pieces Received(const Exchange& x) {
  if (x.kind == CollectiveKind::kAllGather) return {x.outer, x.whole, x.room, x.inner};
  if (x.second_is_minor) return {x.outer, x.whole, x.room, x.middle * x.second_room * x.inner};
  return {x.outer * x.second_room * x.middle, x.whole, x.room, x.inner};
}

bool Cuts(const Exchange& x) {
  return x.kind == CollectiveKind::kReduceScatter || x.kind == CollectiveKind::kAllToAll;
}
bool Joins(const Exchange& x) {
  return x.kind == CollectiveKind::kAllGather || x.kind == CollectiveKind::kAllToAll;
}

// Whether the tile has its pieces one behind the other in the group's order.
bool IsDense(const Pieces& pieces, const Exchange& x) {
  const auto members = static_cast<int64_t>(x.piece.size());
  if (pieces.outer != 1 || pieces.whole != members * pieces.room) return false;
  for (size_t m = 0; m < x.piece.size(); ++m) {
    if (x.piece[m] != static_cast<int>(m)) return false;
  }
  return true;
}

bool IsAlone(const Exchange& x) { return x.piece.size() == 1; }

// Where an exchange's pieces lie in a staging buffer; -1: in the tile itself.
struct Staging {
  int64_t sent = -1;
  int64_t received = -1;
};

// Of an exchange that begins at `*bytes`, which then goes on behind it.
Staging Place(const Exchange& x, int64_t* bytes) {
  Staging staging;
  if (IsAlone(x)) return staging;
  const auto take = [&](const Pieces& pieces) {
    const int64_t at = *bytes;
    const auto members = static_cast<int64_t>(x.piece.size());
    const int64_t size = members * pieces.each() * SizeOf(x.dtype);
    *bytes += (size + kAlignment - 1) / kAlignment * kAlignment;
    return at;
  };
  if (Cuts(x) && !IsDense(Sent(x), x)) staging.sent = take(Sent(x));
  if (Joins(x) && !IsDense(Received(x), x)) staging.received = take(Received(x));
  return staging;
}

// One exchange on one member.
class Part {
 public:
  Part(const TiledExchange& tiled, const NcclMember& member, const Staging& staging)
      : x_(*tiled.exchange),
        member_(member),
        staging_(staging),
        in_(tiled.inputs[static_cast<size_t>(member.position)]),
        out_(tiled.outputs[static_cast<size_t>(member.position)]) {}

  void AddCuts(std::vector<cuda::PieceMove>* moves) const {
    if (staging_.sent < 0) return;
    moves->push_back(MoveOf(Sent(x_), const_cast<char*>(in_), staging_.sent));
  }
  void AddJoins(std::vector<cuda::PieceMove>* moves) const {
    if (staging_.received < 0) return;
    moves->push_back(MoveOf(Received(x_), out_, staging_.received));
    moves->back().joins = true;
  }

  ncclResult_t Issue() const {
    const char* const from = staging_.sent < 0 ? in_ : member_.staging + staging_.sent;
    char* const to = staging_.received < 0 ? out_ : member_.staging + staging_.received;
    const ncclDataType_t type = TypeOf(x_.dtype);
    const NcclEnd& end = member_.end;
    switch (x_.kind) {
      case CollectiveKind::kAllReduce:
      case CollectiveKind::kAllReduceMax:
        return ncclAllReduce(from, to, static_cast<size_t>(x_.whole), type,
                             x_.kind == CollectiveKind::kAllReduce ? ncclSum : ncclMax, end.comm,
                             end.stream);
      case CollectiveKind::kReduceScatter:
        return ncclReduceScatter(from, to, static_cast<size_t>(Sent(x_).each()), type, ncclSum,
                                 end.comm, end.stream);
      case CollectiveKind::kAllGather:
        return ncclAllGather(from, to, static_cast<size_t>(Received(x_).each()), type, end.comm,
                             end.stream);
      case CollectiveKind::kAllToAll:
        return IssueAllToAll(from, to);
      case CollectiveKind::kSlice:
      case CollectiveKind::kLift:
        break;
    }
    return ncclInvalidArgument;
  }

  // Whether there is anything to move.
  static bool IsEmpty(const Exchange& x) {
    return (IsAllReduce(x.kind) ? x.whole : Cuts(x) ? Sent(x).each() : Received(x).each()) == 0;
  }

 private:
  cuda::PieceMove MoveOf(const Pieces& pieces, char* tile, int64_t at) const {
    cuda::PieceMove move;
    move.outer = pieces.outer;
    move.whole = pieces.whole;
    move.room = pieces.room;
    move.inner = pieces.inner;
    move.piece = x_.piece;
    move.element_bytes = SizeOf(x_.dtype);
    move.tile = tile;
    move.pieces = member_.staging + at;
    return move;
  }

  ncclResult_t IssueAllToAll(const char* from, char* to) const {
    const NcclEnd& end = member_.end;
    const int64_t count = Sent(x_).each();
    const int64_t bytes = count * SizeOf(x_.dtype);
    ncclResult_t first = ncclSuccess;
    for (int peer = 0; peer < static_cast<int>(x_.piece.size()) && first == ncclSuccess; ++peer) {
      first = ncclSend(from + peer * bytes, static_cast<size_t>(count), TypeOf(x_.dtype), peer,
                       end.comm, end.stream);
      if (first != ncclSuccess) break;
      first = ncclRecv(to + peer * bytes, static_cast<size_t>(count), TypeOf(x_.dtype), peer,
                       end.comm, end.stream);
    }
    return first;
  }

  const Exchange& x_;
  const NcclMember& member_;
  const Staging staging_;
  const char* const in_;
  char* const out_;
};

absl::Status CudaError(int error, const char* what) {
  if (error == 0) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat(what, ": ", cudaGetErrorString(static_cast<cudaError_t>(error))));
}

// Those of one collective, for each member.
std::vector<std::vector<Part>> PartsOf(absl::Span<const TiledExchange> exchanges,
                                       absl::Span<const NcclMember> members) {
  std::vector<std::vector<Part>> parts(members.size());
  int64_t bytes = 0;
  for (const TiledExchange& tiled : exchanges) {
    const Staging staging = Place(*tiled.exchange, &bytes);
    if (Part::IsEmpty(*tiled.exchange)) continue;
    for (size_t m = 0; m < members.size(); ++m) {
      parts[m].emplace_back(tiled, members[m], staging);
    }
  }
  return parts;
}

// The members' kernels before NCCL, or behind it.
absl::Status IssueMoves(const std::vector<std::vector<Part>>& parts,
                        absl::Span<const NcclMember> members, bool joins) {
  for (size_t m = 0; m < members.size(); ++m) {
    std::vector<cuda::PieceMove> moves;
    for (const Part& part : parts[m]) joins ? part.AddJoins(&moves) : part.AddCuts(&moves);
    if (moves.empty()) continue;
    const NcclEnd& end = members[m].end;
    MGC_RETURN_IF_ERROR(CudaError(cudaSetDevice(end.gpu), "the GPU of a rank"));
    MGC_RETURN_IF_ERROR(CudaError(cuda::IssuePieceMoves(end.stream, moves), "pieces of a tile"));
  }
  return absl::OkStatus();
}

// Calls `issue` between the begin and the end of a group of calls, which ends in any case.
template <class Issue>
absl::Status InGroup(const char* what, const Issue& issue) {
  MGC_RETURN_IF_ERROR(NcclStatus(ncclGroupStart(), what));
  const ncclResult_t first = issue();
  const ncclResult_t end = ncclGroupEnd();
  return NcclStatus(first != ncclSuccess ? first : end, what);
}

}  // namespace

int64_t NcclStagingBytes(absl::Span<const Exchange> exchanges) {
  int64_t bytes = 0;
  for (const Exchange& exchange : exchanges) Place(exchange, &bytes);
  return bytes;
}

absl::Status IssueNcclExchanges(absl::Span<const TiledExchange> exchanges,
                                absl::Span<const NcclMember> members) {
  if (exchanges.empty() || members.empty()) return absl::OkStatus();
  for (const TiledExchange& tiled : exchanges) MGC_RETURN_IF_ERROR(CheckServed(*tiled.exchange));
  if (IsAlone(*exchanges[0].exchange)) {  // as all of a group are
    MGC_RETURN_IF_ERROR(CudaError(cudaSetDevice(members[0].end.gpu), "the GPU of a rank"));
    return CudaError(cuda::IssueExchanges(members[0].end.stream, exchanges), "a rank's own pieces");
  }
  const std::vector<std::vector<Part>> parts = PartsOf(exchanges, members);
  MGC_RETURN_IF_ERROR(IssueMoves(parts, members, /*joins=*/false));
  MGC_RETURN_IF_ERROR(InGroup("a collective", [&] {
    for (const std::vector<Part>& of_member : parts) {
      for (const Part& part : of_member) {
        const ncclResult_t result = part.Issue();
        if (result != ncclSuccess) return result;
      }
    }
    return ncclSuccess;
  }));
  return IssueMoves(parts, members, /*joins=*/true);
}

absl::Status IssueNcclTransfers(absl::Span<const NcclTransfer> transfers) {
  return InGroup("a transfer", [&] {
    for (const NcclTransfer& t : transfers) {
      const auto bytes = static_cast<size_t>(t.bytes);
      const ncclResult_t result =
          t.sends ? ncclSend(t.memory, bytes, ncclChar, t.peer, t.end.comm, t.end.stream)
                  : ncclRecv(t.memory, bytes, ncclChar, t.peer, t.end.comm, t.end.stream);
      if (result != ncclSuccess) return result;
    }
    return ncclSuccess;
  });
}

}  // namespace mgc
