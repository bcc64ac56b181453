// SPDX-License-Identifier: Apache-2.0
//
// The backend's executables and programs: the list of kernel calls that lowering made, and the same bound to memory.
//
// A CpuExecutable is immutable and shared by its programs. A CpuProgram holds a table of pointers, one for each buffer,
// of which only those of the run's inputs and outputs change, and the kernels' states; a run is a loop over calls. With
// more than one thread it shares the team of its device (team.h) with the other programs there.
// Threads: different programs may run at the same time, one program in one thread at a time.
#ifndef TUTTI_BACKEND_CPU_DEVICE_CPU_EXECUTABLE_H_
#define TUTTI_BACKEND_CPU_DEVICE_CPU_EXECUTABLE_H_

#include <tutti/plugin/backend.h>

#include <memory>
#include <string>
#include <vector>

#include "backend/cpu/kernel/kernel.h"
#include "backend/cpu/lower/lowering.h"
#include "backend/lowered_graph.h"
#include "base/json.h"
#include "base/status.h"

namespace tutti::impl::backend::cpu {

class CpuExecutable {
 public:
  static base::Result<std::unique_ptr<CpuExecutable>> compile(const tutti_backend_host *host,
                                                              const tutti_compile_request &request);

  const tutti_backend_host *host() const { return host_; }
  const CallList &list() const { return list_; }
  /// The constants of the graph are read where they lie.
  const graph::Graph &graph() const { return graph_->graph(); }
  int32_t threads() const { return graph_->threads(); }
  /// Put a trace span around every kernel?
  bool traces() const { return traces_; }
  /// The text of describe.
  std::string describe() const;
  /// Calls [segment_begin(i), segment_begin(i + 1)) are segment i, but for the external node at its end.
  int32_t segment_count() const { return static_cast<int32_t>(list_.externals.size()) + 1; }

 private:
  base::Json report() const;

  const tutti_backend_host *host_ = nullptr;
  std::unique_ptr<LoweredGraph> graph_;
  CallList list_;
  bool traces_ = false;
};

class CpuProgram {
 public:
  static base::Result<std::unique_ptr<CpuProgram>> bind(const CpuExecutable &executable,
                                                        const tutti_bind_request &request);
  int32_t run(int32_t segment, const tutti_run_arguments &arguments, tutti_stream *stream, tutti_error_sink *sink);

 private:
  struct BoundCall {
    const Kernel *kernel;
    KernelState *state;
    std::string span;  // name of the trace span
  };
  struct Port {
    BufferId buffer;
    int32_t index;
  };

  int32_t run_calls(int32_t segment, const RunContext &context) const;

  const tutti_backend_host *host_ = nullptr;
  int32_t threads_ = 1;
  int32_t device_ = 0;
  std::shared_ptr<Team> team_;  // null with one thread
  bool traces_ = false;
  std::vector<void *> buffers_;
  std::vector<Port> inputs_, outputs_;
  std::vector<BoundCall> calls_;
  std::vector<int32_t> segments_;  // first call of each, and the end
  std::vector<std::unique_ptr<KernelState>> states_;
};

}  // namespace tutti::impl::backend::cpu

#endif  // TUTTI_BACKEND_CPU_DEVICE_CPU_EXECUTABLE_H_
