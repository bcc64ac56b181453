// SPDX-License-Identifier: Apache-2.0
//
// What all primitives of oneDNN share here: the engine, errors as Status, one thread, and a Kernel that runs a
// primitive on buffers of a program. Threads: functions may be called from any thread.
#ifndef TUTTI_BACKEND_CPU_DNNL_DNNL_PRIMITIVE_H_
#define TUTTI_BACKEND_CPU_DNNL_DNNL_PRIMITIVE_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backend/cpu/dnnl/dnnl_versions.h"
#include "backend/cpu/kernel/kernel.h"
#include "base/status.h"

namespace tutti::impl::backend::cpu {

constexpr auto kFloat = dnnl::memory::data_type::f32;
constexpr auto kBf16 = dnnl::memory::data_type::bf16;

const dnnl::engine &dnnl_engine();

/// Primitives are made for the number of threads that is set then: always one.
class OneThread {
 public:
  OneThread();
  OneThread(const OneThread &) = delete;
  OneThread &operator=(const OneThread &) = delete;
  ~OneThread();

 private:
  int before_;
};

base::Status status_of(const dnnl::error &error);

template <typename Body>
auto without_exceptions(const Body &body) -> decltype(body()) {
  try {
    return body();
  } catch (const dnnl::error &error) {
    return status_of(error);
  }
}

/// "ref:any" and the like are plain loops.
bool is_plain(const std::string &implementation);

/// Moves on to the first implementation that is not a plain loop and that nothing is wrong with.
template <typename Description, typename IsWrong>
base::Status choose_implementation(Description &description, bool accept_plain, const IsWrong &is_wrong) {
  for (;;) {
    const std::string implementation = description.impl_info_str();
    if ((accept_plain || !is_plain(implementation)) && !is_wrong(implementation)) return base::Status();
    if (!description.next_impl())
      return base::unimplemented("oneDNN has only plain loops for this, or an implementation with a known error");
  }
}
template <typename Description>
base::Status choose_implementation(Description &description, bool accept_plain) {
  return choose_implementation(description, accept_plain, [](const std::string &) { return false; });
}

/// One argument: which memory, which number oneDNN knows it by.
struct PrimitiveArgument {
  int number = 0;
  dnnl::memory::desc desc;
  BufferId buffer = -1;
};

std::unique_ptr<Kernel> make_primitive_kernel(dnnl::primitive primitive, std::vector<PrimitiveArgument> arguments);

/// A copy into another layout or type; fewer bits are rounded to nearest even. Throws dnnl::error; UNIMPLEMENTED when
/// oneDNN wants scratch for it.
base::Result<dnnl::primitive> make_reorder(const dnnl::memory::desc &from, const dnnl::memory::desc &to);

/// What a primitive reads or writes: the caller's memory, or a copy in the scratch, made before it runs.
struct Operand {
  dnnl::memory::desc desc;
  int number = 0;  ///< by which oneDNN knows it
  // Of a copy: what the caller has, and where it lies in the scratch.
  dnnl::memory::desc from = {};
  dnnl::primitive reorder = {};
  int64_t offset = 0;

  /// Is a copy of `caller` from now on, at the end of the scratch, which grows.
  base::Status copy_from(const dnnl::memory::desc &caller, int64_t &scratch_bytes);
};

struct BoundOperand {
  Operand operand;
  BufferId buffer = -1;
};

/// A kernel with copies in the buffer `scratch`, behind what the primitive itself needs.
std::unique_ptr<Kernel> make_copying_kernel(dnnl::primitive primitive, const std::vector<BoundOperand> &operands,
                                            std::vector<PrimitiveArgument> others, BufferId scratch);

}  // namespace tutti::impl::backend::cpu

#endif  // TUTTI_BACKEND_CPU_DNNL_DNNL_PRIMITIVE_H_
