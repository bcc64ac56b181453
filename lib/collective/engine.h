// SPDX-License-Identifier: Apache-2.0
//
// The library's side of <tutti/plugin/collective.h>: an engine, whose table has been checked, and a mesh of it, which
// carries messages between this process and all others of a cluster.
//
//   TUTTI_ASSIGN(EngineRef engine, Engine::create(entry, build_id()));
//   TUTTI_ASSIGN(auto mesh, engine->connect({.rank = 1, .size = 2, .host = "node1"}, table));
//   TUTTI_TRY(mesh->exchange({.sends = sends, .receives = receives, .timeout_ms = 1000}));
//
// Threads: an engine may be shared. A mesh belongs to one thread, on which it is connected and closed too; interrupt()
// may be called from any.
#ifndef TUTTI_COLLECTIVE_ENGINE_H_
#define TUTTI_COLLECTIVE_ENGINE_H_

#include <tutti/plugin/collective.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"

namespace tutti::impl::collective {

/// What all ranks of a mesh share while they connect.
class AddressTable {
 public:
  virtual ~AddressTable() = default;
  virtual base::Status put(const char *key, std::string_view bytes) = 0;
  /// Waits for the key.
  virtual base::Result<std::string> get(const char *key) = 0;
  /// False once it is known that the rank has ended, so that nobody need wait for it. Called from any thread.
  virtual bool is_awaited(int32_t) { return true; }
};

struct MeshOptions {
  int32_t rank = 0;
  int32_t size = 2;
  /// At which the others reach this process.
  std::string host;
  int64_t timeout_ms = 600000;
};

struct Exchange {
  std::span<const tutti_message> sends, receives;
  int64_t timeout_ms = 600000;
  bool uninterrupted = false;  ///< interrupt() has no effect on it
};

/// The rank that the error of an exchange, or of connecting, names; nothing where it names none of 0 .. size-1.
std::optional<int32_t> failed_peer(const base::Status &status, int32_t size);

class Engine;
using EngineRef = std::shared_ptr<const Engine>;

class Mesh {
 public:
  ~Mesh();
  Mesh(const Mesh &) = delete;

  /// Sends and receives. The error has the detail "rank" where the engine knows with whom it failed; after one the mesh
  /// can only be destroyed, which the other sides notice at once.
  base::Status exchange(const Exchange &exchange);
  void interrupt();

 private:
  friend class Engine;
  Mesh(EngineRef engine, AddressTable &addresses);

  const EngineRef engine_;
  AddressTable &addresses_;
  tutti_engine_host host_{};
  tutti_mesh *handle_ = nullptr;
};

class Engine : public std::enable_shared_from_this<Engine> {
 public:
  /// UNAVAILABLE with one sentence when the table cannot be used. An empty build id takes any.
  static base::Result<EngineRef> create(tutti_engine_entry_function entry, std::string_view build_id);

  std::string name() const { return api_->name; }
  /// All ranks call it at the same time. `addresses` is used until it returns.
  base::Result<std::unique_ptr<Mesh>> connect(const MeshOptions &options, AddressTable &addresses) const;

 private:
  friend class Mesh;
  explicit Engine(const tutti_engine_api *api) : api_(api) {}

  const tutti_engine_api *const api_;
};

}  // namespace tutti::impl::collective

#endif  // TUTTI_COLLECTIVE_ENGINE_H_
