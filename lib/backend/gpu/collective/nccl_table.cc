// SPDX-License-Identifier: Apache-2.0
//
// tutti_collective_table over NCCL.
#include <array>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "backend/gpu/collective/nccl_clique.h"
#include "backend/gpu/program/gpu_device.h"
#include "backend/gpu/runtime/collective_table.h"
#include "backend/plugin_side.h"
#include "base/json.h"

namespace tutti::impl::backend::gpu {

using base::Result;
using base::Status;

namespace {

NcclClique &clique_of(tutti_clique *handle) { return *reinterpret_cast<NcclClique *>(handle); }

/// NCCL, when it connects these devices.
Result<const Nccl *> check_devices(tutti_device *const *devices, int32_t count, int32_t flags) {
  for (int32_t a = 0; a < count; ++a) {
    const GpuDevice &device = GpuDevice::of(devices[a]);
    for (int32_t b = 0; b < a; ++b) {
      const GpuDevice &other = GpuDevice::of(devices[b]);
      if (device.ordinal == other.ordinal) {
        return base::unimplemented("devices ", other.name(), " and ", device.name(), " are both on GPU ",
                                   device.ordinal, ", and NCCL connects different GPUs");
      }
    }
  }
  if ((flags & ~TUTTI_CLIQUE_REPEATABLE) != 0) return base::unimplemented("cliques with flags ", flags);
  if ((flags & TUTTI_CLIQUE_REPEATABLE) != 0) TUTTI_TRY(platform::check_sums_repeat());
  return platform::nccl();
}

int32_t check(tutti_device *const *devices, int32_t count, int32_t flags, tutti_error_sink *sink) {
  return guarded(GpuDevice::of(devices[0]).host(), sink,
                 [&]() -> Status { return check_devices(devices, count, flags).status(); });
}

int32_t connect(tutti_device *const *devices, int32_t count, int32_t flags, int64_t timeout_ms, tutti_clique **clique,
                tutti_error_sink *sink) {
  const tutti_backend_host *const host = GpuDevice::of(devices[0]).host();
  return guarded(host, sink, [&]() -> Status {
    TUTTI_ASSIGN(const Nccl *const nccl, check_devices(devices, count, flags));
    std::vector<int32_t> ordinals;
    for (int32_t r = 0; r < count; ++r)
      ordinals.push_back(GpuDevice::of(devices[r]).ordinal);
    TUTTI_ASSIGN(std::unique_ptr<NcclClique> made, NcclClique::connect(*nccl, ordinals, timeout_ms, host));
    *clique = reinterpret_cast<tutti_clique *>(made.release());
    return Status();
  });
}

int32_t enqueue(tutti_clique *clique, int32_t rank, const tutti_collective *operation, tutti_stream *stream,
                tutti_error_sink *sink) {
  NcclClique &self = clique_of(clique);
  return guarded(self.host(), sink, [&] { return self.enqueue(rank, *operation, GpuStream::of(stream).stream); });
}

int32_t poll(tutti_clique *clique, int32_t rank, int32_t *is_enqueued, tutti_error_sink *sink) {
  NcclClique &self = clique_of(clique);
  return guarded(self.host(), sink, [&]() -> Status {
    TUTTI_ASSIGN(const bool idle, self.poll(rank));
    *is_enqueued = idle ? 1 : 0;
    return Status();
  });
}

void abort(tutti_clique *clique) {
  if (clique != nullptr) clique_of(clique).abort();
}

void release(tutti_clique *clique) { delete reinterpret_cast<NcclClique *>(clique); }

int32_t register_memory(tutti_clique *clique, int32_t rank, void *memory, uint64_t bytes) {
  return clique_of(clique).register_memory(rank, memory, bytes) ? 1 : 0;
}

void deregister_memory(tutti_clique *clique, int32_t rank) { clique_of(clique).deregister_memory(rank); }

int32_t register_windows(tutti_clique *clique, void *const *memory, uint64_t bytes, tutti_error_sink *sink) {
  NcclClique &self = clique_of(clique);
  return guarded(self.host(), sink, [&] { return self.register_windows(memory, bytes); });
}

// ---- several processes ----

Result<std::string> version_text() {
  TUTTI_ASSIGN(const Nccl *const nccl, platform::nccl());
  int version = 0;
  TUTTI_TRY(status_of(*nccl, nccl->ncclGetVersion(&version), "querying its version"));
  return base::concat(version / 10000, ".", version / 100 % 100, ".", version % 100);
}

/// Of the running system: another machine, or the same one after a new start, has another.
std::string machine_name() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string name;
  std::getline(file, name);
  return name;
}

int32_t describe_clique(tutti_device *const *devices, int32_t count, int32_t flags, tutti_text_writer write, void *user,
                        tutti_error_sink *sink) {
  return guarded(GpuDevice::of(devices[0]).host(), sink, [&]() -> Status {
    TUTTI_TRY(check_devices(devices, count, flags).status());
    TUTTI_ASSIGN(const std::string version, version_text());
    base::JsonArray names;
    for (int32_t d = 0; d < count; ++d) {
      std::array<char, 64> bus{};
      TUTTI_TRY(
          status_of(gpuDeviceGetPCIBusId(bus.data(), static_cast<int>(bus.size()), GpuDevice::of(devices[d]).ordinal),
                    "asking where the device is"));
      names.push_back(base::concat(machine_name(), "/", bus.data()));
    }
    const std::string library = base::concat(platform::nccl_name(), " ", version);
    const std::string text = base::Json(base::JsonObject{{"library", library}, {"devices", std::move(names)}}).dump();
    write(user, text.data(), text.size());
    return Status();
  });
}

constexpr std::string_view kDigits = "0123456789abcdef";

std::string text_of(const ncclUniqueId &id) {
  std::string text;
  for (const char c : id.internal) {
    const auto byte = static_cast<unsigned char>(c);
    text += {kDigits[byte >> 4], kDigits[byte & 15]};
  }
  return text;
}

Result<ncclUniqueId> id_of(std::string_view text) {
  ncclUniqueId id;
  if (text.size() != 2 * sizeof(id.internal) || text.find_first_not_of(kDigits) != std::string_view::npos)
    return base::invalid_argument("the id of the devices' connection has ", text.size(), " characters, expected ",
                                  2 * sizeof(id.internal), " hexadecimal digits");
  for (size_t i = 0; i < sizeof(id.internal); ++i)
    id.internal[i] = static_cast<char>(kDigits.find(text[2 * i]) << 4 | kDigits.find(text[2 * i + 1]));
  return id;
}

int32_t create_id(tutti_device *device, tutti_text_writer write, void *user, tutti_error_sink *sink) {
  return guarded(GpuDevice::of(device).host(), sink, [&]() -> Status {
    TUTTI_ASSIGN(const Nccl *const nccl, platform::nccl());
    ncclUniqueId id;
    TUTTI_TRY(status_of(*nccl, nccl->ncclGetUniqueId(&id), "listening for other processes"));
    const std::string text = text_of(id);
    write(user, text.data(), text.size());
    return Status();
  });
}

int32_t join(const tutti_clique_request *request, tutti_clique **clique, tutti_error_sink *sink) {
  const tutti_backend_host *const host = GpuDevice::of(request->devices[0]).host();
  return guarded(host, sink, [&]() -> Status {
    TUTTI_ASSIGN(const Nccl *const nccl, check_devices(request->devices, request->count, request->flags));
    TUTTI_ASSIGN(const ncclUniqueId id, id_of(request->id));
    std::vector<int32_t> ordinals;
    for (int32_t r = 0; r < request->count; ++r)
      ordinals.push_back(GpuDevice::of(request->devices[r]).ordinal);
    TUTTI_ASSIGN(std::unique_ptr<NcclClique> made,
                 NcclClique::join(*nccl, ordinals, id, request->first_rank, request->rank_count, host));
    *clique = reinterpret_cast<tutti_clique *>(made.release());
    return Status();
  });
}

int32_t record_check(tutti_clique *clique, tutti_error_sink *sink) {
  NcclClique &self = clique_of(clique);
  return guarded(self.host(), sink, [&] { return self.begin_captures(); });
}

constexpr tutti_collective_table kCollectiveTable = {sizeof(tutti_collective_table),
                                                     check,
                                                     connect,
                                                     enqueue,
                                                     poll,
                                                     abort,
                                                     release,
                                                     register_memory,
                                                     deregister_memory,
                                                     register_windows,
                                                     describe_clique,
                                                     create_id,
                                                     join,
                                                     record_check};

/// A library that has windows, or null.
const Nccl *library_of_windows() {
  const Result<const Nccl *> nccl = platform::nccl();
  return nccl.ok() && (*nccl)->has_windows() ? *nccl : nullptr;
}

}  // namespace

std::pair<std::string, std::string> describe_collective_library() {
  Result<std::string> version = version_text();
  return {platform::nccl_name(),
          version.ok() ? version.take() : base::concat("is missing: ", version.status().message())};
}

void *allocate_window(size_t bytes) {
  const Nccl *const nccl = library_of_windows();
  void *memory = nullptr;
  if (nccl == nullptr || nccl->ncclMemAlloc(&memory, bytes) == ncclSuccess) return memory;
  (void)gpuGetLastError();  // it would be reported by the next launch
  return nullptr;
}

void release_window(void *memory) {
  const Nccl *const nccl = library_of_windows();
  if (nccl != nullptr) (void)nccl->ncclMemFree(memory);
}

const tutti_collective_table *collective_table() { return &kCollectiveTable; }

}  // namespace tutti::impl::backend::gpu
