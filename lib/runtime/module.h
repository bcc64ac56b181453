// SPDX-License-Identifier: Apache-2.0
//
// Module: a shared module of a plug-in, loaded by absolute path. It is closed with the object unless it was kept.
//
//   TUTTI_ASSIGN(Module module, Module::load("/usr/lib/tutti/plugins-0.1/tutti-cuda.so"));
//   TUTTI_ASSIGN(void *entry, module.symbol("tutti_backend_entry", "backend"));
//   module.keep();     // once code of it has run that may have left something behind
//
// Threads: load() may be called from any thread; an object belongs to one.
#ifndef TUTTI_RUNTIME_MODULE_H_
#define TUTTI_RUNTIME_MODULE_H_

#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"

namespace tutti::impl::runtime {

class Module {
 public:
  /// INVALID_ARGUMENT for a path that is not absolute or no regular file, NOT_FOUND when there is no file, UNAVAILABLE
  /// when it cannot be loaded, RESOURCE_EXHAUSTED where there is no memory for it.
  static base::Result<Module> load(const std::string &path);

  /// The address of what the module exports; UNAVAILABLE "is not a tutti <kind>".
  base::Result<void *> symbol(const char *name, std::string_view kind) const;
  /// Leaves it loaded for the life of the process.
  void keep() { (void)handle_.release(); }

 private:
  struct Close {
    void operator()(void *handle) const;
  };
  Module(std::string path, void *handle) : path_(std::move(path)), handle_(handle) {}

  std::string path_;
  std::unique_ptr<void, Close> handle_;
};

}  // namespace tutti::impl::runtime

#endif  // TUTTI_RUNTIME_MODULE_H_
