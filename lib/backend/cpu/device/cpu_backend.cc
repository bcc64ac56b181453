// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/device/cpu_backend.h"

#include <algorithm>
#include <memory>
#include <thread>

#include "backend/build_id.h"
#include "backend/cache_folder.h"
#include "backend/cpu/device/cpu_executable.h"
#include "backend/cpu/dnnl/cpu_fingerprint.h"
#include "backend/cpu/dnnl/dnnl_convolution.h"
#include "backend/cpu/lower/plan_layouts.h"
#include "backend/host_device.h"
#include "backend/plugin_side.h"

namespace tutti::impl::backend::cpu {

using base::Status;

namespace {

constexpr int32_t kWarning = 2;

CpuExecutable &executable_of(tutti_executable *handle) { return *reinterpret_cast<CpuExecutable *>(handle); }
CpuProgram &program_of(tutti_program *handle) { return *reinterpret_cast<CpuProgram *>(handle); }

int32_t create(const tutti_backend_host *host, const char *options, tutti_backend **backend, tutti_error_sink *sink) {
  const auto cores = static_cast<int32_t>(std::max(1u, std::thread::hardware_concurrency()));
  return HostBackend::create(host, "cpu", options, cores, backend, sink);
}

// ---- layouts ----

int32_t plan(const tutti_compile_request *request, tutti_text_writer write, void *user, tutti_error_sink *sink) {
  const HostBackend &backend = *HostDevice::of(request->devices[0]).backend;
  return guarded(backend.host, sink, [&]() -> Status {
    TUTTI_ASSIGN(std::string folder, plan_cache_folder(backend.plan_cache));
    const auto log = [&](const std::string &line) { backend.host->log(backend.host->user, kWarning, line.c_str()); };
    TUTTI_ASSIGN(const std::string text, plan_layouts(*request, cpu_plan_cache(std::move(folder)), log));
    write_text(write, user, text);
    return Status();
  });
}

/// Checks what pack and unpack are given.
base::Result<std::vector<int64_t>> check_layout(const char *layout, int32_t dtype, const int64_t *dims, int32_t rank,
                                                uint64_t storage_bytes) {
  if (dtype != static_cast<int32_t>(tensor::DType::f32)) {
    return base::invalid_argument("layout '", layout, "' is for f32, not for dtype ", dtype);
  }
  const std::vector<int64_t> shape(dims, dims + rank);
  TUTTI_ASSIGN(const int64_t needed, kernel_storage_bytes(layout, shape));
  if (storage_bytes < static_cast<uint64_t>(needed)) {
    return base::invalid_argument("layout '", layout, "' needs ", needed, " bytes, there are ", storage_bytes);
  }
  return shape;
}

int32_t pack(tutti_backend *backend, const char *layout, int32_t dtype, const int64_t *dims, int32_t rank,
             const void *canonical, void *storage, uint64_t storage_bytes, tutti_error_sink *sink) {
  return guarded(HostBackend::of(backend).host, sink, [&]() -> Status {
    TUTTI_ASSIGN(const std::vector<int64_t> shape, check_layout(layout, dtype, dims, rank, storage_bytes));
    std::fill_n(static_cast<char *>(storage), storage_bytes, '\0');
    return reorder_kernel("", layout, shape, canonical, storage);
  });
}

int32_t unpack(tutti_backend *backend, const char *layout, int32_t dtype, const int64_t *dims, int32_t rank,
               const void *storage, uint64_t storage_bytes, void *canonical, tutti_error_sink *sink) {
  return guarded(HostBackend::of(backend).host, sink, [&]() -> Status {
    TUTTI_ASSIGN(const std::vector<int64_t> shape, check_layout(layout, dtype, dims, rank, storage_bytes));
    return reorder_kernel(layout, "", shape, storage, canonical);
  });
}

// ---- executables and programs ----

int32_t compile(const tutti_compile_request *request, tutti_executable **executable, tutti_error_sink *sink) {
  const HostDevice &device = HostDevice::of(request->devices[0]);
  return guarded(device.backend->host, sink, [&]() -> Status {
    auto made = CpuExecutable::compile(device.backend->host, *request);
    if (!made.ok()) return made.status().with_detail("device", device.name());
    *executable = reinterpret_cast<tutti_executable *>(std::move(made).value().release());
    return Status();
  });
}

void release_executable(tutti_executable *executable) { delete reinterpret_cast<CpuExecutable *>(executable); }

int32_t describe_program(tutti_executable *executable, tutti_text_writer write, void *user, tutti_error_sink *sink) {
  return guarded(executable_of(executable).host(), sink, [&]() -> Status {
    write_text(write, user, executable_of(executable).describe());
    return Status();
  });
}

int32_t bind(tutti_executable *executable, const tutti_bind_request *request, tutti_program **program,
             tutti_error_sink *sink) {
  return guarded(executable_of(executable).host(), sink, [&]() -> Status {
    TUTTI_ASSIGN(auto made, CpuProgram::bind(executable_of(executable), *request));
    *program = reinterpret_cast<tutti_program *>(made.release());
    return Status();
  });
}

void release_program(tutti_program *program) { delete reinterpret_cast<CpuProgram *>(program); }

int32_t run(tutti_program *program, int32_t segment, const tutti_run_arguments *arguments, tutti_stream *stream,
            tutti_error_sink *sink) {
  return program_of(program).run(segment, *arguments, stream, sink);
}

const tutti_layout_table kLayoutTable = {sizeof(tutti_layout_table), plan, pack, unpack};
const tutti_executable_table kExecutableTable = {sizeof(tutti_executable_table), compile, release_executable,
                                                 describe_program};
const tutti_program_table kProgramTable = {sizeof(tutti_program_table), bind, release_program, run, nullptr};

}  // namespace

const tutti_backend_api *entry(uint32_t host_abi_version) {
  static const tutti_backend_api api = {sizeof(tutti_backend_api),
                                        TUTTI_BACKEND_ABI_VERSION,
                                        "cpu",
                                        kBuildId,
                                        kBuildId,
                                        TUTTI_BACKEND_HOST_MEMORY | TUTTI_BACKEND_REGIONS,
                                        create,
                                        HostBackend::destroy,
                                        host_device_table(),
                                        host_buffer_table(),
                                        host_stream_table(),
                                        &kLayoutTable,
                                        &kExecutableTable,
                                        &kProgramTable,
                                        nullptr,
                                        nullptr};
  return host_abi_version == TUTTI_BACKEND_ABI_VERSION ? &api : nullptr;
}

}  // namespace tutti::impl::backend::cpu
