// SPDX-License-Identifier: Apache-2.0
//
// Named ranges of what the host does, for tools that watch the process (Nsight Systems shows them in domain "tutti"). A
// segment of a program has one, with the step as its number; so has the launch of a recorded step. A program with a
// trace has one for each node, too.
// Each platform defines the functions in its own folder, or takes no_ranges.cc. Without a tool they do nothing.
//
//   const RangeName name = register_range("segment 0: conv1/conv2d .. dense/matmul");     // once
//   { const Range range(name, step); launch(); }
//
// Threads: any; ranges of one thread nest.
#ifndef TUTTI_BACKEND_GPU_RUNTIME_RANGES_H_
#define TUTTI_BACKEND_GPU_RUNTIME_RANGES_H_

#include <cstdint>
#include <string>

namespace tutti::impl::backend::gpu {

/// Lives as long as the process; null when nobody watches.
using RangeName = void *;

RangeName register_range(const std::string &text);
void begin_range(RangeName name, int64_t number);
void end_range();
/// The interface to tools: its version, or why there is none.
const char *describe_ranges();

class Range {
 public:
  Range(RangeName name, int64_t number) : name_(name) {
    if (name_ != nullptr) begin_range(name_, number);
  }
  ~Range() {
    if (name_ != nullptr) end_range();
  }
  Range(const Range &) = delete;
  Range &operator=(const Range &) = delete;

 private:
  const RangeName name_;
};

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_RUNTIME_RANGES_H_
