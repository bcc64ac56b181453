// SPDX-License-Identifier: Apache-2.0
//
// Tests of several processes: the test program starts itself as workers that meet at an address of the loopback, and
// waits for them with a hard limit.
//
//   int main(int count, char **arguments) {
//     if (is_worker(count)) return run_as_worker(arguments);      // of the test program
//     ...
//   }
//   Workers workers("equal", 2);        // <program> equal <worker> <workers> <address> <file>
//   workers.wait();
//   workers.output(0);                                             // what worker 0 wrote to its file
#ifndef TUTTI_TESTS_WORKER_PROCESSES_H_
#define TUTTI_TESTS_WORKER_PROCESSES_H_

#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "free_port.h"
#include "testing.h"

extern char **environ;

namespace tutti::testing {

/// What a worker is told.
struct WorkerCall {
  std::string scenario;
  int worker = 0, workers = 0;
  std::string address, file;
};
constexpr int kWorkerArguments = 6;
inline bool is_worker(int count) { return count == kWorkerArguments; }
inline WorkerCall worker_call(char **arguments) {
  return {arguments[1], atoi(arguments[2]), atoi(arguments[3]), arguments[4], arguments[5]};
}

class Workers {
 public:
  static constexpr int kLimitSeconds = 90;

  Workers(const std::string &scenario, int count)
      : address_("127.0.0.1:" + std::to_string(free_port())), children_(static_cast<size_t>(count)) {
    char folder[] = "/tmp/tutti-workers-XXXXXX";
    folder_ = mkdtemp(folder);
    for (int w = 0; w < count; ++w)
      start(scenario, w);
  }
  ~Workers() {
    for (Child &child : children_)
      if (child.pid > 0) kill(child.pid, SIGKILL), waitpid(child.pid, nullptr, 0);
    for (size_t w = 0; w < children_.size(); ++w)
      unlink(file(static_cast<int>(w)).c_str());
    rmdir(folder_.c_str());
  }
  Workers(const Workers &) = delete;

  const std::string &address() const { return address_; }

  /// Waits for all; whoever still runs at the limit is killed, and counts as 124.
  void wait() {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(kLimitSeconds);
    for (Child &child : children_)
      wait_for(child, end);
  }
  /// For all but one, whose end nobody waits for: it is killed then.
  void wait_without(int worker) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(kLimitSeconds);
    for (int w = 0; w < static_cast<int>(children_.size()); ++w)
      if (w != worker) wait_for(children_[static_cast<size_t>(w)], end);
    wait_for(children_[static_cast<size_t>(worker)], {});
  }
  /// Ports at which workers listen now, by what the kernel says of their open files.
  std::set<int> listening_ports() const {
    std::set<std::string> sockets;
    for (const Child &child : children_) {
      std::error_code ignored;
      const std::string folder = "/proc/" + std::to_string(child.pid) + "/fd";
      for (const auto &file : std::filesystem::directory_iterator(folder, ignored))
        sockets.insert(std::filesystem::read_symlink(file.path(), ignored).string());
    }
    // "  sl  local_address rem_address   st tx_queue:rx_queue tr:tm->when retrnsmt   uid  timeout inode ..."
    std::ifstream table("/proc/net/tcp");
    std::set<int> ports;
    for (std::string line; std::getline(table, line);) {
      std::istringstream words(line);
      std::string number, local, remote, state, queues, timer, retransmits, user, timeout, inode;
      words >> number >> local >> remote >> state >> queues >> timer >> retransmits >> user >> timeout >> inode;
      if (state == "0A" && sockets.count("socket:[" + inode + "]") > 0)
        ports.insert(static_cast<int>(strtol(local.substr(local.find(':') + 1).c_str(), nullptr, 16)));
    }
    return ports;
  }
  /// Sends a signal to a worker that runs.
  void send(int worker, int number) {
    const pid_t pid = children_[static_cast<size_t>(worker)].pid;
    if (pid > 0) kill(pid, number);
  }
  bool any_runs() {
    bool runs = false;
    for (Child &child : children_) {
      wait_for(child, std::chrono::steady_clock::time_point::max(), false);
      runs = runs || child.pid > 0;
    }
    return runs;
  }
  /// 128 + the signal for one that was killed.
  int code(int worker) const { return children_[static_cast<size_t>(worker)].code; }
  std::string output(int worker) const {
    std::ifstream in(file(worker));
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
  }

 private:
  struct Child {
    pid_t pid = 0;
    int code = -1;
  };

  /// Until then; who still runs is killed. Without `waits`: looks once.
  static void wait_for(Child &child, std::chrono::steady_clock::time_point end, bool waits = true) {
    for (bool again = true; again && child.pid > 0; again = waits) {
      int status = 0;
      if (waitpid(child.pid, &status, WNOHANG) == child.pid) {
        child.pid = 0;
        child.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      } else if (std::chrono::steady_clock::now() > end) {
        kill(child.pid, SIGKILL);
        waitpid(child.pid, nullptr, 0);
        child.pid = 0;
        child.code = 124;
      } else if (waits) {
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
      }
    }
  }
  std::string file(int worker) const { return folder_ + "/" + std::to_string(worker); }
  void start(const std::string &scenario, int worker) {
    std::string arguments[] = {"/proc/self/exe", scenario,    std::to_string(worker), std::to_string(children_.size()),
                               address_,         file(worker)};
    char *pointers[kWorkerArguments + 1] = {};
    for (int i = 0; i < kWorkerArguments; ++i)
      pointers[i] = arguments[i].data();
    pid_t &pid = children_[static_cast<size_t>(worker)].pid;
    if (posix_spawn(&pid, "/proc/self/exe", nullptr, nullptr, pointers, environ) != 0) pid = 0;
  }

  const std::string address_;
  std::string folder_;
  std::vector<Child> children_;
};

}  // namespace tutti::testing

#endif  // TUTTI_TESTS_WORKER_PROCESSES_H_
