// SPDX-License-Identifier: Apache-2.0
//
// Request: one range of one file, tried as often as the settings allow. Used by Transfers alone.
//
// Threads: that of Transfers, but for `is_abandoned` and, guarded by the mutex of Transfers, `is_done`.
#ifndef TUTTI_HTTP_REQUEST_H_
#define TUTTI_HTTP_REQUEST_H_

#include <curl/curl.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "http/settings.h"
#include "http/transfers.h"

namespace tutti::impl::http {

using Clock = std::chrono::steady_clock;

class Request {
 public:
  Request(const Settings &settings, std::string url, int64_t first, int64_t size)
      : settings_(settings), url_(std::move(url)), first_(first), size_(size) {}

  /// A handle of libcurl for the next attempt; null without memory.
  CURL *open(curl_slist *headers);
  CURL *handle() const { return handle_.get(); }
  /// What an attempt has come to. True: the request has ended, with `result`. False: it is worth another attempt.
  bool finish(CURLcode outcome);
  /// Ends it as it is.
  void fail(int32_t code, const std::string &reason);
  bool may_retry() const { return attempts_ <= settings_.retries; }

  Result result;
  std::atomic<bool> is_abandoned{false};
  bool is_done = false;
  Clock::time_point due = Clock::now();  ///< of the next attempt
  Clock::time_point last_byte = due;     ///< of the running one

 private:
  struct CloseHandle {
    void operator()(CURL *handle) const { curl_easy_cleanup(handle); }
  };
  static size_t on_header(char *data, size_t size, size_t count, void *self);
  static size_t on_body(char *data, size_t size, size_t count, void *self);
  bool finish_body(long status);
  void finish_status(long status);
  bool retry(int32_t code, const std::string &reason);
  bool check_range();

  const Settings &settings_;
  const std::string url_;
  const int64_t first_, size_;
  std::unique_ptr<CURL, CloseHandle> handle_;
  char error_text_[CURL_ERROR_SIZE] = {};
  std::string content_range_;
  int64_t attempts_ = 0;
  bool is_too_large_ = false;
};

}  // namespace tutti::impl::http

#endif  // TUTTI_HTTP_REQUEST_H_
