// SPDX-License-Identifier: Apache-2.0
//
// Starts a program several times on this machine, as the workers of a strategy that takes them from the environment
// (tutti_strategy_create_multi_worker_from_environment).
#include <arpa/inet.h>
#include <signal.h>
#include <spawn.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "tool/command/command_list.h"
#include "tool/console/usage_error.h"

extern char **environ;

namespace tutti::tool {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kMostWorkers = 1024;
constexpr std::chrono::seconds kGrace{10}, kLastGrace{5};

struct WorkersRequest {
  int64_t workers = 0;
  std::vector<std::string> program;
};

/// A port of the loopback that nobody listens at.
int free_port() {
  const int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  const bool is_bound = bind(descriptor, reinterpret_cast<sockaddr *>(&address), length) == 0 &&
                        getsockname(descriptor, reinterpret_cast<sockaddr *>(&address), &length) == 0;
  close(descriptor);
  if (!is_bound) throw std::runtime_error("no free port on the loopback interface");
  return ntohs(address.sin_port);
}

/// The environment of this process but for what tells workers who they are.
std::vector<std::string> own_environment() {
  const char *const told[] = {
      "TF_CONFIG=", "MASTER_ADDR=", "MASTER_PORT=", "RANK=", "WORLD_SIZE=", "LOCAL_RANK=", "LOCAL_WORLD_SIZE="};
  std::vector<std::string> variables;
  for (char **next = environ; *next != nullptr; ++next) {
    const bool is_told = std::any_of(std::begin(told), std::end(told), [&](const char *name) {
      return std::strncmp(*next, name, std::strlen(name)) == 0;
    });
    if (!is_told) variables.emplace_back(*next);
  }
  return variables;
}

/// "TUTTI_JOB_SECRET=" and 256 random bits.
std::string new_secret() {
  uint8_t bytes[32];
  if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
    throw std::runtime_error("cannot get random bytes from the system");
  std::string secret = "TUTTI_JOB_SECRET=";
  for (const uint8_t byte : bytes) {
    secret += "0123456789abcdef"[byte / 16];
    secret += "0123456789abcdef"[byte % 16];
  }
  return secret;
}

std::vector<char *> pointers_to(std::vector<std::string> &texts) {
  std::vector<char *> pointers;
  for (std::string &text : texts)
    pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

class Workers {
 public:
  /// `signals`: what the workers are to block, which is what this process blocked before.
  Workers(WorkersRequest request, const sigset_t &signals) : request_(std::move(request)), signals_(signals) {}
  ~Workers() { signal_all(SIGKILL); }

  void start() {
    const std::string port = std::to_string(free_port()), secret = new_secret();
    for (int64_t rank = 0; rank < request_.workers; ++rank)
      start_one(rank, port, secret);
  }

  /// Takes in who has ended.
  void reap() {
    for (size_t rank = 0; rank < children_.size(); ++rank) {
      int status = 0;
      if (children_[rank] > 0 && waitpid(children_[rank], &status, WNOHANG) == children_[rank]) end_one(rank, status);
    }
  }
  /// Those who are left, once one has failed, do not go on for ever.
  void press() {
    if (code_ == 0 || Clock::now() < deadline_) return;
    signal_all(was_pressed_ ? SIGKILL : SIGTERM);
    was_pressed_ = true;
    deadline_ = Clock::now() + kLastGrace;
  }
  void signal_all(int number) const {
    for (const pid_t child : children_) {
      if (child > 0) kill(child, number);
    }
  }
  bool any_left() const {
    return std::any_of(children_.begin(), children_.end(), [](pid_t child) { return child > 0; });
  }
  int code() const { return code_; }

 private:
  void start_one(int64_t rank, const std::string &port, const std::string &secret) {
    std::vector<std::string> variables = own_environment();
    const bool has_secret = std::any_of(variables.begin(), variables.end(), [](const std::string &variable) {
      return variable.rfind("TUTTI_JOB_SECRET=", 0) == 0;
    });
    if (!has_secret) variables.push_back(secret);
    const std::string count = std::to_string(request_.workers), number = std::to_string(rank);
    for (const std::string &variable :
         {"MASTER_ADDR=127.0.0.1" + std::string(), "MASTER_PORT=" + port, "WORLD_SIZE=" + count, "RANK=" + number,
          "LOCAL_WORLD_SIZE=" + count, "LOCAL_RANK=" + number})
      variables.push_back(variable);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &signals_);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    pid_t child = 0;
    const int failure = posix_spawnp(&child, request_.program[0].c_str(), nullptr, &attributes,
                                     pointers_to(request_.program).data(), pointers_to(variables).data());
    posix_spawnattr_destroy(&attributes);
    if (failure != 0)
      throw std::runtime_error("'" + request_.program[0] + "' cannot be started: " + std::strerror(failure));
    children_.push_back(child);
  }

  void end_one(size_t rank, int status) {
    children_[rank] = 0;
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    if (code == 0) return;
    if (WIFEXITED(status)) std::fprintf(stderr, "tutti: worker %zu exited with status %d\n", rank, code);
    if (WIFSIGNALED(status))
      std::fprintf(stderr, "tutti: worker %zu was terminated by signal %d\n", rank, WTERMSIG(status));
    if (code_ != 0) return;
    code_ = code;
    deadline_ = Clock::now() + kGrace;
  }

  WorkersRequest request_;
  const sigset_t signals_;
  std::vector<pid_t> children_;  // 0: has ended
  int code_ = 0;                 // of the first that failed
  bool was_pressed_ = false;
  Clock::time_point deadline_;
};

/// The exit status: that of the first worker that failed, 128 + the signal for one that was killed.
int run_workers(const WorkersRequest &request) {
  sigset_t awaited, before;
  sigemptyset(&awaited);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGCHLD})
    sigaddset(&awaited, number);
  sigprocmask(SIG_BLOCK, &awaited, &before);
  Workers workers(request, before);
  workers.start();
  while (workers.any_left()) {
    siginfo_t info{};
    const timespec limit{0, 200'000'000};
    const int number = sigtimedwait(&awaited, &info, &limit);
    // What the terminal sends, it sends to the workers too.
    if (number > 0 && number != SIGCHLD && info.si_code != SI_KERNEL) workers.signal_all(number);
    workers.reap();
    workers.press();
  }
  return workers.code();
}

}  // namespace

