// SPDX-License-Identifier: Apache-2.0
//
// NumPy's array files, versions 1.0 to 3.0 (NEP 1, numpy/lib/format.py): a magic number, the length of a header, the
// header as the literal of a Python dictionary, and the elements. And npz, archives of them.
//
// Numbers and truth values are read in both byte orders, texts ("S", "U") become bytes (UTF-8), and arrays in Fortran
// order are transposed. What is aligned, in C order and in the machine's byte order is a view of the file's memory,
// not a copy.
//
// Threads: pure functions.
#ifndef TUTTI_DATA_FORMAT_NPY_H_
#define TUTTI_DATA_FORMAT_NPY_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/object.h"
#include "base/status.h"
#include "data/file/file_system.h"
#include "tensor/buffer.h"
#include "tensor/tensor.h"

namespace tutti::impl::data {

/// The array in `size` bytes of a buffer from `offset` on. DATA_LOSS "corrupt npy file '<name>'" with what was
/// expected; UNIMPLEMENTED for element types that have no counterpart.
base::Result<tensor::Tensor> decode_npy(const base::Ref<tensor::Buffer> &buffer, int64_t offset, int64_t size,
                                        std::string_view name);
base::Result<tensor::Tensor> read_npy(const std::string &path, const FileSystems *systems = nullptr,
                                      const base::Ref<base::CancelToken> &cancel = {});

/// The arrays of an npz archive with their names (without ".npy"), in the order of the archive. An empty list of names
/// means all; INVALID_ARGUMENT for a name that is none. A compressed array of more than `maximum_array_bytes` bytes is
/// DATA_LOSS, and no memory is taken for it.
base::Result<std::vector<std::pair<std::string, tensor::Tensor>>> decode_npz(const base::Ref<tensor::Buffer> &buffer,
                                                                             const std::vector<std::string> &names,
                                                                             std::string_view path,
                                                                             int64_t maximum_array_bytes);

}  // namespace tutti::impl::data

#endif  // TUTTI_DATA_FORMAT_NPY_H_
