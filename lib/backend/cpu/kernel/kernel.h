// SPDX-License-Identifier: Apache-2.0
//
// What a compiled program of the CPU backend is made of: kernels that are called one after the other with a table of
// pointers.
//
//   class Kernel: made once at compile time, immutable, shared by all programs of the executable.
//   class KernelState: what a kernel needs for each program (handles of a library, for example); made by bind.
//   struct RunContext: the pointers and scalars of one run, and the threads it may use.
//   class Parts: how a kernel's items are cut up for the threads of a program.
//
// A kernel addresses memory through buffer numbers: context.buffers[number]. Running allocates nothing, looks nothing
// up and takes no lock.
//
// A kernel with much to do cuts its items (elements, rows, images) into parts at compile time and hands them out:
//
//   const Parts parts(rows, grain, threads);                                // from shape and threads alone
//   c.for_parts(parts, [&](Range r, int32_t thread) { work on rows r.begin .. r.end - 1 });
//
// Who does a part is left to chance, what it does is not: results are repeatable for a number of threads.
#ifndef TUTTI_BACKEND_CPU_KERNEL_KERNEL_H_
#define TUTTI_BACKEND_CPU_KERNEL_KERNEL_H_

#include <tutti/plugin/backend.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

#include "backend/cpu/kernel/team.h"
#include "base/status.h"

namespace tutti::impl::backend::cpu {

/// Index into the table of pointers of a program; -1 = absent.
using BufferId = int32_t;

/// What belongs to one kernel in one program.
class KernelState {
 public:
  virtual ~KernelState() = default;
};

/// Items begin .. end - 1.
struct Range {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t size() const { return end - begin; }
};

/// Tests cut up small things, too: parts of one item are then worth while.
inline std::atomic<bool> cut_everything{false};

/// Items in nearly equal parts, in order: as many as give each `grain` items, up to kPartsPerThread for each thread, so
/// that a thread that comes late or is held up leaves its parts to others. At least one.
class Parts {
 public:
  static constexpr int32_t kPartsPerThread = 4;

  Parts() = default;
  Parts(int64_t items, int64_t grain, int32_t threads, int32_t parts_per_thread = kPartsPerThread)
      : items_(items),
        count_(threads <= 1 ? 1 : most(items, grain, threads, parts_per_thread)),
        threads_(std::clamp(threads, 1, count_)) {}
  /// So many parts, whatever the threads.
  static Parts exactly(int64_t items, int32_t count, int32_t threads) {
    Parts parts;
    parts.items_ = items;
    parts.count_ = count;
    parts.threads_ = std::clamp(threads, 1, count);
    return parts;
  }

  int64_t items() const { return items_; }
  int32_t count() const { return count_; }
  /// How many threads can work at once: scratch is needed for so many.
  int32_t threads() const { return threads_; }
  Range operator[](int32_t part) const { return {items_ * part / count_, items_ * (part + 1) / count_}; }
  friend bool operator==(const Parts &, const Parts &) = default;

 private:
  static int32_t most(int64_t items, int64_t grain, int32_t threads, int32_t parts_per_thread) {
    const int64_t limit = std::min<int64_t>(int64_t{threads} * parts_per_thread, Team::kMostParts);
    if (grain < 1 || cut_everything.load(std::memory_order_relaxed)) grain = 1;
    return static_cast<int32_t>(std::clamp<int64_t>(items / grain, 1, limit));
  }

  int64_t items_ = 0;
  int32_t count_ = 1;
  int32_t threads_ = 1;
};

/// Elements that pass through a kernel in about 8 us, several times what handing out a part costs.
inline constexpr int64_t kPartElements = 65536;
/// The grain for items of so many elements.
inline int64_t grain_of(int64_t elements_per_item) {
  return std::max<int64_t>(1, kPartElements / std::max<int64_t>(elements_per_item, 1));
}

/// The first of the items that are wrong, found by parts in any order.
class FirstWrong {
 public:
  /// A wrong item counted from `first`; -1 = none in this part.
  void note(int64_t item, int64_t first = 0) {
    if (item >= 0) item += first;
    int64_t known = item_.load(std::memory_order_relaxed);
    while (item >= 0 && (known < 0 || item < known) &&
           !item_.compare_exchange_weak(known, item, std::memory_order_relaxed)) {
    }
  }
  int64_t get() const { return item_.load(std::memory_order_relaxed); }

 private:
  std::atomic<int64_t> item_{-1};
};

struct RunContext {
  void *const *buffers = nullptr;
  const int64_t *scalars = nullptr;  ///< TUTTI_RUN_* values
  tutti_stream *stream = nullptr;
  const tutti_backend_host *host = nullptr;
  tutti_error_sink *sink = nullptr;
  Team *team = nullptr;  ///< null: parts are done one after the other
  int32_t threads = 1;   ///< of the program; parts see thread numbers below it
  int32_t device = 0;    ///< its number: others may run the same program at the same time

  /// Calls body(range, thread) or body(range) for every part.
  template <typename Body>
  void for_parts(const Parts &parts, const Body &body) const {
    const auto run_range = [&](Range range, int32_t thread) {
      if constexpr (std::is_invocable_v<const Body &, Range, int32_t>) {
        body(range, thread);
      } else {
        body(range);
      }
    };
    if (parts.count() == 1) return run_range(Range{0, parts.items()}, 0);
    for_each(parts.count(), [&](int32_t part, int32_t thread) { run_range(parts[part], thread); });
  }
  /// Calls body(part, thread) for part 0 .. count - 1.
  template <typename Body>
  void for_each(int32_t count, const Body &body) const {
    if (count == 1) return body(0, 0);
    if (team != nullptr) return team->run(count, threads, body);
    for (int32_t part = 0; part < count; ++part)
      body(part, 0);
  }

  const float *in(BufferId id) const { return static_cast<const float *>(buffers[id]); }
  float *out(BufferId id) const { return static_cast<float *>(buffers[id]); }
  /// Null for an absent buffer.
  const float *in_or_null(BufferId id) const { return id < 0 ? nullptr : in(id); }
  /// Reports an error; the code to return.
  [[gnu::cold]] int32_t fail(const base::Status &status) const {
    host->set_error(sink, static_cast<int32_t>(status.code()), status.message().c_str());
    return static_cast<int32_t>(status.code());
  }
};

class Kernel {
 public:
  virtual ~Kernel() = default;
  /// Null when the kernel keeps nothing for a program.
  virtual base::Result<std::unique_ptr<KernelState>> make_state() const { return std::unique_ptr<KernelState>(); }
  /// 0, or the code of an error that was reported.
  virtual int32_t run(const RunContext &context, KernelState *state) const = 0;
};

/// A kernel from a function of the context that returns an error code or nothing.
template <typename Function>
class FunctionKernel final : public Kernel {
 public:
  explicit FunctionKernel(Function function) : function_(std::move(function)) {}

  int32_t run(const RunContext &context, KernelState *) const override {
    if constexpr (std::is_void_v<decltype(function_(context))>) {
      function_(context);
      return 0;
    } else {
      return function_(context);
    }
  }

 private:
  Function function_;
};

}  // namespace tutti::impl::backend::cpu

#endif  // TUTTI_BACKEND_CPU_KERNEL_KERNEL_H_
