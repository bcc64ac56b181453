// SPDX-License-Identifier: Apache-2.0
#include "data/process/worker_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "data/process/process_elements.h"

namespace tutti::impl::data {

using base::CancelToken;
using base::FileDescriptor;
using base::Json;
using base::Result;
using base::Status;

namespace {

// How long a process that has closed its end may take to die by itself.
constexpr int64_t kDeathMs = 1000;

/// Owns what posix_spawn() is told.
class SpawnSettings {
 public:
  SpawnSettings() {
    posix_spawnattr_init(&attributes_);
    posix_spawn_file_actions_init(&actions_);
  }
  ~SpawnSettings() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }
  SpawnSettings(const SpawnSettings &) = delete;
  SpawnSettings &operator=(const SpawnSettings &) = delete;

  /// Signals as for a program that was just started, a process group of its own, no descriptor but these.
  int set(int input_and_output) {
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    sigdelset(&all, SIGKILL);
    sigdelset(&all, SIGSTOP);
    for (const int error :
         {posix_spawnattr_setsigmask(&attributes_, &none), posix_spawnattr_setsigdefault(&attributes_, &all),
          posix_spawnattr_setpgroup(&attributes_, 0),
          posix_spawnattr_setflags(&attributes_,
                                   POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP),
          posix_spawn_file_actions_adddup2(&actions_, input_and_output, 0),
          posix_spawn_file_actions_adddup2(&actions_, input_and_output, 1),
          posix_spawn_file_actions_addclosefrom_np(&actions_, 3)}) {
      if (error != 0) return error;
    }
    return 0;
  }
  int spawn(pid_t &process, const std::vector<std::string> &command) const {
    std::vector<char *> arguments;
    for (const std::string &text : command)
      arguments.push_back(const_cast<char *>(text.c_str()));
    arguments.push_back(nullptr);
    return posix_spawnp(&process, arguments[0], &actions_, &attributes_, arguments.data(), environ);
  }

 private:
  posix_spawnattr_t attributes_;
  posix_spawn_file_actions_t actions_;
};

// The same descriptor above those of the standard streams, which a child would otherwise get in their place.
Result<FileDescriptor> above_streams(FileDescriptor descriptor) {
  if (descriptor.get() > 2) return descriptor;
  FileDescriptor moved(fcntl(descriptor.get(), F_DUPFD_CLOEXEC, 3));
  if (moved.get() < 0) return base::status_from_errno(errno, "cannot duplicate a descriptor");
  return moved;
}

struct Sockets {
  FileDescriptor ours, theirs;
};

Result<Sockets> make_sockets() {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
    return base::status_from_errno(errno, "cannot create a pair of sockets");
  FileDescriptor first(pair[0]), second(pair[1]);
  Sockets sockets;
  TUTTI_ASSIGN(sockets.ours, above_streams(std::move(first)));
  TUTTI_ASSIGN(sockets.theirs, above_streams(std::move(second)));
  return sockets;
}

std::string ending(int wait_status) {
  if (WIFSIGNALED(wait_status)) {
    const int number = WTERMSIG(wait_status);
    const char *const name = sigdescr_np(number);
    return base::concat("was terminated by signal ", number, " (", name == nullptr ? "unknown" : name, ")");
  }
  return base::concat("ended with exit status ", WEXITSTATUS(wait_status));
}

std::string number_of(const Lineage &lineage) {
  return base::concat("element ", lineage.index, " of epoch ", lineage.epoch);
}

}  // namespace

std::string WorkerProgram::to_string() const { return base::quoted(base::join(command, " "), 400); }

std::string WorkerProcess::to_string() const {
  return base::concat("worker process ", program_->to_string(), " (process ", process_, ")");
}

WorkerProcess::WorkerProcess(std::shared_ptr<const WorkerProgram> program, pid_t process, FileDescriptor socket,
                             WakeEvent event)
    : program_(std::move(program)),
      process_(process),
      host_(getpid()),
      socket_(std::move(socket)),
      event_(std::move(event)),
      channel_(socket_.get(), socket_.get()) {}

Result<std::unique_ptr<WorkerProcess>> WorkerProcess::start(std::shared_ptr<const WorkerProgram> program,
                                                            const CancelToken *token) {
  const std::string what = base::concat("cannot start worker process ", program->to_string());
  const auto wrapped = [&](const Status &status) { return status.wrap(what); };
  Result<WakeEvent> event = WakeEvent::create();
  if (!event.ok()) return wrapped(event.status());
  Result<Sockets> sockets = make_sockets();
  if (!sockets.ok()) return wrapped(sockets.status());
  SpawnSettings settings;
  pid_t process = -1;
  int error = settings.set(sockets->theirs.get());
  if (error == 0) error = settings.spawn(process, program->command);
  if (error != 0) return base::status_from_errno(error, what);
  std::unique_ptr<WorkerProcess> started(
      new WorkerProcess(std::move(program), process, std::move(sockets->ours), event.take()));
  sockets->theirs = FileDescriptor();
  TUTTI_TRY(started->greet(token));
  return started;
}

