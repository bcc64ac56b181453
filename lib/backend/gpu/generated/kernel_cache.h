// SPDX-License-Identifier: Apache-2.0
//
// Machine code of kernels that outlives the process: one private file for each text that was compiled.
//
//   {"format": 1, "checksum": crc32c of what follows, "key_bytes": .., "image_bytes": ..}
//   <key><image>
//
// The key is whole in the file: compiler, version, kind of device, the headers' hash and the text; its hash is the
// file's name. The folder is that of backend/cache_folder.h; "" keeps nothing. Files are written aside and renamed. A
// file that is damaged, of another key, or that another user could have written is as good as none.
//
// Threads: any.
#ifndef TUTTI_BACKEND_GPU_GENERATED_KERNEL_CACHE_H_
#define TUTTI_BACKEND_GPU_GENERATED_KERNEL_CACHE_H_

#include <string>
#include <string_view>

#include "base/status.h"

namespace tutti::impl::backend::gpu {

class KernelCache {
 public:
  explicit KernelCache(std::string folder) : folder_(std::move(folder)) {}

  std::string path(std::string_view key) const;
  /// The image that was stored for the key; NOT_FOUND when there is none, another error says what is wrong with it.
  base::Result<std::string> load(std::string_view key) const;
  base::Status store(std::string_view key, std::string_view image) const;

 private:
  std::string folder_;
};

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_GENERATED_KERNEL_CACHE_H_
