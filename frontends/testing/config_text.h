// Configuration files in text, and what is said of them.

#ifndef MGC_FRONTENDS_TESTING_CONFIG_TEXT_H_
#define MGC_FRONTENDS_TESTING_CONFIG_TEXT_H_

#include <string>

#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "frontends/model_config.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mgc {

// `text` with `to` for every `from`, which it has.
inline std::string Edit(absl::string_view text, absl::string_view from, absl::string_view to) {
  EXPECT_THAT(std::string(text), testing::HasSubstr(std::string(from)));
  return absl::StrReplaceAll(text, {{from, to}});
}

// Why it is no configuration, "" for one that is.
inline std::string ErrorOf(absl::string_view text) {
  return std::string(ParseModelConfig(text, "config.json").status().message());
}

}  // namespace mgc

#endif  // MGC_FRONTENDS_TESTING_CONFIG_TEXT_H_
