// SPDX-License-Identifier: Apache-2.0
//
// Predictions as a file, which gets its name when it is complete.
#ifndef TUTTI_TOOL_TRAINING_PREDICTION_FILE_H_
#define TUTTI_TOOL_TRAINING_PREDICTION_FILE_H_

#include <memory>
#include <string>
#include <tutti/tutti.hpp>
#include <vector>

namespace tutti::tool {

class PredictionFile {
 public:
  virtual ~PredictionFile() = default;
  virtual void add(const Batch &batch) = 0;
  virtual void close() = 0;
};

/// Whether files of this name are known.
bool is_prediction_file(const std::string &path);

/// By the ending: .csv has a column for each number of an output, NAME or NAME_0, NAME_1, ...; .jsonl an object for
/// each example.
std::unique_ptr<PredictionFile> make_prediction_file(const std::string &path, std::vector<std::string> outputs);

}  // namespace tutti::tool

#endif  // TUTTI_TOOL_TRAINING_PREDICTION_FILE_H_
