// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/dnnl_primitive.h"

#include <omp.h>

namespace tutti::impl::backend::cpu {

using base::Result;
using base::Status;

namespace {

class PrimitiveState final : public KernelState {
 public:
  explicit PrimitiveState(const std::vector<PrimitiveArgument> &arguments) : stream(dnnl_engine()) {
    for (const PrimitiveArgument &argument : arguments) {
      memories.emplace_back(argument.desc, dnnl_engine(), static_cast<void *>(nullptr));
      list.push_back({argument.number, memories.back().get()});
      bound.push_back(nullptr);
    }
  }

  dnnl::stream stream;
  std::vector<dnnl::memory> memories;
  std::vector<dnnl_exec_arg_t> list;
  std::vector<const void *> bound;
};

class PrimitiveKernel final : public Kernel {
 public:
  PrimitiveKernel(dnnl::primitive primitive, std::vector<PrimitiveArgument> arguments)
      : primitive_(std::move(primitive)), arguments_(std::move(arguments)) {}

  Result<std::unique_ptr<KernelState>> make_state() const override {
    return without_exceptions([&]() -> Result<std::unique_ptr<KernelState>> {
      return std::unique_ptr<KernelState>(std::make_unique<PrimitiveState>(arguments_));
    });
  }

  int32_t run(const RunContext &context, KernelState *kernel_state) const override {
    auto &state = static_cast<PrimitiveState &>(*kernel_state);
    for (size_t i = 0; i < arguments_.size(); ++i) {
      void *pointer = context.buffers[arguments_[i].buffer];
      if (pointer == state.bound[i]) continue;
      dnnl_memory_set_data_handle(state.memories[i].get(), pointer);
      state.bound[i] = pointer;
    }
    const dnnl_status_t status = dnnl_primitive_execute(primitive_.get(), state.stream.get(),
                                                        static_cast<int>(state.list.size()), state.list.data());
    if (status == dnnl_success) return 0;
    return context.fail(base::internal_error("oneDNN failed with status ", static_cast<int32_t>(status)));
  }

 private:
  dnnl::primitive primitive_;
  std::vector<PrimitiveArgument> arguments_;
};

}  // namespace

const dnnl::engine &dnnl_engine() {
  static const dnnl::engine *const made = new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return *made;
}

OneThread::OneThread() : before_(omp_get_max_threads()) { omp_set_num_threads(1); }

OneThread::~OneThread() { omp_set_num_threads(before_); }

Status status_of(const dnnl::error &error) {
  const auto code = error.status == dnnl_unimplemented   ? base::Code::unimplemented
                    : error.status == dnnl_out_of_memory ? base::Code::resource_exhausted
                                                         : base::Code::internal;
  return Status(code, base::concat("oneDNN: ", error.what())).with_domain("dnnl", error.status);
}

bool is_plain(const std::string &implementation) {
  return implementation.find("ref") != std::string::npos || implementation.starts_with("gemm");
}

std::unique_ptr<Kernel> make_primitive_kernel(dnnl::primitive primitive, std::vector<PrimitiveArgument> arguments) {
  return std::make_unique<PrimitiveKernel>(std::move(primitive), std::move(arguments));
}

}  // namespace tutti::impl::backend::cpu
