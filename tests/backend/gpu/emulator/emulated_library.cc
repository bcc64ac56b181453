// SPDX-License-Identifier: Apache-2.0
#include "emulated_library.h"

#include <cstdlib>
#include <string>
#include <string_view>

#include "backend/gpu/device_reduce.h"
#include "backend/gpu/kernels.h"
#include "backend/gpu/product_sums.h"
#include "backend/gpu/reduced_trees.h"

namespace tutti::impl::backend::gpu::platform {

using base::Result;
using base::Status;

namespace {

class EmulatedLibrary final : public Library {
 public:
  Result<Kernel> find(KernelRequest &request) override {
    if (request.sum == nullptr) return Kernel();
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
  std::string describe() const override { return "emulated"; }
};

}  // namespace

Result<std::unique_ptr<Library>> open_emulated_library() {
  const char *const wanted = std::getenv("TUTTI_EMULATED_LIBRARY");
  if (wanted == nullptr || std::string_view(wanted) != "sums") return std::unique_ptr<Library>();
  return std::unique_ptr<Library>(new EmulatedLibrary);
}

}  // namespace tutti::impl::backend::gpu::platform
