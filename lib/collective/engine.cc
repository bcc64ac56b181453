// SPDX-License-Identifier: Apache-2.0
#include "collective/engine.h"

#include <cstddef>
#include <string_view>

#include "backend/host_services.h"

namespace tutti::impl::collective {

using backend::ErrorSink;
using base::Result;
using base::Status;

namespace {

int32_t give_status(tutti_error_sink *sink, const Status &status) {
  if (status.ok()) return 0;
  ErrorSink::set(sink, static_cast<int32_t>(status.code()), status.to_string().c_str());
  return static_cast<int32_t>(status.code());
}

int32_t put(void *user, const char *key, const void *bytes, uint64_t length, tutti_error_sink *sink) {
  auto &addresses = *static_cast<AddressTable *>(user);
  return give_status(sink, addresses.put(key, {static_cast<const char *>(bytes), static_cast<size_t>(length)}));
}

int32_t get(void *user, const char *key, tutti_bytes_writer write, void *writer_user, tutti_error_sink *sink) {
  const Result<std::string> value = static_cast<AddressTable *>(user)->get(key);
  if (value.ok()) write(writer_user, value->data(), value->size());
  return give_status(sink, value.status());
}

int32_t is_awaited(void *user, int32_t peer) { return static_cast<AddressTable *>(user)->is_awaited(peer) ? 1 : 0; }

Status with_peer(Status status, int32_t peer) {
  return status.ok() || peer < 0 ? status : status.with_detail("rank", std::to_string(peer));
}

}  // namespace

std::optional<int32_t> failed_peer(const Status &status, int32_t size) {
  const std::string *const text = status.ok() ? nullptr : status.error()->find_detail("rank");
  const auto rank = text == nullptr ? std::nullopt : base::parse_integer(*text);
  if (!rank || *rank < 0 || *rank >= size) return std::nullopt;
  return static_cast<int32_t>(*rank);
}

Result<EngineRef> Engine::create(tutti_engine_entry_function entry, std::string_view build_id) {
  const tutti_engine_api *const api = entry(TUTTI_ENGINE_ABI_VERSION);
  if (api == nullptr)
    return base::unavailable("the engine refuses plug-in interface version ", TUTTI_ENGINE_ABI_VERSION);
  constexpr size_t kLeast = offsetof(tutti_engine_api, interrupt) + sizeof(api->interrupt);  // not what is appended
  if (api->struct_size < kLeast)
    return base::unavailable("the engine's table has ", api->struct_size, " bytes, expected at least ", kLeast);
  if (api->abi_version != TUTTI_ENGINE_ABI_VERSION)
    return base::unavailable("the engine was built for plug-in interface version ", api->abi_version,
                             ", this library has version ", TUTTI_ENGINE_ABI_VERSION);
  // Engines of other projects have none.
  const std::string_view own_id = api->build_id == nullptr ? "" : api->build_id;
  if (!build_id.empty() && !own_id.empty() && build_id != own_id)
    return base::unavailable("engine '", api->name, "' has build id ", base::quoted(own_id), ", this library has ",
                             base::quoted(build_id), ": install both from one build");
  return EngineRef(new Engine(api));
}

Mesh::Mesh(EngineRef engine, AddressTable &addresses) : engine_(std::move(engine)), addresses_(addresses) {
  host_.struct_size = sizeof(host_);
  host_.user = &addresses_;
  host_.put = put;
  host_.get = get;
  host_.set_error = ErrorSink::set;
  host_.is_awaited = is_awaited;
}

Mesh::~Mesh() { engine_->api_->close(handle_); }

Result<std::unique_ptr<Mesh>> Engine::connect(const MeshOptions &options, AddressTable &addresses) const {
  std::unique_ptr<Mesh> mesh(new Mesh(shared_from_this(), addresses));
  const tutti_connect_request request = {.struct_size = sizeof(request),
                                         .rank = options.rank,
                                         .size = options.size,
                                         .host = options.host.c_str(),
                                         .timeout_ms = options.timeout_ms};
  ErrorSink sink;
  int32_t peer = -1;
  const Status status = sink.take(api_->connect(&mesh->host_, &request, &mesh->handle_, &peer, sink.handle()));
  TUTTI_TRY(with_peer(status, peer));
  return mesh;
}

Status Mesh::exchange(const Exchange &exchange) {
  int32_t peer = -1;
  const tutti_exchange request = {.struct_size = sizeof(request),
                                  .sends = exchange.sends.data(),
                                  .receives = exchange.receives.data(),
                                  .send_count = static_cast<int32_t>(exchange.sends.size()),
                                  .receive_count = static_cast<int32_t>(exchange.receives.size()),
                                  .timeout_ms = exchange.timeout_ms,
                                  .flags = exchange.uninterrupted ? uint64_t{TUTTI_EXCHANGE_UNINTERRUPTED} : 0,
                                  .failed_peer = &peer};
  ErrorSink sink;
  const Status status = sink.take(engine_->api_->exchange(handle_, &request, sink.handle()));
  return with_peer(status, peer);
}

void Mesh::interrupt() { engine_->api_->interrupt(handle_); }

}  // namespace tutti::impl::collective
