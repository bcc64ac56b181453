// SPDX-License-Identifier: Apache-2.0
//
// The text of a kernel that does one program of a multi-output fusion (fused_program.h) and nothing else. It bears the
// same bits as the interpreter; all that a thread reads is on its way before it computes. With a product
// (fused_product.h) a block computes tiles: what its elements read is on its way while it multiplies.
#ifndef TUTTI_BACKEND_GPU_GENERATED_FUSED_TEXT_H_
#define TUTTI_BACKEND_GPU_GENERATED_FUSED_TEXT_H_

#include <optional>

#include "backend/gpu/device/fused_product.h"
#include "backend/gpu/device/fused_program.h"
#include "backend/gpu/generated/kernel_text.h"

namespace tutti::impl::backend::gpu {

/// None where a number of the program cannot be written down.
std::optional<KernelText> fused_text(const FusedProgram &program, const FusedProduct *product = nullptr);

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_GENERATED_FUSED_TEXT_H_
