#include "runtime/run/device.h"

#include <cstring>

namespace mgc {

void Device::PutBytes(Queue queue, int64_t address, const void* from, int64_t bytes) {
  Put(queue, address, bytes,
      [from, bytes](char* to) { std::memcpy(to, from, static_cast<size_t>(bytes)); });
}

absl::Status Device::RunTransfer(Queue /*queue*/, const FarTransfer& /*transfer*/) {
  return absl::UnimplementedError("this device reaches no other process");
}

Queue QueueOf(const Mark& mark) {
  const bool compute = mark.kind == MarkKind::kStarts || mark.kind == MarkKind::kActions;
  return {compute ? QueueKind::kCompute : QueueKind::kComm, mark.place};
}

}  // namespace mgc
