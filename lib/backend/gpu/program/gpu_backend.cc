// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/program/gpu_backend.h"

#include <algorithm>
#include <memory>

#include "backend/build_id.h"
#include "backend/cache_folder.h"
#include "backend/gpu/generated/platform.h"
#include "backend/gpu/program/gpu_device.h"
#include "backend/gpu/program/gpu_executable.h"
#include "backend/gpu/program/gpu_program.h"
#include "backend/gpu/runtime/collective_table.h"
#include "backend/gpu/runtime/launch_gate.h"
#include "backend/plugin_side.h"
#include "base/json.h"

namespace tutti::impl::backend::gpu {

using base::Json;
using base::JsonReader;
using base::Result;
using base::Status;

namespace {

constexpr int64_t kMostDevices = 1024;

/// The GPUs to use: those listed, or all.
Result<std::vector<int32_t>> chosen_gpus(const JsonReader &options) {
  int count = 0;
  TUTTI_TRY(status_of(gpuGetDeviceCount(&count), "counting devices"));
  std::vector<int32_t> gpus;
  if (!options.has("gpus")) {
    for (int32_t ordinal = 0; ordinal < count; ++ordinal)
      gpus.push_back(ordinal);
    return gpus;
  }
  TUTTI_ASSIGN(const std::vector<int64_t> listed, options.get_integers("gpus"));
  for (const int64_t ordinal : listed) {
    if (ordinal < 0 || ordinal >= count)
      return base::invalid_argument("option gpus lists ", ordinal, ": this machine has GPUs 0 to ", count - 1);
    if (std::ranges::count(listed, ordinal) > 1)
      return base::invalid_argument("option gpus lists ", ordinal,
                                    " twice: several devices on one GPU are logical_devices");
    gpus.push_back(static_cast<int32_t>(ordinal));
  }
  if (gpus.empty()) return base::invalid_argument("option gpus lists no GPU");
  return gpus;
}

Status read_shares(const JsonReader &options, GpuBackend &backend) {
  TUTTI_ASSIGN(const double fraction, options.get_double("gpu_memory_fraction", 0));
  if (!(fraction >= 0 && fraction <= 1))
    return base::invalid_argument("gpu_memory_fraction is ", fraction, ", expected 0 (no limit) to 1");
  for (const int32_t ordinal : backend.ordinals) {
    GpuShare &share = backend.shares[ordinal];
    if (fraction == 0) continue;
    TUTTI_ASSIGN(const platform::DeviceFacts facts, platform::describe(ordinal));
    share.limit = std::max<int64_t>(static_cast<int64_t>(fraction * static_cast<double>(facts.memory_bytes)), 1);
  }
  return Status();
}

Status read_options(const JsonReader &options, GpuBackend &backend) {
  TUTTI_TRY(
      options.only_keys({"logical_devices", "gpus", "memory_limit_bytes", "gpu_memory_fraction", "gpu_uses_host_memory",
                         "launch", "plan_cache", "generated_kernels", "recompute_from_bytes"}));
  TUTTI_ASSIGN(const std::vector<int32_t> gpus, chosen_gpus(options));
  TUTTI_ASSIGN(int64_t count, options.get_integer("logical_devices", 0));
  if (count < 0 || count > kMostDevices)
    return base::invalid_argument("logical_devices is ", count, ", expected 0 to ", kMostDevices);
  if (count == 0) count = static_cast<int64_t>(gpus.size());
  for (int64_t device = 0; device < count; ++device)
    backend.ordinals.push_back(gpus[static_cast<size_t>(device) % gpus.size()]);
  TUTTI_ASSIGN(backend.memory_limit, options.get_integer("memory_limit_bytes", 0));
  if (backend.memory_limit < 0)
    return base::invalid_argument("memory_limit_bytes is ", backend.memory_limit, ", expected at least 0");
  TUTTI_TRY(read_shares(options, backend));
  TUTTI_ASSIGN(backend.uses_host_memory, options.get_boolean("gpu_uses_host_memory", false));
  TUTTI_ASSIGN(const std::string launch, options.get_string("launch", "graphs"));
  if (launch != "graphs" && launch != "kernels")
    return base::invalid_argument("launch is ", base::quoted(launch), ", expected \"graphs\" or \"kernels\"");
  backend.replays_graphs = launch == "graphs";
  TUTTI_ASSIGN(const std::string plan_cache, options.get_string("plan_cache", ""));
  TUTTI_ASSIGN(backend.cache_folder, plan_cache_folder(plan_cache));
  TUTTI_ASSIGN(const std::string generated, options.get_string("generated_kernels", "automatic"));
  TUTTI_ASSIGN(backend.generate_kernels, parse_generate_kernels(generated));
  TUTTI_ASSIGN(backend.recompute_from_bytes, options.get_integer("recompute_from_bytes", kLeastRecomputedBytes));
  if (backend.recompute_from_bytes < 0)
    return base::invalid_argument("recompute_from_bytes is ", backend.recompute_from_bytes, ", expected at least 0");
  return Status();
}

int32_t create(const tutti_backend_host *host, const char *options_json, tutti_backend **backend,
               tutti_error_sink *sink) {
  return guarded(host, sink, [&]() -> Status {
    TUTTI_TRY(platform::check());
    TUTTI_ASSIGN(const Json json, Json::parse(options_json));
    auto made = std::make_unique<GpuBackend>();
    made->host = host;
    const Status status = read_options(JsonReader(json, "backend options"), *made);
    if (!status.ok()) return status.wrap(base::concat("backend ", platform::name()));
    *backend = reinterpret_cast<tutti_backend *>(made.release());
    return Status();
  });
}

void destroy(tutti_backend *backend) { delete reinterpret_cast<GpuBackend *>(backend); }

GpuExecutable &executable_of(tutti_executable *handle) { return *reinterpret_cast<GpuExecutable *>(handle); }
GpuProgram &program_of(tutti_program *handle) { return *reinterpret_cast<GpuProgram *>(handle); }

int32_t compile(const tutti_compile_request *request, tutti_executable **executable, tutti_error_sink *sink) {
  GpuDevice &device = GpuDevice::of(request->devices[0]);
  return guarded(device.host(), sink, [&]() -> Status {
    TUTTI_ASSIGN(std::unique_ptr<GpuExecutable> made, GpuExecutable::compile(*request, device));
    *executable = reinterpret_cast<tutti_executable *>(made.release());
    return Status();
  });
}

void release_executable(tutti_executable *executable) {
  const BetweenLaunches section;  // plans of libraries have memory and code
  delete reinterpret_cast<GpuExecutable *>(executable);
}

int32_t describe_executable(tutti_executable *executable, tutti_text_writer write, void *user, tutti_error_sink *sink) {
  return guarded(executable_of(executable).host(), sink, [&]() -> Status {
    write_text(write, user, executable_of(executable).describe());
    return Status();
  });
}

int32_t bind(tutti_executable *executable, const tutti_bind_request *request, tutti_program **program,
             tutti_error_sink *sink) {
  return guarded(executable_of(executable).host(), sink, [&]() -> Status {
    TUTTI_ASSIGN(std::unique_ptr<GpuProgram> made, GpuProgram::bind(executable_of(executable), *request));
    *program = reinterpret_cast<tutti_program *>(made.release());
    return Status();
  });
}

void release_program(tutti_program *program) { delete reinterpret_cast<GpuProgram *>(program); }

int32_t run(tutti_program *program, int32_t segment, const tutti_run_arguments *arguments, tutti_stream *stream,
            tutti_error_sink *sink) {
  return guarded(program_of(program).host(), sink,
                 [&] { return program_of(program).run(segment, *arguments, GpuStream::of(stream)); });
}

int32_t set_arguments(tutti_program *program, int32_t pass, const tutti_run_arguments *arguments, tutti_stream *stream,
                      tutti_error_sink *sink) {
  return guarded(program_of(program).host(), sink,
                 [&] { return program_of(program).set_arguments(pass, *arguments, GpuStream::of(stream)); });
}

const tutti_executable_table kExecutableTable = {sizeof(tutti_executable_table), compile, release_executable,
                                                 describe_executable};
const tutti_program_table kProgramTable = {sizeof(tutti_program_table), bind, release_program, run, set_arguments};

}  // namespace

const tutti_backend_api *entry(uint32_t host_abi_version) {
  static const tutti_backend_api api = {sizeof(tutti_backend_api),
                                        TUTTI_BACKEND_ABI_VERSION,
                                        platform::name(),
                                        kBuildId,
                                        kBuildId,
                                        TUTTI_BACKEND_REGIONS,
                                        create,
                                        destroy,
                                        &kDeviceTable,
                                        &kBufferTable,
                                        &kStreamTable,
                                        nullptr,
                                        &kExecutableTable,
                                        &kProgramTable,
                                        &kTransferTable,
                                        collective_table()};
  return host_abi_version == TUTTI_BACKEND_ABI_VERSION ? &api : nullptr;
}

}  // namespace tutti::impl::backend::gpu