Command run_command() {
  const auto request = std::make_shared<WorkersRequest>();
  Command command("run", "starts a program as several workers on this machine");
  command.set_details(
      "Each worker has MASTER_ADDR, MASTER_PORT, WORLD_SIZE and RANK in its environment, and a TUTTI_JOB_SECRET that "
      "nobody else knows, unless one is set already.\n\n"
      "Signals go to all workers. When one fails the others have 10 seconds to end by themselves.");
  command.set_exit_status(
      "0 when all workers have ended with it, else that of the first one that failed, or 128 and the number of the "
      "signal "
      "that ended it; 1 when the program cannot be started, 2 when the arguments are wrong");
  command.add_argument({"PROGRAM", "the program to start"});
  command.add_argument({"[ARGUMENT...]", "its arguments, passed on as they are"});
  command.add_program();
  command.add_option(request->workers, {"-n", "N", "number of workers, 1 to 1024 (required)"});
  command.set_example("tutti run -n 2 ./train --model model/");
  command.set_run([request](const std::vector<std::string> &words) {
    if (request->workers < 1 || request->workers > kMostWorkers)
      throw UsageError{"run needs -n with 1 to 1024 workers"};
    if (words.empty()) throw UsageError{"run needs a program"};
    request->program = words;
    return run_workers(*request);
  });
  return command;
}

}  // namespace tutti::tool