Status WorkerProcess::greet(const CancelToken *token) {
  const ProcessChannel::Guard guard(channel_, token, event_);
  const auto talk = [&]() -> Status {
    TUTTI_TRY(channel_.send(program_->greeting));
    Json answer;
    TUTTI_ASSIGN(const bool has_answer, channel_.receive_header(answer));
    if (!has_answer) return base::unavailable("the worker has closed its output");
    TUTTI_TRY(error_in(answer));
    const Json *const ready = answer.find("ready");
    if (ready != nullptr && ready->is_integer() && ready->integer() == kProcessProtocol) return Status();
    return base::data_loss("expected {\"ready\":", kProcessProtocol, "}, got ", base::quoted(answer.dump(), 400));
  };
  const Status status = talk();
  return status.ok() ? status : explain(status, "before it was ready");
}

Status WorkerProcess::map(const Element &input, Element &output, const CancelToken *token) {
  const ProcessChannel::Guard guard(channel_, token, event_);
  is_broken_ = true;  // until the whole answer is there
  const Status status = exchange(input, output);
  if (!is_broken_) {
    // Without its number: the same error in every walk.
    return status.ok() ? status
                       : status.wrap(base::concat("the worker process ", program_->to_string(), " failed for ",
                                                  number_of(input.lineage)));
  }
  return explain(status, base::concat("while it computed ", number_of(input.lineage)));
}

Status WorkerProcess::exchange(const Element &input, Element &output) {
  TUTTI_TRY(send_element(channel_, program_->inputs, input));
  Json header;
  TUTTI_ASSIGN(const bool has_answer, channel_.receive_header(header));
  if (!has_answer) return base::unavailable("the worker has closed its output");
  const Json *const number = header.find("element");
  if (number == nullptr || !number->is_integer() || number->integer() != input.lineage.index) {
    return base::data_loss("expected an answer with \"element\":", input.lineage.index, ", got ",
                           base::quoted(header.dump(), 400));
  }
  Status reported = error_in(header);
  if (reported.ok()) TUTTI_TRY(receive_tensors(channel_, header, program_->outputs, output));
  is_broken_ = false;
  return reported;
}

Status WorkerProcess::explain(const Status &status, const std::string &during) {
  is_broken_ = true;
  if (base::is_interrupt(status)) return status;
  if (!channel_.is_closed()) return status.wrap(base::concat("the connection to ", to_string(), " failed ", during));
  if (!await_end(base::Deadline::after_ms(kDeathMs)))
    return base::unavailable(to_string(), " closed its output ", during);
  if (!has_wait_status_) return base::unavailable(to_string(), " ended ", during);
  return base::unavailable(to_string(), " ", ending(wait_status_), " ", during);
}

bool WorkerProcess::has_ended() {
  if (has_ended_) return true;
  const pid_t found = waitpid(process_, &wait_status_, WNOHANG);
  // Who ignores SIGCHLD, or waits for any child, leaves nothing to wait for.
  has_ended_ = found == process_ || (found < 0 && errno == ECHILD);
  has_wait_status_ = found == process_;
  return has_ended_;
}

bool WorkerProcess::await_end(base::Deadline deadline) {
  // The system has no wait with a limit for one process; most end at once.
  for (long pause_ns = 50'000; !has_ended(); pause_ns = std::min(2 * pause_ns, 4'000'000L)) {
    if (deadline.passed()) return false;
    const timespec pause{0, pause_ns};
    nanosleep(&pause, nullptr);
  }
  return true;
}

void WorkerProcess::signal(int number) {
  if (has_ended()) return;
  // It may have left its group.
  if (kill(-process_, number) != 0) kill(process_, number);
}

void WorkerProcess::close() {
  if (std::exchange(is_closed_, true)) return;
  end_by_ = base::Deadline::after_ms(kGraceMs);
  shutdown(socket_.get(), SHUT_RDWR);
}

WorkerProcess::~WorkerProcess() {
  // A fork of the host has the object, but not the child.
  if (getpid() != host_) return;
  close();
  if (is_broken_) signal(SIGTERM);
  if (await_end(end_by_)) return;
  signal(SIGKILL);
  await_end(base::Deadline::after_ms(kGraceMs));
}

Result<std::unique_ptr<WorkerProcess>> WorkerProcesses::take(const std::shared_ptr<const WorkerProgram> &program,
                                                             const CancelToken *token) {
  // One that died while it was free leaves no element behind.
  while (std::unique_ptr<WorkerProcess> process = take_free(*program)) {
    if (!process->has_ended()) return process;
  }
  return WorkerProcess::start(program, token);
}

std::unique_ptr<WorkerProcess> WorkerProcesses::take_free(const WorkerProgram &program) {
  std::lock_guard lock(mutex_);
  const auto is_good = [&](const auto &process) { return process->program().is_like(program); };
  const auto found = std::find_if(free_.rbegin(), free_.rend(), is_good);
  if (found == free_.rend()) return nullptr;
  std::unique_ptr<WorkerProcess> process = std::move(*found);
  free_.erase(std::next(found).base());
  return process;
}

void WorkerProcesses::give_back(std::unique_ptr<WorkerProcess> process) {
  std::unique_ptr<WorkerProcess> leaving;
  if (process->is_broken()) return;
  std::lock_guard lock(mutex_);
  free_.push_back(std::move(process));
  if (free_.size() <= kMostFree) return;
  leaving = std::move(free_.front());
  free_.erase(free_.begin());
}

WorkerProcesses::~WorkerProcesses() {
  // All at once, so that they take their time side by side.
  for (const std::unique_ptr<WorkerProcess> &process : free_)
    process->close();
}

}  // namespace tutti::impl::data
