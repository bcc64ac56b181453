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

#include <string>

#include "base/status.h"

namespace tutti::impl::backend::gpu {

/// An opened library, which is never closed, and the first name that was not found in it.
class OpenedLibrary {
 public:
  /// Looks where the system's loader looks, then in `folder`. UNAVAILABLE with the loader's sentence.
  static base::Result<OpenedLibrary> open(const std::string &file, const std::string &folder) {
    OpenedLibrary library;
    library.handle_ = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library.handle_ != nullptr) return library;
    const char *const reason = dlerror();
    const std::string sentence = reason != nullptr ? reason : "cannot be loaded";
    library.handle_ = dlopen((folder + "/" + file).c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library.handle_ != nullptr) return library;
    return base::unavailable(sentence);
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

/// What `load` gave the first time. Never destroyed: programs may be released while the process ends.
template <typename Table, base::Result<Table> (*load)()>
base::Result<const Table *> loaded_once() {
  static const auto *const loaded = new base::Result<Table>(load());
  if (!loaded->ok()) return loaded->status();
  return &loaded->value();
}

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_RUNTIME_OPENED_LIBRARY_H_
