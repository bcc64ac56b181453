// SPDX-License-Identifier: Apache-2.0
//
// A library that is opened at run time, and the table of its functions.
//
//   Result<Table> load_table() {
//     TUTTI_ASSIGN(OpenedLibrary library, OpenedLibrary::open("libexample.so.1", "/usr/local/cuda/lib64"));
//     Table table;
//     library.find(table.exampleCreate, "exampleCreate");
//     TUTTI_TRY(library.all_found("libexample.so.1"));
//     return table;
//   }
//   Result<const Table *> example() { return loaded_once<Table, load_table>(); }
//
// Threads: loaded_once may be called from any thread.
#ifndef TUTTI_BACKEND_GPU_RUNTIME_OPENED_LIBRARY_H_
#define TUTTI_BACKEND_GPU_RUNTIME_OPENED_LIBRARY_H_

#include <dlfcn.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include "base/shared_library.h"
#include "base/status.h"

namespace tutti::impl::backend::gpu {

/// An opened library, which is never closed, and the first name that was not found in it.
class OpenedLibrary {
 public:
  /// Looks where the system's loader looks, then in `folder`. UNAVAILABLE with the loader's sentence, or
  /// RESOURCE_EXHAUSTED.
  static base::Result<OpenedLibrary> open(const std::string &file, const std::string &folder) {
    OpenedLibrary library;
    const base::Result<void *> found = base::open_shared_library(file);
    if (!found.ok() && found.status().code() != base::Code::unavailable) return found.status();
    if (found.ok()) {
      library.handle_ = *found;
      return library;
    }
    const base::Result<void *> in_folder = base::open_shared_library(folder + "/" + file);
    if (!in_folder.ok())
      return in_folder.status().code() == base::Code::unavailable ? found.status() : in_folder.status();
    library.handle_ = *in_folder;
    return library;
  }

  /// Null where it is missing.
  template <typename Function>
  void find_optional(Function &function, const char *name) const {
    function = reinterpret_cast<Function>(dlsym(handle_, name));
  }

  template <typename Function>
  void find(Function &function, const char *name) {
    find_optional(function, name);
    if (function == nullptr && missing_.empty()) missing_ = name;
  }

  base::Status all_found(const std::string &file) const {
    return missing_.empty() ? base::Status() : base::unavailable(file, " has no ", missing_);
  }

 private:
  void *handle_ = nullptr;
  std::string missing_;
};

/// What `load` gave the first time, or the first time that there was memory for it. Never destroyed: programs may be
/// released while the process ends.
template <typename Table, base::Result<Table> (*load)()>
base::Result<const Table *> loaded_once() {
  static std::mutex mutex;
  static std::atomic<const base::Result<Table> *> loaded{nullptr};
  const base::Result<Table> *found = loaded.load(std::memory_order_acquire);
  if (found == nullptr) {
    const std::lock_guard guard(mutex);
    found = loaded.load(std::memory_order_relaxed);
    if (found == nullptr) {
      auto given = std::make_unique<const base::Result<Table>>(load());
      if (!given->ok() && given->status().code() == base::Code::resource_exhausted) return given->status();
      found = given.release();
      loaded.store(found, std::memory_order_release);
    }
  }
  if (!found->ok()) return found->status();
  return &found->value();
}

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_RUNTIME_OPENED_LIBRARY_H_
