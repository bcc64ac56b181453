// SPDX-License-Identifier: Apache-2.0
//
// RemoteFile: a file behind a URL, read in blocks. Whoever reads in order finds the next blocks on their way already. A
// server that gives no ranges gives the whole file once; it is kept as long as the file is open.
//
// What a file is must not change while it is open: an answer of another size or version is TUTTI_ABORTED.
//
// Threads: all functions may be called from any thread.
#ifndef TUTTI_HTTP_REMOTE_FILE_H_
#define TUTTI_HTTP_REMOTE_FILE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "http/request.h"
#include "http/transfers.h"

namespace tutti::impl::http {

/// A code with a text: TUTTI_OK, or why a call failed.
struct Outcome {
  int32_t code = 0;
  std::string message;
};

class RemoteFile {
 public:
  using IsCancelled = std::function<bool()>;

  RemoteFile(Transfers &transfers, std::string url) : transfers_(transfers), url_(std::move(url)) {}
  ~RemoteFile();

  /// Fetches the first block, and with it the size.
  Outcome open(const IsCancelled &is_cancelled);
  int64_t size_bytes() const { return size_; }
  /// The entity tag, or when it was modified; may be empty.
  const std::string &version() const { return version_; }
  /// Bytes from `offset` on, which lies within the file; at least one.
  Outcome read(int64_t offset, char *target, int64_t size, int64_t &got, const IsCancelled &is_cancelled);

 private:
  using RequestPointer = std::shared_ptr<Request>;

  int64_t block_bytes() const { return transfers_.settings().block_bytes; }
  RequestPointer fetch(int64_t block);
  void fetch_ahead(int64_t block);
  void forget_behind(int64_t block);
  Outcome check_version(const Result &result) const;

  Transfers &transfers_;
  const std::string url_;
  std::string version_;
  int64_t size_ = 0;
  bool is_whole_ = false;  // block 0 holds everything
  std::mutex mutex_;
  std::map<int64_t, RequestPointer> blocks_;  // guarded by mutex_
  int64_t last_block_ = 0;                    // guarded by mutex_
};

}  // namespace tutti::impl::http

#endif  // TUTTI_HTTP_REMOTE_FILE_H_
