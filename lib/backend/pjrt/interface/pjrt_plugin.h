// SPDX-License-Identifier: Apache-2.0
//
// A plug-in that speaks PJRT's C interface: opened, asked for its version, and called. Loaded libraries are never
// closed: they keep threads.
//
//   TUTTI_ASSIGN(PluginRef plugin, Plugin::open("/opt/libtpu.so"));
//   Call<abi::ClientCreate> call;
//   TUTTI_TRY(plugin->run(abi::kClientCreate, call));
//
// Threads: functions may be called from any thread.
#ifndef TUTTI_BACKEND_PJRT_INTERFACE_PJRT_PLUGIN_H_
#define TUTTI_BACKEND_PJRT_INTERFACE_PJRT_PLUGIN_H_

#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "backend/pjrt/interface/pjrt_abi.h"
#include "base/status.h"

namespace tutti::impl::backend::pjrt {

/// Arguments of one call, all zero. Plug-ins refuse structs smaller than those they were built with and take larger
/// ones, so zeros follow that `size` counts: fields that a newer plug-in appended are there, and absent.
template <typename Arguments>
struct Call : Arguments {
  unsigned char appended[128];

  Call() {
    std::memset(static_cast<void *>(this), 0, sizeof(*this));
    this->size = sizeof(*this);
  }
};

class Plugin;
using PluginRef = std::shared_ptr<const Plugin>;

class Plugin {
 public:
  /// Opens the library at an absolute path and initialises it; the same path gives the same plug-in. UNAVAILABLE with
  /// one sentence: what it does not export, or which version it has.
  static base::Result<PluginRef> open(const std::string &path);

  const std::string &path() const { return path_; }
  /// "0.115"
  std::string version() const;
  /// What it says of itself: {"stablehlo_current_version": "1.20.0", "xla_version": "2", ...}, for people.
  std::string attributes_json() const { return attributes_; }

  bool has(abi::Function function) const;
  template <typename Arguments>
  base::Status run(abi::Function function, Call<Arguments> &call) const {
    return run_raw(function, static_cast<abi::Head *>(&call));
  }
  /// Functions that destroy; nothing for NULL.
  void destroy(abi::Function function, void *object) const;
  /// Waits for the event, lets it go, and gives the error of what it stands for. OK for NULL. DEADLINE_EXCEEDED after
  /// so long, and then the event is never let go, since the device may still come back to it.
  base::Status wait(abi::Event *event, std::chrono::nanoseconds longest) const;
  bool is_ready(abi::Event *event) const;

 private:
  explicit Plugin(std::string path) : path_(std::move(path)) {}
  base::Status load();
  base::Status run_raw(abi::Function function, abi::Head *arguments) const;
  base::Status take(abi::Error *error) const;
  base::Status lacks(abi::Function function) const;
  base::Status wait_until_ready(abi::Event *event, std::chrono::nanoseconds longest) const;
  std::string read_attributes() const;

  const std::string path_;
  std::string attributes_;
  const abi::Table *table_ = nullptr;
};

}  // namespace tutti::impl::backend::pjrt

#endif  // TUTTI_BACKEND_PJRT_INTERFACE_PJRT_PLUGIN_H_
