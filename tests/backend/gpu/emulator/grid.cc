// SPDX-License-Identifier: Apache-2.0
#undef _FORTIFY_SOURCE  // its longjmp ends a program that jumps from one stack to another
#include "grid.h"

#include <setjmp.h>
#include <ucontext.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

using namespace tutti_gpu_emulator;

namespace {

using Thread = std::function<void()>;

constexpr size_t kStackBytes = 256 << 10;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TUTTI_SANITIZED 1
#elif defined(__has_feature)
#define TUTTI_SANITIZED (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#define TUTTI_SANITIZED 0
#endif

/// A stack of its own, and where it goes on. swapcontext calls the kernel for the mask of signals at every switch; that
/// costs more than most kernels here do between two. So a stack is left and entered by _setjmp and _longjmp once it has
/// begun, as QEMU's coroutines are (util/coroutine-ucontext.c). Sanitizers follow swapcontext alone.
class Place {
 public:
  /// Of the calling thread's own stack.
  Place() = default;
  /// Of a new stack, where `body` is called on first entry; it does not return.
  Place(void (*body)(), size_t stack_bytes) : stack_(std::make_unique_for_overwrite<char[]>(stack_bytes)) {
    getcontext(&context_);
    context_.uc_stack.ss_sp = stack_.get();
    context_.uc_stack.ss_size = stack_bytes;
    context_.uc_link = nullptr;
    makecontext(&context_, body, 0);
  }

  /// Goes on at `next`; comes back when somebody goes on here.
  void leave_for(Place &next) {
#if TUTTI_SANITIZED
    swapcontext(&context_, &next.context_);
#else
    was_left_ = true;
    if (_setjmp(jump_) != 0) return;
    if (next.was_left_) _longjmp(next.jump_, 1);
    setcontext(&next.context_);
#endif
  }

 private:
  std::unique_ptr<char[]> stack_;
  ucontext_t context_;
#if !TUTTI_SANITIZED
  jmp_buf jump_;
  bool was_left_ = false;
#endif
};

struct Fiber {
  explicit Fiber(void (*body)()) : place(body, kStackBytes) {}

  Place place;
  unsigned thread = 0;
  bool is_finished = false;
};

/// A point that all living threads of a group reach before one goes on.
struct Barrier {
  unsigned expected = 0, arrived = 0;
  uint64_t generation = 0;

  void arrive() {
    ++arrived;
    release_if_complete();
  }
  void leave() {  // for good
    --expected;
    release_if_complete();
  }
  void release_if_complete() {
    if (arrived < expected || arrived == 0) return;
    arrived = 0;
    ++generation;
  }
};

class BlockRunner {
 public:
  static BlockRunner &instance() {
    static BlockRunner runner;
    return runner;
  }

  void run(const Thread &thread, bool is_backwards) {
    threads_ = blockDim.x * blockDim.y * blockDim.z;
    thread_ = &thread;
    is_backwards_ = is_backwards;
    next_thread_ = 0;
    block_ = {threads_, 0, 0};
    warps_.assign((threads_ + warpSize - 1) / warpSize, {});
    for (unsigned t = 0; t < threads_; ++t)
      ++warps_[t / warpSize].expected;
    slots_.resize(threads_);
    std::vector<Fiber *> waiting;
    while (next_thread_ < threads_ || !waiting.empty()) {
      if (next_thread_ < threads_) {
        Fiber *const fiber = fresh();
        resume(*fiber);
        if (!fiber->is_finished) waiting.push_back(fiber);
        continue;
      }
      advance(waiting);
    }
  }

  void wait(Barrier &barrier) {
    const uint64_t generation = barrier.generation;
    barrier.arrive();
    while (barrier.generation == generation) {
      Fiber &fiber = *current_;
      fiber.place.leave_for(scheduler_);
      set_thread(fiber.thread);
    }
    progress_ = true;
  }
  Barrier &block() { return block_; }
  Barrier &warp() { return warps_[current_->thread / warpSize]; }
  unsigned thread() const { return current_->thread; }
  uint64_t &slot(unsigned thread) { return slots_[thread]; }

