// SPDX-License-Identifier: Apache-2.0
//
// Range requests as RFC 9110 (sections 14 and 15) has them.
#include "http/request.h"

#include <tutti/status.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <string_view>

namespace tutti::impl::http {
namespace {

constexpr long kOk = 200, kPartial = 206, kRangeNotSatisfiable = 416;
constexpr int64_t kLongestDelayMs = 10000;

bool may_pass(long status) {
  return status == 408 || status == 429 || status == 500 || status == 502 || status == 503 || status == 504;
}

bool may_pass(CURLcode outcome) {
  switch (outcome) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_PARTIAL_FILE:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
      return true;
    default:
      return false;
  }
}

int32_t code_of(long status) {
  switch (status) {
    case 401:
    case 407:
      return TUTTI_UNAUTHENTICATED;
    case 403:
      return TUTTI_PERMISSION_DENIED;
    case 404:
    case 410:
      return TUTTI_NOT_FOUND;
    default:
      return may_pass(status) ? TUTTI_UNAVAILABLE : TUTTI_FAILED_PRECONDITION;
  }
}

int32_t code_of(CURLcode outcome) {
  if (may_pass(outcome)) return TUTTI_UNAVAILABLE;
  if (outcome == CURLE_URL_MALFORMAT || outcome == CURLE_UNSUPPORTED_PROTOCOL) return TUTTI_INVALID_ARGUMENT;
  if (outcome == CURLE_PEER_FAILED_VERIFICATION || outcome == CURLE_SSL_CACERT_BADFILE) return TUTTI_UNAUTHENTICATED;
  return TUTTI_FAILED_PRECONDITION;
}

// The value of a header line of this name, or nothing.
std::string_view value_of(std::string_view line, std::string_view name) {
  const auto same = [](char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == b; };
  const bool has_name = line.size() > name.size() && line[name.size()] == ':' &&
                        std::equal(name.begin(), name.end(), line.begin(), [&](char b, char a) { return same(a, b); });
  if (!has_name) return {};
  line.remove_prefix(name.size() + 1);
  const size_t begin = line.find_first_not_of(" \t"), end = line.find_last_not_of(" \t\r\n");
  return begin == std::string_view::npos ? std::string_view() : line.substr(begin, end + 1 - begin);
}

}  // namespace

CURL *Request::open(curl_slist *headers) {
  if (handle_ == nullptr) handle_.reset(curl_easy_init());
  CURL *const handle = handle_.get();
  if (handle == nullptr) return nullptr;
  ++attempts_;
  last_byte = Clock::now();
  result = {};
  content_range_.clear();
  is_too_large_ = false;
  error_text_[0] = '\0';
  const std::string range = std::to_string(first_) + "-" + std::to_string(first_ + size_ - 1);
  const bool is_secure = url_.compare(0, 6, "https:") == 0;
  const auto set = [handle](CURLoption option, auto value) { (void)curl_easy_setopt(handle, option, value); };
  set(CURLOPT_URL, url_.c_str());
  set(CURLOPT_RANGE, range.c_str());
  set(CURLOPT_HTTPHEADER, headers);
  set(CURLOPT_USERAGENT, "tutti");
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  // Never from a connection that is checked to one that is not.
  set(CURLOPT_REDIR_PROTOCOLS_STR, is_secure ? "https" : "http,https");
  set(CURLOPT_FOLLOWLOCATION, 1L);
  set(CURLOPT_MAXREDIRS, static_cast<long>(settings_.redirects));
  set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(settings_.connect_timeout_ms));
  set(CURLOPT_PROXY, settings_.proxy.c_str());
  if (!settings_.ca_file.empty()) set(CURLOPT_CAINFO, settings_.ca_file.c_str());
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_ERRORBUFFER, error_text_);
  set(CURLOPT_HEADERFUNCTION, on_header);
  set(CURLOPT_HEADERDATA, this);
  set(CURLOPT_WRITEFUNCTION, on_body);
  set(CURLOPT_WRITEDATA, this);
  set(CURLOPT_PRIVATE, this);
  return handle;
}

size_t Request::on_header(char *data, size_t size, size_t count, void *self) {
  auto &request = *static_cast<Request *>(self);
  const std::string_view line(data, size * count);
  request.last_byte = Clock::now();
  try {
    if (line.compare(0, 5, "HTTP/") == 0) {
      // A new answer, after a redirect.
      request.content_range_.clear();
      request.result.version.clear();
    }
    if (const std::string_view range = value_of(line, "content-range"); !range.empty()) request.content_range_ = range;
    const std::string_view tag = value_of(line, "etag"), modified = value_of(line, "last-modified");
    if (!tag.empty()) request.result.version = tag;
    if (!modified.empty() && request.result.version.empty()) request.result.version = modified;
  } catch (...) {
    return 0;
  }
  return size * count;
}

