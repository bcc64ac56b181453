// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/dnnl/dnnl_primitive.h"

#include <omp.h>

#include <array>

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

class CopyingState final : public KernelState {
 public:
  std::vector<std::unique_ptr<KernelState>> copies;
  std::unique_ptr<KernelState> primitive;
};

/// The primitive sees its arguments as buffers 0, 1, ...; a copy's are 0 and 1.
class CopyingKernel final : public Kernel {
 public:
  CopyingKernel(dnnl::primitive primitive, std::vector<PrimitiveArgument> arguments, std::vector<BoundOperand> copied,
                BufferId scratch)
      : arguments_(std::move(arguments)), copied_(std::move(copied)), scratch_(scratch) {
    std::vector<PrimitiveArgument> own = arguments_;
    for (const auto &[operand, buffer] : copied_) {
      own.push_back({operand.number, operand.desc, -1});
      copies_.push_back(
          make_primitive_kernel(operand.reorder, {{DNNL_ARG_FROM, operand.from, 0}, {DNNL_ARG_TO, operand.desc, 1}}));
    }
    for (size_t i = 0; i < own.size(); ++i)
      own[i].buffer = static_cast<BufferId>(i);
    primitive_ = make_primitive_kernel(std::move(primitive), std::move(own));
  }

  Result<std::unique_ptr<KernelState>> make_state() const override {
    auto state = std::make_unique<CopyingState>();
    for (const auto &copy : copies_) {
      TUTTI_ASSIGN(state->copies.emplace_back(), copy->make_state());
    }
    TUTTI_ASSIGN(state->primitive, primitive_->make_state());
    return std::unique_ptr<KernelState>(std::move(state));
  }

  int32_t run(const RunContext &context, KernelState *kernel_state) const override {
    auto &state = static_cast<CopyingState &>(*kernel_state);
    std::array<void *, kMostArguments> buffers{};
    RunContext own = context;
    size_t count = 0;
    for (const PrimitiveArgument &argument : arguments_)
      buffers[count++] = context.buffers[argument.buffer];
    for (size_t i = 0; i < copied_.size(); ++i) {
      void *const to = static_cast<char *>(context.buffers[scratch_]) + copied_[i].operand.offset;
      void *const pair[] = {context.buffers[copied_[i].buffer], to};
      own.buffers = pair;
      const int32_t code = copies_[i]->run(own, state.copies[i].get());
      if (code != 0) return code;
      buffers[count++] = to;
    }
    own.buffers = buffers.data();
    return primitive_->run(own, state.primitive.get());
  }

 private:
  static constexpr size_t kMostArguments = 8;

  std::vector<PrimitiveArgument> arguments_;
  std::vector<BoundOperand> copied_;
  std::vector<std::unique_ptr<Kernel>> copies_;
  std::unique_ptr<Kernel> primitive_;
  BufferId scratch_;
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

bool is_plain(const std::string &implementation) { return implementation.find("ref") != std::string::npos; }

std::unique_ptr<Kernel> make_primitive_kernel(dnnl::primitive primitive, std::vector<PrimitiveArgument> arguments) {
  return std::make_unique<PrimitiveKernel>(std::move(primitive), std::move(arguments));
}

Result<dnnl::primitive> make_reorder(const dnnl::memory::desc &from, const dnnl::memory::desc &to) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  const dnnl::reorder::primitive_desc description(dnnl_engine(), from, dnnl_engine(), to, attributes);
  if (description.scratchpad_desc().get_size() > 0)
    return base::unimplemented("oneDNN requires scratch memory for a reorder");
  return dnnl::primitive(dnnl::reorder(description));
}

Status Operand::copy_from(const dnnl::memory::desc &caller, int64_t &scratch_bytes) {
  constexpr int64_t kAlignment = 64;
  from = caller;
  offset = (scratch_bytes + kAlignment - 1) / kAlignment * kAlignment;
  scratch_bytes = offset + static_cast<int64_t>(desc.get_size());
  TUTTI_ASSIGN(reorder, make_reorder(from, desc));
  return Status();
}

std::unique_ptr<Kernel> make_copying_kernel(dnnl::primitive primitive, const std::vector<BoundOperand> &operands,
                                            std::vector<PrimitiveArgument> others, BufferId scratch) {
  std::vector<BoundOperand> copied;
  for (const BoundOperand &one : operands) {
    if (one.operand.reorder) {
      copied.push_back(one);
    } else {
      others.push_back({one.operand.number, one.operand.desc, one.buffer});
    }
  }
  if (copied.empty()) return make_primitive_kernel(std::move(primitive), std::move(others));
  return std::make_unique<CopyingKernel>(std::move(primitive), std::move(others), std::move(copied), scratch);
}

}  // namespace tutti::impl::backend::cpu