 private:
  /// Threads, until this fiber has been left with one that waited and none is left to begin; then those of the next
  /// block that takes the fiber. Nobody returns from here.
  [[gnu::no_sanitize("thread")]] static void body() {
    BlockRunner &self = instance();
    Fiber &fiber = *self.current_;
    for (;;) {
      while (self.next_thread_ < self.threads_) {
        const unsigned next = self.next_thread_++;
        fiber.thread = self.is_backwards_ ? self.threads_ - 1 - next : next;
        self.set_thread(fiber.thread);
        (*self.thread_)();
        self.block_.leave();
        self.warps_[fiber.thread / warpSize].leave();
        self.progress_ = true;
      }
      fiber.is_finished = true;
      self.idle_.push_back(&fiber);
      fiber.place.leave_for(self.scheduler_);
    }
  }

  Fiber *fresh() {
    if (idle_.empty()) {
      fibers_.push_back(std::make_unique<Fiber>(body));
      idle_.push_back(fibers_.back().get());
    }
    Fiber *const fiber = idle_.back();
    idle_.pop_back();
    fiber->is_finished = false;
    return fiber;
  }

  void resume(Fiber &fiber) {
    current_ = &fiber;
    scheduler_.leave_for(fiber.place);
  }

  /// Lets every waiting fiber go on once.
  void advance(std::vector<Fiber *> &waiting) {
    progress_ = false;
    for (Fiber *const fiber : waiting)
      resume(*fiber);
    std::erase_if(waiting, [](const Fiber *fiber) { return fiber->is_finished; });
    if (progress_) return;
    std::fprintf(stderr, "emulated GPU: %zu threads of a block wait at barriers that the others do not reach\n",
                 waiting.size());
    std::abort();
  }

  static void set_thread(unsigned thread) {
    threadIdx.x = thread % blockDim.x;
    threadIdx.y = thread / blockDim.x % blockDim.y;
    threadIdx.z = thread / blockDim.x / blockDim.y;
  }

  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Fiber *> idle_;
  Place scheduler_;
  Fiber *current_ = nullptr;
  const Thread *thread_ = nullptr;
  unsigned threads_ = 0, next_thread_ = 0;
  Barrier block_;
  std::vector<Barrier> warps_;
  std::vector<uint64_t> slots_;
  bool progress_ = false, is_backwards_ = false;
};

std::vector<unsigned char> &shared_memory() {
  static std::vector<unsigned char> memory;
  return memory;
}

}  // namespace

namespace tutti_gpu_emulator {

void run_grid(dim3 grid, dim3 block, size_t shared_bytes, const Thread &thread) {
  gridDim = grid;
  blockDim = block;
  shared_memory().resize(shared_bytes + 16);
  static bool is_backwards = true;
  is_backwards = !is_backwards;
  const uint64_t blocks = uint64_t{grid.x} * grid.y * grid.z;
  for (uint64_t i = 0; i < blocks; ++i) {
    const uint64_t number = is_backwards ? blocks - 1 - i : i, line = number / grid.x;
    blockIdx = {static_cast<unsigned>(number % grid.x), static_cast<unsigned>(line % grid.y),
                static_cast<unsigned>(line / grid.y)};
    std::fill(shared_memory().begin(), shared_memory().end(), static_cast<unsigned char>(0xFF));
    BlockRunner::instance().run(thread, is_backwards);
  }
}

uint64_t exchange(uint64_t value, int source_lane) {
  BlockRunner &runner = BlockRunner::instance();
  const unsigned thread = runner.thread(), first = thread / warpSize * warpSize;
  const unsigned threads = blockDim.x * blockDim.y * blockDim.z;
  runner.slot(thread) = value;
  runner.wait(runner.warp());
  const unsigned source = first + static_cast<unsigned>(source_lane);
  const uint64_t got = source < threads ? runner.slot(source) : value;
  runner.wait(runner.warp());
  return got;
}

unsigned char *dynamic_shared() {
  const auto address = reinterpret_cast<uintptr_t>(shared_memory().data());
  return reinterpret_cast<unsigned char *>((address + 15) / 16 * 16);
}

}  // namespace tutti_gpu_emulator

void __syncthreads() {
  BlockRunner &runner = BlockRunner::instance();
  runner.wait(runner.block());
}
