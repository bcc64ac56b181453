// SPDX-License-Identifier: Apache-2.0
#include "tool/training/stop_signals.h"

#include <pthread.h>
#include <unistd.h>

#include <cstdio>

namespace tutti::tool {

namespace {

/// In place of a line of progress that may be there.
void say(const char *text) {
  std::fprintf(stderr, "%stutti: %s\n", isatty(STDERR_FILENO) != 0 ? "\r\033[K" : "", text);
}

}  // namespace

StopSignals::StopSignals() {
  sigemptyset(&awaited_);
  for (const int number : {SIGINT, SIGTERM})
    sigaddset(&awaited_, number);
  pthread_sigmask(SIG_BLOCK, &awaited_, &before_);
  thread_ = std::thread([this] { wait(); });
}

StopSignals::~StopSignals() {
  is_over_ = true;
  thread_.join();
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

void StopSignals::wait() {
  while (!is_over_) {
    const timespec limit{0, 50'000'000};
    const int number = sigtimedwait(&awaited_, nullptr, &limit);
    if (number > 0) take(number);
  }
}

void StopSignals::take(int number) {
  if (number_ != 0) {
    say("stopped at once");
    _exit(128 + number);
  }
  number_ = number;
  say("stopping after this step, with a checkpoint; again to stop at once");
  cancel_.stop();
}

}  // namespace tutti::tool
