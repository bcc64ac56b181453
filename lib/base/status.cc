// SPDX-License-Identifier: Apache-2.0
#include "base/status.h"

#include <array>
#include <cerrno>
#include <cstring>

namespace tutti::impl::base {

namespace {

constexpr std::array<std::string_view, 17> kCodeNames = {
    "OK",        "CANCELLED",      "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
    "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
    "ABORTED",   "OUT_OF_RANGE",   "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
    "DATA_LOSS", "UNAUTHENTICATED"};

/// Never destroyed: a status may be asked while the process ends.
const std::string &no_message() {
  static const auto *const text = new std::string;
  return *text;
}

Code code_of_errno(int error_number) {
  switch (error_number) {
    case ENOENT:
      return Code::not_found;
    case EEXIST:
      return Code::already_exists;
    case EACCES:
    case EPERM:
    case EROFS:
      return Code::permission_denied;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case ENOMEM:
    case EMFILE:
    case ENFILE:
      return Code::resource_exhausted;
    case EINVAL:
    case ENAMETOOLONG:
      return Code::invalid_argument;
    case ENOTDIR:
    case EISDIR:
    case ENOTEMPTY:
    case EXDEV:
    case ELOOP:
    case EBUSY:
      return Code::failed_precondition;
    case EIO:
      return Code::data_loss;
    case ETIMEDOUT:
      return Code::deadline_exceeded;
    case ECANCELED:
      return Code::cancelled;
    case ENOSYS:
    case EOPNOTSUPP:
      return Code::unimplemented;
    case EAGAIN:
    case ECONNREFUSED:
    case ECONNRESET:
    case EPIPE:
    case EHOSTUNREACH:
    case ENETUNREACH:
      return Code::unavailable;
    default:
      return Code::unknown;
  }
}

// How much errors repeat of names, paths and values, which may be of any length, and of what others have to say.
constexpr size_t kMostOfPiece = 800, kMostOfContext = 1200, kMostOfMessage = size_t{64} << 10;

/// Leaves out the middle of what stands behind `begin`, whole characters, where it is longer than `limit`.
void shorten(std::string &text, size_t begin, size_t limit) {
  const size_t size = text.size() - begin;
  if (size <= limit) return;
  const auto is_inside = [&](size_t at) { return (static_cast<unsigned char>(text[at]) & 0xc0u) == 0x80u; };
  size_t from = begin + limit / 2, to = text.size() - limit / 3;
  for (int i = 0; i < 3 && is_inside(from); ++i)
    --from;
  for (int i = 0; i < 3 && is_inside(to); ++i)
    ++to;
  text.replace(from, to - from, concat(" ... (", size, " bytes in all) ... "));
}

std::string shortened(std::string text, size_t limit) {
  shorten(text, 0, limit);
  return text;
}

}  // namespace

std::string_view name(Code code) {
  const auto number = static_cast<size_t>(code);
  return number < kCodeNames.size() ? kCodeNames[number] : "UNKNOWN";
}

Code code_from_number(int32_t number) {
  return number >= 0 && static_cast<size_t>(number) < kCodeNames.size() ? static_cast<Code>(number) : Code::unknown;
}

void ErrorPointer::ref(const Error &error) noexcept { error.references_.fetch_add(1, std::memory_order_relaxed); }

void ErrorPointer::unref(const Error &error) noexcept {
  if (error.references_.fetch_sub(1, std::memory_order_release) != 1) return;
  // An acquire load in place of a fence: the same on x86 and understood by the thread sanitizer.
  error.references_.load(std::memory_order_acquire);
  delete &error;
}

Error::Error(const Error &other)
    : code_(other.code_),
      domain_(other.domain_),
      subcode_(other.subcode_),
      message_(other.message_),
      cause_(other.cause_),
      details_(other.details_) {}

Error::~Error() {
  // Takes the chain apart link by link as far as nobody else holds it.
  ErrorPointer link = std::move(cause_);
  while (link != nullptr && link->references_.load(std::memory_order_acquire) == 1) {
    ErrorPointer next = std::move(const_cast<Error &>(*link).cause_);
    link = std::move(next);
  }
}

const std::string *Error::find_detail(std::string_view key) const {
  for (const Detail &detail : details_) {
    if (detail.first == key) return &detail.second;
  }
  return nullptr;
}

std::string Error::to_string() const {
  std::string out;
  for (const Error *link = this; link != nullptr; link = link->cause_.get()) {
    if (link != this) out.append("; caused by: ");
    out.append(concat(name(link->code_), ": ", link->message_));
    if (link->details_.empty()) continue;
    out.append(" [");
    for (const Detail &detail : link->details_) {
      if (&detail != &link->details_.front()) out.append(", ");
      out.append(concat(detail.first, "=", detail.second));
    }
    out.push_back(']');
  }
  return out;
}

Status::Status(Code code, std::string message)
    : error_(ErrorPointer::adopt(code == Code::ok ? nullptr
                                                  : new Error(code, shortened(std::move(message), kMostOfMessage)))) {}

Status Status::from_error(ErrorPointer error) { return Status(std::move(error)); }

Status Status::own(std::unique_ptr<Error> error) { return Status(ErrorPointer::adopt(error.release())); }

const std::string &Status::message() const & { return error_ ? error_->message() : no_message(); }

const Error *Status::root_cause() const {
  const Error *link = error_.get();
  while (link != nullptr && link->cause() != nullptr)
    link = link->cause().get();
  return link;
}

Status Status::with_detail(std::string_view key, std::string_view value) const {
  if (ok()) return *this;
  auto changed = std::unique_ptr<Error>(new Error(*error_));
  std::string text = shortened(std::string(value), kMostOfPiece);
  for (Error::Detail &detail : changed->details_) {
    if (detail.first != key) continue;
    detail.second = std::move(text);
    return own(std::move(changed));
  }
  changed->details_.emplace_back(key, std::move(text));
  return own(std::move(changed));
}

Status Status::with_domain(std::string_view domain, int64_t subcode) const {
  if (ok()) return *this;
  auto changed = std::unique_ptr<Error>(new Error(*error_));
  changed->domain_ = domain;
  changed->subcode_ = subcode;
  return own(std::move(changed));
}

Status Status::with_cause(const Status &cause) const {
  if (ok() || cause.ok()) return *this;
  auto changed = std::unique_ptr<Error>(new Error(*error_));
  changed->cause_ = changed->cause_ ? Status(changed->cause_).with_cause(cause).error_ : cause.error_;
  return own(std::move(changed));
}

Status Status::wrap(std::string message) const { return wrap(code(), std::move(message)); }

Status Status::wrap(Code code, std::string message) const {
  if (ok()) return *this;
  auto outer = std::make_unique<Error>(code, shortened(std::move(message), kMostOfContext));
  outer->cause_ = error_;
  return own(std::move(outer));
}

std::string Status::to_string() const { return error_ ? error_->to_string() : "OK"; }

Status status_of_pieces(Code code, std::initializer_list<Piece> pieces) {
  std::string message;
  for (const Piece &piece : pieces) {
    const size_t begin = message.size();
    piece.append_to(message);
    shorten(message, begin, kMostOfPiece);
  }
  return Status(code, std::move(message));
}

Status status_from_errno(int error_number, std::string_view what) {
  // The GNU strerror_r may return a text of its own instead of filling the array.
  std::array<char, 256> text{};
  const char *described = strerror_r(error_number, text.data(), text.size());
  return Status(code_of_errno(error_number), concat(shortened(std::string(what), kMostOfContext), ": ", described))
      .with_domain("errno", error_number);
}

}  // namespace tutti::impl::base
