// SPDX-License-Identifier: Apache-2.0
//
// Errors as values. A Status is nothing (ok) or a shared, immutable Error: a canonical code, a domain with its own
// sub-code, a message that names what, where and what was expected, details (rank, device, step, node), and the error
// that caused it. A Result<T> is a T or a bad Status.
//
//   Result<Tensor> load(const std::string &path) {
//     TUTTI_ASSIGN(std::string text, read_file(path));
//     if (text.empty()) return data_loss("file '", path, "' is empty");
//     TUTTI_TRY(check_header(text));
//     return decode(text);
//   }
//
// Threads: Error is immutable; Status and Result are values like any other (no sharing of one object without a lock).
// Cost: an ok Status is two null words; no memory is touched on the good path.
#ifndef TUTTI_BASE_STATUS_H_
#define TUTTI_BASE_STATUS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/text.h"

namespace tutti::impl::base {

/// The canonical codes; the numbers are part of the C ABI.
enum class Code : int32_t {
  ok = 0,
  cancelled = 1,
  unknown = 2,
  invalid_argument = 3,
  deadline_exceeded = 4,
  not_found = 5,
  already_exists = 6,
  permission_denied = 7,
  resource_exhausted = 8,
  failed_precondition = 9,
  aborted = 10,
  out_of_range = 11,
  unimplemented = 12,
  internal = 13,
  unavailable = 14,
  data_loss = 15,
  unauthenticated = 16,
};

/// "INVALID_ARGUMENT"; "UNKNOWN" for a number that is no code.
std::string_view name(Code code);

/// The code with this number; unknown for a number that is none.
Code code_from_number(int32_t number);

class Error;
/// Owns one reference to an Error, or is null. One pointer wide, and what there is to do about errors is not done where
/// it is used: a Status passes through every call, and has one most rarely.
class ErrorPointer {
 public:
  ErrorPointer() = default;
  ErrorPointer(std::nullptr_t) {}
  /// Takes over a reference that the caller owns: a new Error has one.
  static ErrorPointer adopt(const Error *error) {
    ErrorPointer pointer;
    pointer.error_ = error;
    return pointer;
  }

  ErrorPointer(const ErrorPointer &other) : error_(other.error_) {
    if (error_ != nullptr) [[unlikely]]
      ref(*error_);
  }
  ErrorPointer(ErrorPointer &&other) noexcept : error_(std::exchange(other.error_, nullptr)) {}
  ErrorPointer &operator=(ErrorPointer other) noexcept {
    std::swap(error_, other.error_);
    return *this;
  }
  ~ErrorPointer() {
    if (error_ != nullptr) [[unlikely]]
      unref(*error_);
  }

  const Error *get() const { return error_; }
  const Error *operator->() const { return error_; }
  const Error &operator*() const { return *error_; }
  explicit operator bool() const { return error_ != nullptr; }
  friend bool operator==(const ErrorPointer &, const ErrorPointer &) = default;
  friend bool operator==(const ErrorPointer &pointer, std::nullptr_t) { return pointer.error_ == nullptr; }

 private:
  [[gnu::cold]] static void ref(const Error &error) noexcept;
  [[gnu::cold]] static void unref(const Error &error) noexcept;

  const Error *error_ = nullptr;
};

/// One link of a cause chain. Immutable once shared; counted from inside, on any thread.
class Error {
 public:
  using Detail = std::pair<std::string, std::string>;

  Error(Code code, std::string message) : code_(code), message_(std::move(message)) {}
  Error &operator=(const Error &) = delete;
  /// Long cause chains are released without recursion.
  ~Error();