size_t Request::on_body(char *data, size_t size, size_t count, void *self) {
  auto &request = *static_cast<Request *>(self);
  request.last_byte = Clock::now();
  long status = 0;
  (void)curl_easy_getinfo(request.handle(), CURLINFO_RESPONSE_CODE, &status);
  const size_t bytes = size * count;
  // The text of an error page is not kept.
  if (status != kOk && status != kPartial) return bytes;
  const int64_t most = status == kOk ? request.settings_.largest_download_bytes : request.size_;
  if (static_cast<int64_t>(request.result.body.size() + bytes) > most) {
    request.is_too_large_ = true;
    return 0;
  }
  try {
    request.result.body.append(data, bytes);
  } catch (...) {
    return 0;
  }
  return bytes;
}

void Request::fail(int32_t code, const std::string &reason) {
  result = {};
  result.code = code;
  result.message = "GET " + url_ + " (bytes " + std::to_string(first_) + " to " + std::to_string(first_ + size_ - 1) +
                   "): " + reason;
  if (attempts_ > 1) result.message += ", after " + std::to_string(attempts_) + " attempts";
}

bool Request::retry(int32_t code, const std::string &reason) {
  fail(code, reason);
  if (!may_retry()) return true;
  const int64_t delay = settings_.retry_delay_ms << std::min<int64_t>(attempts_ - 1, 20);
  due = Clock::now() + std::chrono::milliseconds(std::min(delay, std::max(kLongestDelayMs, settings_.retry_delay_ms)));
  return false;
}

// "bytes 0-499/1234"
bool Request::check_range() {
  long long first = -1, last = -1, total = -1;
  const bool is_read = std::sscanf(content_range_.c_str(), "bytes %lld-%lld/%lld", &first, &last, &total) == 3;
  if (!is_read || first != first_ || last < first || last >= total || last - first >= size_) return false;
  result.total_bytes = total;
  return last == std::min<int64_t>(first_ + size_, total) - 1;
}

bool Request::finish_body(long status) {
  const auto got = static_cast<int64_t>(result.body.size());
  if (status == kOk) {
    result.is_whole = true;
    result.total_bytes = got;
    return true;
  }
  if (!check_range()) {
    fail(TUTTI_DATA_LOSS, "the server sent another range: '" + content_range_.substr(0, 200) + "'");
    return true;
  }
  const int64_t expected = std::min(size_, result.total_bytes - first_);
  if (got == expected) return true;
  return retry(TUTTI_UNAVAILABLE,
               "the answer ended after " + std::to_string(got) + " of " + std::to_string(expected) + " bytes");
}

// An answer without contents that is no failure: nothing is behind the end of an empty file.
void Request::finish_status(long status) {
  if (status == kRangeNotSatisfiable && first_ == 0) {
    result.body.clear();
    result.total_bytes = 0;
    result.is_whole = true;
    return;
  }
  if (status == kRangeNotSatisfiable)
    return fail(TUTTI_DATA_LOSS, "the requested range is beyond the end of the file, which has become shorter");
  fail(code_of(status), "status " + std::to_string(status));
}

bool Request::finish(CURLcode outcome) {
  long status = 0;
  (void)curl_easy_getinfo(handle(), CURLINFO_RESPONSE_CODE, &status);
  if (is_too_large_ && status == kOk) {
    fail(TUTTI_RESOURCE_EXHAUSTED,
         "the server does not support range requests, and the whole file is larger than largest_download_bytes, " +
             std::to_string(settings_.largest_download_bytes));
    return true;
  }
  if (is_too_large_) {
    fail(TUTTI_DATA_LOSS, "the server sent more than was requested");
    return true;
  }
  if (outcome != CURLE_OK) {
    const std::string reason = error_text_[0] != '\0' ? error_text_ : curl_easy_strerror(outcome);
    if (may_pass(outcome)) return retry(TUTTI_UNAVAILABLE, reason);
    fail(code_of(outcome), reason);
    return true;
  }
  if (may_pass(status)) return retry(code_of(status), "status " + std::to_string(status));
  if (status == kOk || status == kPartial) return finish_body(status);
  finish_status(status);
  return true;
}

}  // namespace tutti::impl::http
