#include "kernels/cuda/emulator/group_products.h"

namespace mgc::cuda::emulator {
namespace {

thread_local bool has_groups = true;

}  // namespace

void SetGroups(bool has) { has_groups = has; }
bool HasGroups() { return has_groups; }

}  // namespace mgc::cuda::emulator
