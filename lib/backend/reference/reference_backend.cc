// SPDX-License-Identifier: Apache-2.0
#include "backend/reference/reference_backend.h"

#include <memory>

#include "backend/build_id.h"
#include "backend/host_device.h"
#include "backend/plugin_side.h"
#include "backend/reference/executable.h"

namespace tutti::impl::backend::reference {

using base::Status;

namespace {

ReferenceExecutable &executable_of(tutti_executable *handle) {
  return *reinterpret_cast<ReferenceExecutable *>(handle);
}
ReferenceProgram &program_of(tutti_program *handle) { return *reinterpret_cast<ReferenceProgram *>(handle); }

int32_t create(const tutti_backend_host *host, const char *options, tutti_backend **backend, tutti_error_sink *sink) {
  return HostBackend::create(host, "reference", options, 1, backend, sink);
}

int32_t compile(const tutti_compile_request *request, tutti_executable **executable, tutti_error_sink *sink) {
  const HostDevice &device = HostDevice::of(request->devices[0]);
  return guarded(device.backend->host, sink, [&]() -> Status {
    TUTTI_ASSIGN(std::unique_ptr<ReferenceExecutable> made,
                 ReferenceExecutable::compile(*request, device.backend->host, device.name()));
    *executable = reinterpret_cast<tutti_executable *>(made.release());
    return Status();
  });
}

void release_executable(tutti_executable *executable) { delete reinterpret_cast<ReferenceExecutable *>(executable); }

int32_t describe_executable(tutti_executable *executable, tutti_text_writer write, void *user, tutti_error_sink *sink) {
  return guarded(executable_of(executable).host(), sink, [&]() -> Status {
    write_text(write, user, executable_of(executable).describe());
    return Status();
  });
}

int32_t bind(tutti_executable *executable, const tutti_bind_request *request, tutti_program **program,
             tutti_error_sink *sink) {
  return guarded(executable_of(executable).host(), sink, [&]() -> Status {
    TUTTI_ASSIGN(std::unique_ptr<ReferenceProgram> made, ReferenceProgram::bind(executable_of(executable), *request));
    *program = reinterpret_cast<tutti_program *>(made.release());
    return Status();
  });
}

void release_program(tutti_program *program) { delete reinterpret_cast<ReferenceProgram *>(program); }

int32_t run(tutti_program *program, int32_t segment, const tutti_run_arguments *arguments, tutti_stream *,
            tutti_error_sink *sink) {
  return guarded(program_of(program).host(), sink, [&] { return program_of(program).run(segment, *arguments); });
}

const tutti_executable_table kExecutableTable = {sizeof(tutti_executable_table), compile, release_executable,
                                                 describe_executable};
const tutti_program_table kProgramTable = {sizeof(tutti_program_table), bind, release_program, run, nullptr};

}  // namespace

const tutti_backend_api *entry(uint32_t host_abi_version) {
  static const tutti_backend_api api = {sizeof(tutti_backend_api),
                                        TUTTI_BACKEND_ABI_VERSION,
                                        "reference",
                                        kBuildId,
                                        kBuildId,
                                        TUTTI_BACKEND_HOST_MEMORY | TUTTI_BACKEND_REGIONS,
                                        create,
                                        HostBackend::destroy,
                                        host_device_table(),
                                        host_buffer_table(),
                                        host_stream_table(),
                                        nullptr,
                                        &kExecutableTable,
                                        &kProgramTable,
                                        nullptr,
                                        nullptr};
  return host_abi_version == TUTTI_BACKEND_ABI_VERSION ? &api : nullptr;
}

}  // namespace tutti::impl::backend::reference
