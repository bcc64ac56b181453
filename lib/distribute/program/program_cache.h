// SPDX-License-Identifier: Apache-2.0
//
// Compiled graphs by shape. An ExecutableCache compiles each (graph, shape) once for all replicas; a ProgramCache binds
// executables to the memory of one contributor. Both keep a bounded number, least recently used first out, and count.
// Internal to this folder.
#ifndef TUTTI_DISTRIBUTE_PROGRAM_PROGRAM_CACHE_H_
#define TUTTI_DISTRIBUTE_PROGRAM_PROGRAM_CACHE_H_

#include <atomic>
#include <condition_variable>
#include <list>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "backend/executable.h"
#include "base/json.h"
#include "base/status.h"
#include "base/thread.h"
#include "collective/group.h"
#include "distribute/plan/state_plan.h"
#include "distribute/program/workspace.h"

namespace tutti::impl::distribute {

/// A graph with everything that is fixed before its shape is.
struct GraphSource {
  std::string text;
  backend::StateTable state;
  backend::Level level = backend::Level::fast;
  int32_t threads = 1;
  backend::Precision precision = backend::Precision::f32;
  /// Rows have the same bits among any number of rows (TUTTI_COMPILE_ROW_INVARIANT).
  bool is_row_invariant = false;
  /// Those that run it together, in order of ranks; empty: each runs it for itself.
  std::vector<backend::DeviceRef> devices = {};
};

/// What compiles it; borrows from `source`. `traced`: with a span around every kernel.
backend::CompileRequest compile_request(const GraphSource &source, const graph::SymbolBindings &bindings, bool traced);

/// Values of the symbols that vary, in an order the owner fixes.
using ShapeKey = std::vector<int64_t>;

/// Threads: any.
class ExecutableCache {
 public:
  explicit ExecutableCache(size_t capacity) : capacity_(capacity) {}

  /// The executable of `source` for `key`; compiled on this thread unless another one is at it.
  /// `traced`: with a span around every kernel.
  base::Result<backend::ExecutableRef> get(const GraphSource &source, const ShapeKey &key,
                                           const graph::SymbolBindings &bindings, backend::Device &device, bool traced);
  int64_t built() const { return built_.load(std::memory_order_relaxed); }
  int64_t evicted() const { return evicted_.load(std::memory_order_relaxed); }
  /// Reports of the executables that are in the cache.
  base::Json describe() const;

 private:
  struct Key {
    const GraphSource *source;
    ShapeKey shape;
    bool traced;
    auto operator<=>(const Key &) const = default;
  };
  struct Entry {
    backend::ExecutableRef executable;  // null while it is being compiled
    int64_t last_use = 0;
  };

  void evict();

  const size_t capacity_;
  mutable std::mutex mutex_;
  std::condition_variable compiled_;
  std::map<Key, Entry> entries_;  // guarded by mutex_
  int64_t clock_ = 0;             // guarded by mutex_
  std::atomic<int64_t> built_{0}, evicted_{0};
};

/// An external node of a bound program.
struct BoundExternal {
  int32_t bucket = -1;  ///< mark of a bucket, or -1: a collective
  collective::Reduction reduction = collective::Reduction::sum;
  void *pointer = nullptr;
  int64_t elements = 0;
  tensor::DType dtype = tensor::DType::f32;
  std::string label;
};

/// A program with the places of its externals.
struct BoundProgram {
  backend::ExecutableRef executable;
  backend::Program program;
  std::vector<BoundExternal> externals;
  int64_t generation = -1;  // of the workspace it is bound to
  int64_t id = 0;  // of this program in this place, from StepRows::kFirstProgram on; of no other in the process

  const backend::ExecutableDescription &description() const { return executable->description(); }
};

/// Programs of one contributor over one set of arenas. Caches whose programs run one after the other on one stream
/// share a workspace. Threads: one.
class ProgramCache {
 public:
  /// `workspace` outlives the cache.
  ProgramCache(ExecutableCache &executables, backend::DeviceRef device, Workspace &workspace, size_t capacity)
      : executables_(executables), device_(std::move(device)), workspace_(workspace), capacity_(capacity) {}

  void set_arenas(const ArenaPointers &arenas) { arenas_ = arenas; }
  const ArenaPointers &arenas() const { return arenas_; }
  /// Drops the programs made so far, which nothing runs any more.
  void forget();
  /// Whether programs have a trace. Drops those made so far.
  void set_traced(bool traced);

  /// Finds or makes programs of several graphs for one shape; they stay valid until the next call. A repeated shape
  /// allocates nothing.
  /// `bindings` is asked only when something must be compiled.
  base::Status prepare(std::span<const GraphSource *const> sources, const ShapeKey &key,
                       base::FunctionRef<graph::SymbolBindings()> bindings, std::span<BoundProgram *> programs);
  /// The same in two steps, where caches share a workspace: it has grown for all of them before the first is bound.
  base::Status find(std::span<const GraphSource *const> sources, const ShapeKey &key,
                    base::FunctionRef<graph::SymbolBindings()> bindings);
  /// Those that were found last; without effect on programs that are bound to the workspace where it is now.
  base::Status bind(std::span<BoundProgram *> programs);
  /// The program of a graph, the first of those that were found for a key, where it is bound and need not be bound
  /// anew; else null.
  const BoundProgram *peek(const GraphSource &source, const ShapeKey &key) const;
  /// The same key as in the last find(), which succeeded: its programs are still those.
  bool is_current(const ShapeKey &key) const { return is_found_ && entries_.front().key == key; }

  int64_t built() const { return built_.load(std::memory_order_relaxed); }

 private:
  struct Entry {
    ShapeKey key;
    std::vector<const GraphSource *> sources;
    std::vector<BoundProgram> programs;
  };

  base::Status bind(BoundProgram &program);

  ExecutableCache &executables_;
  const backend::DeviceRef device_;
  Workspace &workspace_;
  const size_t capacity_;
  ArenaPointers arenas_{};
  std::list<Entry> entries_;  // most recently used first
  bool is_found_ = false;     // the first entry
  bool traced_ = false;
  std::atomic<int64_t> built_{0};
};

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_PROGRAM_PROGRAM_CACHE_H_
