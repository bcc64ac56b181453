// SPDX-License-Identifier: Apache-2.0
#include "backend/hip/hip_library.h"

#include <utility>
#include <vector>

namespace tutti::impl::backend::hip {

using base::Result;
using gpu::Kernel;
using gpu::KernelRequest;

namespace {

using Parts = std::vector<std::unique_ptr<gpu::Library>>;

/// Several libraries as one: the first that has a kernel.
class HipLibrary final : public gpu::Library {
 public:
  explicit HipLibrary(Parts parts) : parts_(std::move(parts)) {}

  Result<Kernel> find(KernelRequest &request) override {
    for (const auto &part : parts_) {
      TUTTI_ASSIGN(Kernel kernel, part->find(request));
      if (kernel) return kernel;
      request.scratch_bytes = 0;
    }
    return Kernel();
  }

  std::string describe() const override {
    std::vector<std::string> texts;
    for (const auto &part : parts_) {
      std::string text = part->describe();
      if (!text.empty()) texts.push_back(std::move(text));
    }
    return base::join(texts, "; ");
  }

  std::vector<std::string> missing() const override {
    std::vector<std::string> texts;
    for (const auto &part : parts_) {
      for (std::string &text : part->missing())
        texts.push_back(std::move(text));
    }
    return texts;
  }

 private:
  const Parts parts_;
};

}  // namespace

Result<std::unique_ptr<gpu::Library>> open_library(int32_t ordinal) {
  Parts parts;
  for (const auto open : {open_rocblas_library, open_miopen_library}) {
    TUTTI_ASSIGN(auto part, open(ordinal));
    if (part != nullptr) parts.push_back(std::move(part));
  }
  if (parts.empty()) return std::unique_ptr<gpu::Library>();
  return std::unique_ptr<gpu::Library>(std::make_unique<HipLibrary>(std::move(parts)));
}

}  // namespace tutti::impl::backend::hip
