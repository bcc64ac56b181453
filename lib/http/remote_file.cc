// SPDX-License-Identifier: Apache-2.0
#include "http/remote_file.h"

#include <tutti/status.h>

#include <algorithm>
#include <cstring>

namespace tutti::impl::http {

RemoteFile::~RemoteFile() {
  for (const auto &[block, request] : blocks_)
    transfers_.abandon(request);
}

Outcome RemoteFile::open(const IsCancelled &is_cancelled) {
  RequestPointer request;
  {
    const std::lock_guard lock(mutex_);
    request = fetch(0);
  }
  if (!transfers_.wait(request, is_cancelled)) return {TUTTI_CANCELLED, "the request was cancelled"};
  const Result &result = request->result;
  if (result.code != TUTTI_OK) return {result.code, result.message};
  size_ = result.total_bytes;
  is_whole_ = result.is_whole;
  version_ = result.version;
  return {};
}

// With mutex_ held.
RemoteFile::RequestPointer RemoteFile::fetch(int64_t block) {
  RequestPointer &request = blocks_[block];
  if (request == nullptr) request = transfers_.start(url_, block * block_bytes(), block_bytes());
  return request;
}

// With mutex_ held. Reading goes on behind this block, if it came from the one before.
void RemoteFile::fetch_ahead(int64_t block) {
  const bool is_in_order = block == last_block_ || block == last_block_ + 1;
  last_block_ = block;
  if (!is_in_order) return;
  const int64_t blocks = (size_ + block_bytes() - 1) / block_bytes();
  const int64_t end = std::min(blocks, block + 1 + transfers_.settings().blocks_ahead);
  for (int64_t next = block + 1; next < end; ++next)
    fetch(next);
}

// With mutex_ held. Several readers at once may want different places, so the farthest blocks go.
void RemoteFile::forget_behind(int64_t block) {
  const auto most = static_cast<size_t>(transfers_.settings().blocks_ahead) + 2;
  while (blocks_.size() > most) {
    const auto first = blocks_.begin(), last = std::prev(blocks_.end());
    const auto farthest = block - first->first > last->first - block ? first : last;
    if (farthest->first == block) break;
    transfers_.abandon(farthest->second);
    blocks_.erase(farthest);
  }
}

Outcome RemoteFile::check_version(const Result &result) const {
  if (result.total_bytes == size_ && result.version == version_ && !result.is_whole) return {};
  return {TUTTI_ABORTED, "GET " + url_ + ": the file has changed since it was opened"};
}

Outcome RemoteFile::read(int64_t offset, char *target, int64_t size, int64_t &got, const IsCancelled &is_cancelled) {
  const int64_t block = is_whole_ ? 0 : offset / block_bytes();
  RequestPointer request;
  {
    const std::lock_guard lock(mutex_);
    request = fetch(block);
    if (!is_whole_) {
      fetch_ahead(block);
      forget_behind(block);
    }
  }
  if (!transfers_.wait(request, is_cancelled)) return {TUTTI_CANCELLED, "the request was cancelled"};
  const Result &result = request->result;
  Outcome outcome{result.code, result.message};
  if (outcome.code == TUTTI_OK && !is_whole_) outcome = check_version(result);
  if (outcome.code != TUTTI_OK) {
    // Whoever asks again may have more luck.
    const std::lock_guard lock(mutex_);
    const auto found = blocks_.find(block);
    if (found != blocks_.end() && found->second == request) blocks_.erase(found);
    return outcome;
  }
  const int64_t begin = offset - block * block_bytes();
  got = std::min(size, static_cast<int64_t>(result.body.size()) - begin);
  std::memcpy(target, result.body.data() + begin, static_cast<size_t>(got));
  return {};
}

}  // namespace tutti::impl::http
