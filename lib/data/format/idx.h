// SPDX-License-Identifier: Apache-2.0
//
// IDX, the format of the MNIST files: two zero bytes, a type byte, the number of axes, each extent as a big-endian
// 32-bit number, then the elements row-major and big-endian; the whole file may be gzip.
//
// Every count is checked against the size of the file before memory is taken for it; a hostile file costs at most the
// time to inflate what its own size allows, and a compressed one holds at most 4 GiB. Errors are DATA_LOSS "corrupt IDX
// file ..." with offset and expectation.
//
// Threads: the functions may be called from any thread.
#ifndef TUTTI_DATA_FORMAT_IDX_H_
#define TUTTI_DATA_FORMAT_IDX_H_

#include <string>
#include <string_view>

#include "base/status.h"
#include "data/file/file_system.h"
#include "tensor/tensor.h"

namespace tutti::impl::data {

/// The tensor in an IDX file. NOT_FOUND and the like for files that cannot be read.
base::Result<tensor::Tensor> read_idx(const std::string &path, const FileSystems *systems = nullptr,
                                      const base::Ref<base::CancelToken> &cancel = {});

/// The tensor in the bytes of an IDX file, plain or gzip; `name` stands for the file in errors.
base::Result<tensor::Tensor> decode_idx(std::string_view bytes, std::string_view name);

}  // namespace tutti::impl::data

#endif  // TUTTI_DATA_FORMAT_IDX_H_
