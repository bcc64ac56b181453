// SPDX-License-Identifier: Apache-2.0
//
// Transfers: GET requests for ranges of files, on one thread that drives all of them (libcurl's multi interface). A
// request is tried again, later and later, when it failed for a reason that may pass: a connection that cannot be made,
// is reset or goes silent, a body that ends too early, status 408, 429, 500, 502, 503 and 504.
//
//   auto request = transfers.start(url, 0, 512 << 10);
//   if (!transfers.wait(*request, [&] { return is_cancelled(); })) return ...;      // it goes on in the background
//   use(request->result());
//
// Threads: all functions of Transfers may be called from any thread. A Result is written before wait() returns true and
// never changes again. The destructor ends all requests; nobody may wait by then.
#ifndef TUTTI_HTTP_TRANSFERS_H_
#define TUTTI_HTTP_TRANSFERS_H_

#include <curl/curl.h>

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "http/settings.h"

namespace tutti::impl::http {

/// How a request has ended.
struct Result {
  int32_t code = 0;         ///< TUTTI_OK or why it failed
  std::string message;      ///< of the failure: method, URL and reason
  bool is_whole = false;    ///< the server gave the whole file instead of the range
  int64_t total_bytes = 0;  ///< of the file
  std::string version;      ///< the file's entity tag, or when it was modified; may be empty
  std::string body;
};

class Request;

class Transfers {
 public:
  explicit Transfers(Settings settings);
  ~Transfers();
  Transfers(const Transfers &) = delete;
  Transfers &operator=(const Transfers &) = delete;

  const Settings &settings() const { return settings_; }
  /// Asks for `size` bytes from `first` on.
  std::shared_ptr<Request> start(const std::string &url, int64_t first, int64_t size);
  /// Nobody wants the result any more.
  void abandon(const std::shared_ptr<Request> &request);
  /// Waits until the request has ended, or `is_cancelled`, which is asked every few milliseconds: false then.
  bool wait(const std::shared_ptr<Request> &request, const std::function<bool()> &is_cancelled);
  const Result &result(const Request &request) const;

 private:
  void run();
  void begin_due(std::vector<std::shared_ptr<Request>> &waiting);
  void begin(const std::shared_ptr<Request> &request);
  void end_finished();
  void end_idle_and_abandoned();
  void end(const std::shared_ptr<Request> &request, CURLcode outcome);
  int next_wait_ms() const;

  const Settings settings_;
  curl_slist *headers_ = nullptr;
  CURLM *const multi_;
  std::vector<std::shared_ptr<Request>> running_, delayed_;  // the thread's own
  mutable std::mutex mutex_;
  std::condition_variable ended_;
  std::vector<std::shared_ptr<Request>> new_;  // guarded by mutex_
  bool stops_ = false;                         // guarded by mutex_
  std::thread thread_;
};

}  // namespace tutti::impl::http

#endif  // TUTTI_HTTP_TRANSFERS_H_
