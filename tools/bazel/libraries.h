// What most files include of the standard library and Abseil (precompiled.bzl).
#ifndef MGC_TOOLS_BAZEL_LIBRARIES_H_
#define MGC_TOOLS_BAZEL_LIBRARIES_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"

#endif  // MGC_TOOLS_BAZEL_LIBRARIES_H_
