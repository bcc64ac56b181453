// SPDX-License-Identifier: Apache-2.0
//
// What the HTTP file system can be told: a JSON object, {"timeout_ms": 5000, "headers": ["Authorization: Bearer ..."]}.
#ifndef TUTTI_HTTP_SETTINGS_H_
#define TUTTI_HTTP_SETTINGS_H_

#include <cstdint>
#include <string>
#include <vector>

namespace tutti::impl::http {

struct Settings {
  int64_t block_bytes = int64_t{512} << 10;  ///< of one range request
  int64_t blocks_ahead = 2;                  ///< of a file that is read in order, fetched before they are asked for
  int64_t connections = 8;                   ///< requests at a time, of all files
  int64_t connect_timeout_ms = 10000;        ///< for a connection
  int64_t timeout_ms = 30000;                ///< without a byte, after which a request has failed
  int64_t retries = 4;                       ///< of a request that failed for a reason that may pass
  int64_t retry_delay_ms = 200;              ///< before the first of them, then twice as long each time
  int64_t redirects = 5;                     ///< to follow at most
  int64_t largest_download_bytes = int64_t{256} << 20;  ///< of a file whose server gives no ranges, kept in memory
  std::vector<std::string> headers;                     ///< to send with each request, "Name: value"
  std::string ca_file;                                  ///< certificates to trust instead of the system's
  std::string proxy;                                    ///< none unless given; the environment is not asked

  /// Throws std::invalid_argument saying which key is wrong and why. `json` may be null.
  static Settings parse(const char *json);
};

}  // namespace tutti::impl::http

#endif  // TUTTI_HTTP_SETTINGS_H_
