// SPDX-License-Identifier: Apache-2.0
//
// Named arrays of a checkpoint, and files of them that other programs read.
//
// All functions throw std::runtime_error that names the file.
#ifndef TUTTI_TOOL_TRAINING_ARRAY_FILES_H_
#define TUTTI_TOOL_TRAINING_ARRAY_FILES_H_

#include <cstdint>
#include <string>
#include <vector>

namespace tutti::tool {

struct NamedArray {
  std::string name;
  std::string dtype;  // "f32", as in the library
  std::vector<int64_t> shape;
  std::string bytes;  // in row-major order, little-endian
};

/// All arrays of a file in the safetensors format, by name.
std::vector<NamedArray> read_safetensors(const std::string &path);
void write_safetensors(const std::string &path, const std::vector<NamedArray> &arrays);

/// NumPy's archive, not compressed: an entry NAME.npy for each. bf16, which NumPy lacks, becomes f32. 4 GiB at most.
void write_npz(const std::string &path, const std::vector<NamedArray> &arrays);

}  // namespace tutti::tool

#endif  // TUTTI_TOOL_TRAINING_ARRAY_FILES_H_