  Code code() const { return code_; }
  /// Who defines the sub-code: "tutti", "errno", "zlib", "cuda", ...
  const std::string &domain() const { return domain_; }
  int64_t subcode() const { return subcode_; }
  const std::string &message() const { return message_; }
  /// What this error follows from, or null.
  const ErrorPointer &cause() const { return cause_; }
  /// In the order they were added; a key appears once.
  const std::vector<Detail> &details() const { return details_; }
  /// The value of a detail, or null.
  const std::string *find_detail(std::string_view key) const;
  /// "INVALID_ARGUMENT: message [key=value]; caused by: ...", down the whole chain.
  std::string to_string() const;

 private:
  friend class ErrorPointer;
  friend class Status;

  /// What it says, with one reference of its own.
  Error(const Error &other);

  mutable std::atomic<int32_t> references_{1};
  Code code_;
  std::string domain_ = "tutti";
  int64_t subcode_ = 0;
  std::string message_;
  ErrorPointer cause_;
  std::vector<Detail> details_;
};

/// Ok, or an error. Cheap to copy. The with_ functions give a changed copy and leave an ok status ok.
class [[nodiscard]] Status {
 public:
  /// Ok.
  Status() = default;
  /// An error; Code::ok gives ok.
  Status(Code code, std::string message);
  /// The status of an error object; null is ok.
  static Status from_error(ErrorPointer error);

  bool ok() const { return error_ == nullptr; }
  Code code() const { return error_ ? error_->code() : Code::ok; }
  // What is read from a temporary is a copy, so that it can be kept.
  /// Empty when ok.
  const std::string &message() const &;
  std::string message() && { return std::as_const(*this).message(); }
  /// Null when ok.
  const ErrorPointer &error() const & { return error_; }
  ErrorPointer error() && { return std::move(error_); }
  /// The message of the deepest cause: what went wrong first.
  const Error *root_cause() const;

  /// With a detail added; an inner value of the same key is replaced.
  Status with_detail(std::string_view key, std::string_view value) const;
  Status with_domain(std::string_view domain, int64_t subcode) const;
  /// With the end of the cause chain extended by `cause`.
  Status with_cause(const Status &cause) const;
  /// A new error of the same code with this one as its cause: context gathered on the way up.
  Status wrap(std::string message) const;
  /// wrap() under another code.
  Status wrap(Code code, std::string message) const;

  /// "OK" or the error's text with its cause chain.
  std::string to_string() const;

 private:
  explicit Status(ErrorPointer error) : error_(std::move(error)) {}
  static Status own(std::unique_ptr<Error> error);

  ErrorPointer error_;
};

/// What the makers below come to, so that each use of one is little code.
[[gnu::cold]] Status status_of_pieces(Code code, std::initializer_list<Piece> pieces);

// One maker per code; the arguments are pieces of the message (base/text.h).
#define TUTTI_STATUS_MAKER(function, code)                                 \
  template <typename... Pieces>                                            \
  [[gnu::always_inline]] inline Status function(const Pieces &...pieces) { \
    return status_of_pieces(Code::code, {Piece(pieces)...});               \
  }
TUTTI_STATUS_MAKER(cancelled, cancelled)
TUTTI_STATUS_MAKER(unknown_error, unknown)
TUTTI_STATUS_MAKER(invalid_argument, invalid_argument)
TUTTI_STATUS_MAKER(deadline_exceeded, deadline_exceeded)
TUTTI_STATUS_MAKER(not_found, not_found)
TUTTI_STATUS_MAKER(already_exists, already_exists)
TUTTI_STATUS_MAKER(permission_denied, permission_denied)
TUTTI_STATUS_MAKER(resource_exhausted, resource_exhausted)
TUTTI_STATUS_MAKER(failed_precondition, failed_precondition)
TUTTI_STATUS_MAKER(aborted, aborted)
TUTTI_STATUS_MAKER(out_of_range, out_of_range)
TUTTI_STATUS_MAKER(unimplemented, unimplemented)
TUTTI_STATUS_MAKER(internal_error, internal)
TUTTI_STATUS_MAKER(unavailable, unavailable)
TUTTI_STATUS_MAKER(data_loss, data_loss)
TUTTI_STATUS_MAKER(unauthenticated, unauthenticated)
#undef TUTTI_STATUS_MAKER

/// The status for an errno value: code by meaning, message "<what>: <errno text>", domain "errno".
Status status_from_errno(int error_number, std::string_view what);

/// A T, or the Status that says why there is none. Never holds an ok Status without a value.
template <typename T>
class [[nodiscard]] Result {
  static_assert(!std::is_same_v<std::remove_cv_t<T>, Status> && !std::is_reference_v<T>);

