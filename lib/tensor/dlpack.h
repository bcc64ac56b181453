// SPDX-License-Identifier: Apache-2.0
//
// Tensors from and to other libraries without copying, through versioned DLPack (tutti/dlpack.h).
//
// Threads: the functions may be called from any thread; a deleter runs on the thread that drops the last reference.
#ifndef TUTTI_TENSOR_DLPACK_H_
#define TUTTI_TENSOR_DLPACK_H_

#include <tutti/dlpack.h>

#include "base/status.h"
#include "tensor/tensor.h"

namespace tutti::impl::tensor {

/// Takes `managed` over in every case: its deleter is called exactly once, at once on an error, else when the last view
/// of the tensor is gone. Compact memory is shared (read-only when the flag says so); strided memory is copied. Errors:
/// INVALID_ARGUMENT for null, another major version, bad shapes; UNIMPLEMENTED for devices whose memory the host cannot
/// read and for types tutti does not have.
base::Result<Tensor> from_dlpack(DLManagedTensorVersioned *managed);

/// A managed tensor that shares memory with `tensor` and must be given back by its deleter. INVALID_ARGUMENT for dtype
/// bytes and for no tensor.
base::Result<DLManagedTensorVersioned *> to_dlpack(const Tensor &tensor);

}  // namespace tutti::impl::tensor

#endif  // TUTTI_TENSOR_DLPACK_H_
