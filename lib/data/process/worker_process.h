// SPDX-License-Identifier: Apache-2.0
//
// WorkerProcess: a program that the library has started and that maps elements, one at a time. It reads them from its
// standard input and writes what it makes of them to its standard output (process_channel.h, process_elements.h); its
// standard error is that of the host.
//
//   WorkerProcesses processes;                                    // of a walk, of all its passes
//   TUTTI_ASSIGN(std::unique_ptr<WorkerProcess> process, processes.take(program, token));
//   const Status status = process->map(program, input, output, token);
//   processes.give_back(std::move(process));
//
// A process has nothing of the host but the environment, the working directory and standard error: no descriptor, no
// signal that is blocked or ignored. It has a process group of its own, so that what a terminal sends to the host (an
// interrupt) is for the host alone. It ends when its input does; also when the host is killed.
//
// Threads: a WorkerProcess belongs to one thread at a time; WorkerProcesses to any number.
#ifndef TUTTI_DATA_PROCESS_WORKER_PROCESS_H_
#define TUTTI_DATA_PROCESS_WORKER_PROCESS_H_

#include <sys/types.h>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/cancel.h"
#include "base/file.h"
#include "base/status.h"
#include "data/element/element.h"
#include "data/process/process_channel.h"

namespace tutti::impl::data {

/// What is started, and for which elements.
struct WorkerProgram {
  std::vector<std::string> command;  ///< the program, looked for in PATH, and its arguments
  ElementSpec inputs;
  ElementSpec outputs;
  std::string greeting;  ///< the first message

  /// May a process that was started for one serve the other?
  bool is_like(const WorkerProgram &other) const {
    return this == &other || (command == other.command && greeting == other.greeting);
  }
  /// The command in quotes: 'python3 scale.py'.
  std::string to_string() const;
};

class WorkerProcess {
 public:
  /// How long a process that is asked to end may take before it is killed.
  static constexpr int64_t kGraceMs = 2000;

  /// Starts one and waits until it is ready, or the token (null allowed) says otherwise.
  static base::Result<std::unique_ptr<WorkerProcess>> start(std::shared_ptr<const WorkerProgram> program,
                                                            const base::CancelToken *token);
  /// Ends it: closes its input, and terminates it if it is at work; kills it after some time.
  ~WorkerProcess();
  WorkerProcess(const WorkerProcess &) = delete;
  WorkerProcess &operator=(const WorkerProcess &) = delete;

  /// Fills `output`. An interrupt when the token (null allowed) ends the wait. After an error that the worker itself
  /// reports it goes on; after any other it is_broken().
  base::Status map(const Element &input, Element &output, const base::CancelToken *token);

  bool is_broken() const { return is_broken_; }
  const WorkerProgram &program() const { return *program_; }
  pid_t process() const { return process_; }
  /// Has it ended? Then it is gone from the system's table.
  bool has_ended();
  /// Closes its input, so that it begins to end.
  void close();

 private:
  WorkerProcess(std::shared_ptr<const WorkerProgram> program, pid_t process, base::FileDescriptor socket,
                WakeEvent event);
  base::Status greet(const base::CancelToken *token);
  base::Status exchange(const Element &input, Element &output);
  /// Why the talk with it ended: `status`, or, when it has closed its end, how it died. It is broken afterwards.
  base::Status explain(const base::Status &status, const std::string &during);
  bool await_end(base::Deadline deadline);
  /// Sends a signal to it and its children, unless it has ended.
  void signal(int number);
  /// "worker process 'python3 scale.py' (process 4711)".
  std::string to_string() const;

  const std::shared_ptr<const WorkerProgram> program_;
  const pid_t process_;
  const pid_t host_;  // who may wait for it: not a fork of the host
  base::FileDescriptor socket_;
  const WakeEvent event_;
  ProcessChannel channel_;
  bool is_broken_ = false;
  bool is_closed_ = false;
  base::Deadline end_by_;  // when it is killed, once it is closed
  bool has_ended_ = false;
  bool has_wait_status_ = false;
  int wait_status_ = 0;
};

/// The worker processes of one walk: those that are free wait for the next element that they can serve, of this pass or
/// a later one.
class WorkerProcesses {
 public:
  ~WorkerProcesses();
  /// A free process of such a program, or else a new one.
  base::Result<std::unique_ptr<WorkerProcess>> take(const std::shared_ptr<const WorkerProgram> &program,
                                                    const base::CancelToken *token);
  /// It is free from now on; a broken one ends.
  void give_back(std::unique_ptr<WorkerProcess> process);

 private:
  /// Null when there is none.
  std::unique_ptr<WorkerProcess> take_free(const WorkerProgram &program);

  // So many may be free; beyond, the one that was given back first ends.
  static constexpr size_t kMostFree = 256;

  std::mutex mutex_;
  std::vector<std::unique_ptr<WorkerProcess>> free_;  // guarded by mutex_
};

}  // namespace tutti::impl::data

#endif  // TUTTI_DATA_PROCESS_WORKER_PROCESS_H_
