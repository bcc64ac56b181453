// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/generated/kernel_cache.h"

#include <cstdio>

#include "backend/cache_folder.h"
#include "base/file.h"
#include "base/hash/checksum.h"
#include "base/json.h"

namespace tutti::impl::backend::gpu {

using base::Json;
using base::JsonObject;
using base::JsonReader;
using base::Result;
using base::Status;

namespace {

constexpr int64_t kFormat = 1;
constexpr int64_t kMaximumBytes = int64_t{64} << 20;

}  // namespace

std::string KernelCache::path(std::string_view key) const {
  char name[48];
  std::snprintf(name, sizeof(name), "gpu-%016llx.kernels", static_cast<unsigned long long>(base::fnv1a64(key)));
  return base::concat(folder_, "/", name);
}

Result<std::string> KernelCache::load(std::string_view key) const {
  const std::string file = path(key);
  if (folder_.empty() || !base::path_exists(file)) return base::not_found("no kernels are cached for this source");
  TUTTI_TRY(check_private_file(file));
  TUTTI_ASSIGN(const std::string bytes, base::read_file(file, kMaximumBytes));
  const size_t line = bytes.find('\n');
  if (line == std::string::npos) return base::data_loss("kernel cache: '", file, "' has no first line");
  TUTTI_ASSIGN(const Json json, Json::parse(bytes.substr(0, line)));
  const JsonReader head(json, "kernel cache");
  TUTTI_ASSIGN(const int64_t format, head.get_integer("format"));
  if (format != kFormat)
    return base::failed_precondition("kernel cache: '", file, "' has format ", format, ", expected ", kFormat);
  TUTTI_ASSIGN(const int64_t checksum, head.get_integer("checksum"));
  TUTTI_ASSIGN(const int64_t key_bytes, head.get_integer("key_bytes"));
  TUTTI_ASSIGN(const int64_t image_bytes, head.get_integer("image_bytes"));
  const std::string_view rest = std::string_view(bytes).substr(line + 1);
  const auto size = static_cast<int64_t>(rest.size());
  if (key_bytes < 0 || key_bytes > size || image_bytes != size - key_bytes)
    return base::data_loss("kernel cache: '", file, "' has ", size, " bytes, expected ", key_bytes, " + ", image_bytes);
  if (checksum != static_cast<int64_t>(base::crc32c(rest)))
    return base::data_loss("kernel cache: the checksum of '", file, "' is wrong");
  if (rest.substr(0, static_cast<size_t>(key_bytes)) != key)
    return base::not_found("kernel cache: '", file, "' belongs to another source");
  return std::string(rest.substr(static_cast<size_t>(key_bytes)));
}

Status KernelCache::store(std::string_view key, std::string_view image) const {
  if (folder_.empty()) return Status();
  TUTTI_TRY(make_private_folder(folder_));
  const std::string rest = base::concat(key, image);
  const Json head = JsonObject{{"format", kFormat},
                               {"checksum", static_cast<int64_t>(base::crc32c(rest))},
                               {"key_bytes", static_cast<int64_t>(key.size())},
                               {"image_bytes", static_cast<int64_t>(image.size())}};
  const std::string file = path(key);
  TUTTI_TRY(base::write_file_atomically(file, base::concat(head.dump(), "\n", rest)));
  return make_private_file(file);
}

}  // namespace tutti::impl::backend::gpu
