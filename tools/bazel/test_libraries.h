// What most tests include of libraries (precompiled.bzl).
#ifndef MGC_TOOLS_BAZEL_TEST_LIBRARIES_H_
#define MGC_TOOLS_BAZEL_TEST_LIBRARIES_H_

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/bazel/libraries.h"

#endif  // MGC_TOOLS_BAZEL_TEST_LIBRARIES_H_
