// SPDX-License-Identifier: Apache-2.0
//
// Ctrl-C while a model trains: the first SIGINT or SIGTERM ends the training after its step, with a checkpoint; a
// second one ends the process at once.
#ifndef TUTTI_TOOL_TRAINING_STOP_SIGNALS_H_
#define TUTTI_TOOL_TRAINING_STOP_SIGNALS_H_

#include <atomic>
#include <csignal>
#include <thread>
#include <tutti/tutti.hpp>

namespace tutti::tool {

class StopSignals {
 public:
  /// From now on; before any other thread is there, since threads have the mask of the one that makes them.
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals &) = delete;
  StopSignals &operator=(const StopSignals &) = delete;

  tutti_cancel *cancel() const { return cancel_; }
  /// What the process has to end with after such a signal: 128 + its number; 0 = none came.
  int exit_status() const { return number_ == 0 ? 0 : 128 + number_; }

 private:
  void wait();
  void take(int number);

  Cancel cancel_;
  sigset_t awaited_, before_;
  std::atomic<int> number_{0};
  std::atomic<bool> is_over_{false};
  std::thread thread_;
};

}  // namespace tutti::tool

#endif  // TUTTI_TOOL_TRAINING_STOP_SIGNALS_H_
