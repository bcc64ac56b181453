// SPDX-License-Identifier: Apache-2.0
#include "base/thread.h"

#include <cxxabi.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/forked.h"

namespace tutti::impl::base {

namespace {

struct Start {
  std::string name;
  std::function<void()> body;
};

void *run_thread(void *argument) {
  const std::unique_ptr<Start> start(static_cast<Start *>(argument));
  pthread_setname_np(pthread_self(), start->name.c_str());
  try {
    start->body();
  } catch (const abi::__forced_unwind &) {
    throw;  // the thread is being cancelled: not ours to stop
  } catch (...) {
  }
  return nullptr;
}

// A page that reads as zero in a forked child, or null where the kernel cannot do that.
char *make_process_mark() {
  const auto size = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void *page = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return nullptr;
  if (madvise(page, size, MADV_WIPEONFORK) != 0) {
    munmap(page, size);
    return nullptr;
  }
  *static_cast<volatile char *>(page) = 1;
  return static_cast<char *>(page);
}

}  // namespace

bool is_forked() noexcept {
  static volatile char *const mark = make_process_mark();
  static const pid_t process = getpid();
  return mark != nullptr ? *mark == 0 : process != getpid();
}

Result<Thread> Thread::start(const std::string &name, std::function<void()> body) {
  auto argument = std::make_unique<Start>(Start{name.substr(0, 15), std::move(body)});
  sigset_t blocked, before;
  sigfillset(&blocked);
  // What a thread does to itself reaches the process's handlers: virtual machines check for null by them, and a blocked
  // one would end the process without a word.
  for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT})
    sigdelset(&blocked, own);
  // The new thread inherits the mask.
  pthread_sigmask(SIG_SETMASK, &blocked, &before);
  Thread thread;
  const int error = pthread_create(&thread.thread_, nullptr, run_thread, argument.get());
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (error != 0) {
    return status_from_errno(error, concat("cannot start thread '", name, "'"))
        .wrap(Code::resource_exhausted, "out of threads");
  }
  argument.release();
  thread.running_ = true;
  return thread;
}

Thread::Thread(Thread &&other) noexcept : thread_(other.thread_), running_(std::exchange(other.running_, false)) {}

Thread &Thread::operator=(Thread &&other) noexcept {
  join();
  thread_ = other.thread_;
  running_ = std::exchange(other.running_, false);
  return *this;
}

void Thread::join() {
  if (std::exchange(running_, false)) pthread_join(thread_, nullptr);
}

Status check_not_forked() {
  if (!is_forked()) [[likely]]
    return Status();
  return failed_precondition(
      "this process was forked from one that used the library: the library's threads do not exist here, and objects "
      "made "
      "before the fork can only be released; use the library in only one of the two processes");
}

ThreadBudget::Lease &ThreadBudget::Lease::operator=(Lease &&other) noexcept {
  std::swap(budget_, other.budget_);
  std::swap(count_, other.count_);
  return *this;
}

ThreadBudget::Lease::~Lease() {
  if (budget_ == nullptr) return;
  std::lock_guard lock(budget_->mutex_);
  budget_->free_ += count_;
}

ThreadBudget::Lease ThreadBudget::take(int32_t wanted, int32_t at_least) {
  std::lock_guard lock(mutex_);
  const int32_t count = std::max({0, at_least, std::min(wanted, free_)});
  free_ -= count;
  return Lease(Ref<ThreadBudget>::share(this), count);
}

int32_t ThreadBudget::available() const {
  std::lock_guard lock(mutex_);
  return free_;
}

}  // namespace tutti::impl::base
