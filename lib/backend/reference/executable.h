// SPDX-License-Identifier: Apache-2.0
//
// Executables and programs of the reference backend: a list of kernel calls over a table of pointers, one per value.
// The pointers of arenas, workspace and constants are fixed when a program is bound; those of inputs and outputs are
// set when segment 0 of a run begins.
#ifndef TUTTI_BACKEND_REFERENCE_EXECUTABLE_H_
#define TUTTI_BACKEND_REFERENCE_EXECUTABLE_H_

#include <tutti/plugin/backend.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backend/reference/block.h"
#include "backend/storage_plan.h"
#include "base/status.h"

namespace tutti::impl::backend::reference {

class ReferenceExecutable {
 public:
  static base::Result<std::unique_ptr<ReferenceExecutable>> compile(const tutti_compile_request &request,
                                                                    const tutti_backend_host *host,
                                                                    std::string device_name);

  const tutti_backend_host *host() const { return host_; }
  std::string describe() const;

 private:
  friend class ReferenceProgram;
  explicit ReferenceExecutable(LoweredGraph lowered) : lowered_(std::move(lowered)) {}
  base::Status add_calls();
  void add_copies(int32_t step, bool into_outputs);
  base::Status add_state_write(int32_t step);
  int32_t add_place(const Location &location);

  const tutti_backend_host *host_ = nullptr;
  bool has_trace_ = false;
  LoweredGraph lowered_;
  StoragePlan plan_;
  std::vector<KernelCall> calls_;
  std::vector<int32_t> segment_ends_;  // by segment: one past its last call
  std::vector<Location> places_;       // what the pointer table points to: the values, then targets of copies
  base::Json report_;
};

class ReferenceProgram {
 public:
  static base::Result<std::unique_ptr<ReferenceProgram>> bind(const ReferenceExecutable &executable,
                                                              const tutti_bind_request &request);

  base::Status run(int32_t segment, const tutti_run_arguments &arguments);
  const tutti_backend_host *host() const { return executable_.host_; }

 private:
  struct PortPointer {
    int32_t place;  // in the table
    int32_t port;   // of the run's inputs or outputs
  };

  explicit ReferenceProgram(const ReferenceExecutable &executable) : executable_(executable) {}

  const ReferenceExecutable &executable_;
  void *workspace_ = nullptr;
  std::vector<void *> table_;
  std::vector<PortPointer> inputs_, outputs_;
};

}  // namespace tutti::impl::backend::reference

#endif  // TUTTI_BACKEND_REFERENCE_EXECUTABLE_H_
