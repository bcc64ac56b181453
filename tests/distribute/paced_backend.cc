// SPDX-License-Identifier: Apache-2.0
#include "distribute/paced_backend.h"

#include <signal.h>
#include <tutti/status.h>

#include <array>
#include <chrono>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "backend/host_services.h"
#include "backend/reference/reference_backend.h"

namespace tutti::testing {
namespace {

constexpr int32_t kBackends = 3, kDevices = 8;

const tutti_backend_api &reference() { return *impl::backend::reference::entry(TUTTI_BACKEND_ABI_VERSION); }

struct PacedDevice {
  std::mutex turn;  // held while a piece is under way
  Pace pace;        // like the counts guarded by the shared mutex
  int64_t rows = 0, runs = 0;
};

struct Shared {
  std::mutex mutex;
  std::array<std::array<PacedDevice, kDevices>, kBackends> devices;
  std::map<const tutti_device *, PacedDevice *> opened;     // guarded by mutex
  std::map<const tutti_program *, PacedDevice *> programs;  // guarded by mutex
};
Shared &shared() {
  static Shared *const state = new Shared;
  return *state;
}

template <int32_t backend>
int32_t open_device(tutti_backend *of, int32_t index, const char *options, tutti_device **device,
                    tutti_error_sink *sink) {
  const int32_t code = reference().device->open(of, index, options, device, sink);
  const std::lock_guard lock(shared().mutex);
  if (code == 0) shared().opened[*device] = &shared().devices[backend][static_cast<size_t>(index)];
  return code;
}

template <int32_t backend>
int32_t describe(tutti_backend *of, int32_t index, tutti_text_writer write, void *user, tutti_error_sink *sink) {
  std::string text;
  const auto keep = [](void *into, const char *part, uint64_t length) {
    static_cast<std::string *>(into)->append(part, length);
  };
  const int32_t code = reference().device->describe(of, index, keep, &text, sink);
  const std::string own = "paced" + std::to_string(backend), name = "reference";
  for (size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + own.size()))
    text.replace(at, name.size(), own);
  write(user, text.data(), text.size());
  return code;
}

int32_t bind(tutti_executable *executable, const tutti_bind_request *request, tutti_program **program,
             tutti_error_sink *sink) {
  const int32_t code = reference().program->bind(executable, request, program, sink);
  const std::lock_guard lock(shared().mutex);
  if (code == 0) shared().programs[*program] = shared().opened[request->device];
  return code;
}

int32_t run(tutti_program *program, int32_t segment, const tutti_run_arguments *arguments, tutti_stream *stream,
            tutti_error_sink *sink) {
  PacedDevice *device = nullptr;
  Pace pace;
  const int64_t rows = arguments->scalars[TUTTI_RUN_LOCAL_ROWS];
  {
    const std::lock_guard lock(shared().mutex);
    device = shared().programs[program];
    pace = device->pace;
    device->rows += rows;
    ++device->runs;
  }
  if (pace.kills) raise(SIGKILL);
  if (pace.fails) {
    impl::backend::ErrorSink::set(sink, TUTTI_INTERNAL, "the device is on fire");
    return TUTTI_INTERNAL;
  }
  const std::lock_guard turn(device->turn);
  std::this_thread::sleep_for(
      std::chrono::duration<double, std::micro>(pace.run_us + pace.row_us * static_cast<double>(rows)));
  return reference().program->run(program, segment, arguments, stream, sink);
}

template <int32_t backend>
const tutti_backend_api *entry(uint32_t host_abi_version) {
  if (host_abi_version != TUTTI_BACKEND_ABI_VERSION) return nullptr;
  static const std::string name = "paced" + std::to_string(backend);
  static tutti_device_table devices = *reference().device;
  devices.open = open_device<backend>;
  devices.describe = describe<backend>;
  static tutti_program_table programs = *reference().program;
  programs.bind = bind;
  programs.run = run;
  static tutti_backend_api api = reference();
  api.name = name.c_str();
  api.device = &devices;
  api.program = &programs;
  return &api;
}

PacedDevice &device_of(int32_t backend, int32_t device) {
  return shared().devices[static_cast<size_t>(backend)][static_cast<size_t>(device)];
}

}  // namespace

void set_pace(int32_t backend, int32_t device, Pace pace) {
  const std::lock_guard lock(shared().mutex);
  PacedDevice &of = device_of(backend, device);
  of.pace = pace;
  of.rows = of.runs = 0;
}

int64_t paced_rows(int32_t backend, int32_t device) {
  const std::lock_guard lock(shared().mutex);
  return device_of(backend, device).rows;
}

int64_t paced_runs(int32_t backend, int32_t device) {
  const std::lock_guard lock(shared().mutex);
  return device_of(backend, device).runs;
}

impl::base::Result<impl::backend::BackendRef> open_paced(int32_t backend, int32_t devices) {
  constexpr std::array<tutti_backend_entry_function, kBackends> entries{entry<0>, entry<1>, entry<2>};
  return impl::backend::Backend::create(entries[static_cast<size_t>(backend)],
                                        "{\"logical_devices\": " + std::to_string(devices) + "}", {});
}

}  // namespace tutti::testing