 public:
  using value_type = T;

  Result(T value) : value_(std::move(value)) {}
  /// From anything that converts to T.
  template <typename U>
  requires(std::is_convertible_v<U &&, T> && !std::is_convertible_v<U &&, Status> &&
           !std::is_same_v<std::remove_cvref_t<U>, Result>) Result(U &&value)
      : value_(std::forward<U>(value)) {}
  /// From a bad status. An ok one is a mistake of the caller and becomes an internal error.
  Result(Status status) : status_(std::move(status)) {
    if (status_.ok()) status_ = Status(Code::internal, "a Result was made from an ok status without a value");
  }
  /// From the result of a type that converts, such as a derived pointer.
  template <typename U>
  requires(std::is_convertible_v<U, T> && !std::is_same_v<U, T>) Result(Result<U> &&other) {
    if (other.ok()) {
      value_.emplace(std::move(other).value());
    } else {
      status_ = other.status();
    }
  }

  bool ok() const { return value_.has_value(); }
  const Status &status() const & { return status_; }
  Status status() && { return std::move(status_); }
  Code code() const { return status_.code(); }

  // All of these require ok().
  T &value() & { return *value_; }
  const T &value() const & { return *value_; }
  T value() && { return std::move(*value_); }
  T &operator*() & { return *value_; }
  const T &operator*() const & { return *value_; }
  T operator*() && { return std::move(*value_); }
  T *operator->() { return &*value_; }
  const T *operator->() const { return &*value_; }
  /// Moves the value out.
  T take() { return std::move(*value_); }

  /// The value, or `otherwise` when there is none.
  T value_or(T otherwise) const & { return ok() ? *value_ : std::move(otherwise); }

 private:
  std::optional<T> value_;
  Status status_;
};

// The status of what a call gave: of a temporary, moved out.
inline const Status &status_of(const Status &status) { return status; }
inline Status status_of(Status &&status) { return std::move(status); }
template <typename T>
const Status &status_of(const Result<T> &result) {
  return result.status();
}
template <typename T>
Status status_of(Result<T> &&result) {
  return std::move(result).status();
}

}  // namespace tutti::impl::base

#define TUTTI_JOIN_INNER_(a, b) a##b
#define TUTTI_JOIN_(a, b) TUTTI_JOIN_INNER_(a, b)

/// Leaves the function with the status of `expression` (a Status or a Result) if that is bad.
#define TUTTI_TRY(...)                                                                               \
  do {                                                                                               \
    auto &&tutti_outcome_ = (__VA_ARGS__);                                                           \
    if (!tutti_outcome_.ok()) [[unlikely]]                                                           \
      return ::tutti::impl::base::status_of(std::forward<decltype(tutti_outcome_)>(tutti_outcome_)); \
  } while (false)

/// `declaration = value of the Result`, or leaves the function with its status: TUTTI_ASSIGN(auto x, f());
#define TUTTI_ASSIGN(declaration, ...) \
  TUTTI_ASSIGN_INNER_(TUTTI_JOIN_(tutti_result_, __COUNTER__), declaration, (__VA_ARGS__))
#define TUTTI_ASSIGN_INNER_(result, declaration, expression)                       \
  auto &&result = expression;                                                      \
  if (!result.ok()) [[unlikely]]                                                   \
    return ::tutti::impl::base::status_of(std::forward<decltype(result)>(result)); \
  declaration = std::move(result).value()

#endif  // TUTTI_BASE_STATUS_H_
