// SPDX-License-Identifier: Apache-2.0
#include "emulated_library.h"

#include <cstdlib>
#include <string>
#include <string_view>

#include "backend/gpu/device_reduce.h"
#include "backend/gpu/kernels.h"
#include "backend/gpu/product_sums.h"
#include "backend/gpu/product_tails.h"
#include "backend/gpu/reduced_trees.h"

namespace tutti::impl::backend::gpu::platform {

using base::Result;
using base::Status;

namespace {

/// Two kernels in one call: the normalisation reads what the convolution stores.
Result<Kernel> find_norm(KernelRequest &request) {
  KernelRequest source{request.lowered, *request.source, nullptr, request.fault_texts};
  TUTTI_ASSIGN(const Kernel convolution, find_kernel(source.node.op)(source));
  TUTTI_ASSIGN(const Kernel norm, find_kernel(request.node.op)(request));
  const int64_t scratch = request.reserve_scratch(source.scratch_bytes);
  const size_t reads = request.tail == nullptr ? 0 : request.tail->reads.size();
  request.kernel_name = "emulated";
  return Kernel([convolution, norm, scratch,
                 first = static_cast<int32_t>(request.input_count() + reads)](const Frame &frame) -> Status {
    void *const table[] = {const_cast<void *>(frame.input(first)), const_cast<void *>(frame.input(first + 1)),
                           frame.output(3)};
    constexpr int32_t kInputs[] = {0, 1}, kOutputs[] = {2};
    TUTTI_TRY(convolution(Frame(table, kInputs, kOutputs, frame.scratch_as<char>(scratch), frame.context())));
    return norm(frame);
  });
}

Result<Kernel> find_sum(KernelRequest &request) {
  TUTTI_ASSIGN(const Kernel product, find_kernel(request.node.op)(request));
  TUTTI_ASSIGN(ReduceWork work, reduce_work_of(request.lowered, request.lowered.step(request.sum->sum)));
  const int64_t scratch = request.reserve_scratch(reduce_scratch_bytes(work));
  request.kernel_name = "emulated";
  return Kernel([product, work, scratch, factor = request.sum->factor](const Frame &frame) -> Status {
    TUTTI_TRY(product(frame));
    ReduceWork issued = work;
    issued.x = frame.input(factor);
    issued.y = frame.output(1);
    issued.scratch = frame.scratch_as<char>(scratch);
    return status_of(launch_reduce(issued, frame.stream()), "launching a reduction");
  });
}

class EmulatedLibrary final : public Library {
 public:
  Result<Kernel> find(KernelRequest &request) override {
    if (request.source != nullptr) return find_norm(request);
    return request.sum != nullptr ? find_sum(request) : Kernel();
  }
  std::string describe() const override { return "emulated"; }
};

}  // namespace

Result<std::unique_ptr<Library>> open_emulated_library() {
  const char *const wanted = std::getenv("TUTTI_EMULATED_LIBRARY");
  if (wanted == nullptr || std::string_view(wanted) != "sums") return std::unique_ptr<Library>();
  return std::unique_ptr<Library>(new EmulatedLibrary);
}

}  // namespace tutti::impl::backend::gpu::platform
