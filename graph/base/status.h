// Errors: how they travel (absl::Status) and how broken invariants end the program (MGC_CHECK).
//
// Whatever a user can cause is an absl::Status. MGC_CHECK is for mistakes of our own only: no input
// may reach it.

#ifndef MGC_GRAPH_BASE_STATUS_H_
#define MGC_GRAPH_BASE_STATUS_H_

#include <ostream>
#include <sstream>
#include <utility>

#include "absl/base/optimization.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace mgc {

// Returns `status` with "`text`: " put before its message; its code and payloads stay. An OK status
// and an empty text change nothing.
absl::Status Annotate(const absl::Status& status, absl::string_view text);

namespace internal {

inline absl::Status ToStatus(absl::Status status) { return status; }
template <typename T>
absl::Status ToStatus(const absl::StatusOr<T>& result) {
  return result.status();
}

// Collects the message of a failed MGC_CHECK; its destruction prints the message and aborts.
class CheckFailure {
 public:
  CheckFailure(const char* file, int line, const char* condition);
  [[noreturn]] ~CheckFailure();
  CheckFailure(const CheckFailure&) = delete;
  CheckFailure& operator=(const CheckFailure&) = delete;

  std::ostream& stream() { return stream_; }

 private:
  std::ostringstream stream_;
};

// Gives both branches of MGC_CHECK's conditional the type void; `&` binds weaker than `<<`.
struct Voidify {
  void operator&(std::ostream&) const {}
};

}  // namespace internal
}  // namespace mgc

// Leaves the function with the error of `expr`, an absl::Status or absl::StatusOr, unless it is OK.
// The function returns absl::Status or an absl::StatusOr.
#define MGC_RETURN_IF_ERROR(expr)                                   \
  do {                                                              \
    if (absl::Status mgc_status_ = ::mgc::internal::ToStatus(expr); \
        ABSL_PREDICT_FALSE(!mgc_status_.ok())) {                    \
      return mgc_status_;                                           \
    }                                                               \
  } while (false)

// Assigns the value of `expr`, an absl::StatusOr, to `lhs`, which may declare a variable, or leaves
// the function with its error. Expands to several statements; a type with a comma in `lhs` needs an
// alias or `auto`.
#define MGC_ASSIGN_OR_RETURN(lhs, expr) \
  MGC_ASSIGN_OR_RETURN_IMPL_(MGC_CONCAT_(mgc_result_, __LINE__), lhs, expr)
#define MGC_ASSIGN_OR_RETURN_IMPL_(result, lhs, expr) \
  auto result = (expr);                               \
  if (ABSL_PREDICT_FALSE(!result.ok())) {             \
    return std::move(result).status();                \
  }                                                   \
  lhs = std::move(result).value()
#define MGC_CONCAT_(a, b) MGC_CONCAT_IMPL_(a, b)
#define MGC_CONCAT_IMPL_(a, b) a##b

// Aborts with file, line, the condition and what is streamed into it, unless `condition` holds.
// Checked in every configuration.
#define MGC_CHECK(condition)     \
  ABSL_PREDICT_TRUE(condition)   \
  ? static_cast<void>(0)         \
  : ::mgc::internal::Voidify() & \
          ::mgc::internal::CheckFailure(__FILE__, __LINE__, #condition).stream()

#endif  // MGC_GRAPH_BASE_STATUS_H_
