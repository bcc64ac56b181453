// SPDX-License-Identifier: Apache-2.0
//
// What the files of checkpoints say, without the values of variables: a directory "checkpoint-<step>" has a manifest
// (manifest.json: step, options, metrics and the other files), variables in the safetensors format, and the graph of
// predictions (graph.json) where the model has one. Sizes are compared with the manifest, checksums are not: a
// Predictor does that.
//
// All functions throw std::runtime_error that names the file.
#ifndef TUTTI_TOOL_MODEL_CHECKPOINT_FILES_H_
#define TUTTI_TOOL_MODEL_CHECKPOINT_FILES_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace tutti::tool {

struct Variable {
  std::string name;
  std::string kind;  // the name of its file without the ending, in the singular: "weight", "slot", "average"
  std::string dtype;
  std::vector<int64_t> shape;
  int64_t bytes = 0;
};

struct CheckpointFile {
  std::string name;
  int64_t bytes = 0;
};

struct CheckpointContent {
  std::string path;
  nlohmann::ordered_json manifest;  // null for a file of variables alone
  std::vector<CheckpointFile> files;
  std::vector<Variable> variables;  // by file, and in it by name

  /// Of variables of one kind, or of all for "".
  int64_t bytes_of(const std::string &kind) const;
};

/// A value with a name that goes into a model, or comes out of it.
struct SignatureEntry {
  std::string name;
  std::string dtype;
  nlohmann::ordered_json shape;  // of numbers, and of names where a dimension has one: ["batch", 28, 28]
};
struct Signature {
  std::vector<SignatureEntry> inputs, outputs;
};

/// Directories named "checkpoint-<step>" in `directory`, lowest step first.
struct CheckpointPlace {
  int64_t step;
  std::string path;
};
std::vector<CheckpointPlace> find_checkpoints(const std::string &directory);

/// `path`: a checkpoint, a directory of them (the one with the highest step), or a file in the safetensors format.
CheckpointContent read_checkpoint(const std::string &path);

/// Whether the checkpoint has a graph of predictions, and what goes into it and comes out.
bool has_signature(const CheckpointContent &checkpoint);
Signature read_signature(const CheckpointContent &checkpoint);

}  // namespace tutti::tool

#endif  // TUTTI_TOOL_MODEL_CHECKPOINT_FILES_H_
