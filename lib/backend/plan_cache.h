// SPDX-License-Identifier: Apache-2.0
//
// Times of kernels that outlive the process: one private JSON file for each kind of processor or GPU, shared by
// processes and library versions.
//
//   {"format": 2, "processor": "...", "checksum": crc32c of the text of "times",
//    "times": {"<library> / <oneDNN>": {"<shape>": {"<candidate>": [seconds, fixed seconds], ...}, ...}}}
//
// The folder is that of backend/cache_folder.h; "" keeps nothing. Files are replaced as a whole; of two processes that
// write at the same time the later one keeps what it had read and its own. A file that is damaged, foreign or of
// another processor is as good as none: nothing in it is trusted but times, which are checked to be numbers that make
// sense.
//
// Threads: functions may be called from any thread; the caller sees to it that one thread writes at a time.
#ifndef TUTTI_BACKEND_PLAN_CACHE_H_
#define TUTTI_BACKEND_PLAN_CACHE_H_

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "base/status.h"

namespace tutti::impl::backend {

/// What a run takes, and the part of it that is the same for any number of rows.
struct RunTime {
  double seconds = 0;
  double fixed = 0;

  /// With so many times the rows.
  RunTime scaled(double factor) const { return {fixed + (seconds - fixed) * factor, fixed}; }
  friend bool operator==(const RunTime &, const RunTime &) = default;
};
/// By candidate; none = it cannot do this.
using TimesByCandidate = std::map<std::string, std::optional<RunTime>, std::less<>>;
/// By shape, pass and threads.
using TimesByShape = std::map<std::string, TimesByCandidate, std::less<>>;

/// What times are of.
struct DeviceFingerprint {
  std::string kind;     ///< "cpu", "gpu": the file's name begins with it
  std::string model;    ///< which one, as exactly as times depend on it
  std::string version;  ///< of the code that was timed
};

class PlanCache {
 public:
  /// The folder "" = none.
  PlanCache(std::string folder, DeviceFingerprint fingerprint)
      : folder_(std::move(folder)), fingerprint_(std::move(fingerprint)) {}

  bool is_off() const { return folder_.empty(); }
  std::string path() const;
  /// What is there for this version; empty when there is no file. An error says why a file cannot be used.
  base::Result<TimesByShape> load() const;
  /// The same for a table that remembers in `loaded` what it has read: empty when that was this file, when the cache is
  /// off, and with a line for the log when the file cannot be used.
  TimesByShape load_once(std::set<std::string> &loaded, const std::function<void(const std::string &line)> &log) const;
  /// Adds to the file, making it and its folder if needed.
  base::Status store(const TimesByShape &times) const;

 private:
  std::string folder_;
  DeviceFingerprint fingerprint_;
};

}  // namespace tutti::impl::backend

#endif  // TUTTI_BACKEND_PLAN_CACHE_H_
