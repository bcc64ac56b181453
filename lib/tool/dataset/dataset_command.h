// SPDX-License-Identifier: Apache-2.0
//
// `tutti dataset`: looks into files of examples.
//
//   tutti dataset inspect SOURCE              what an element is, the first few, a picture of the first images
//   tutti dataset stats SOURCE                what the values are like: range, mean, shapes, how often each class comes
//   tutti dataset convert SOURCE TARGET       the examples as TFRecord, CSV or element files
//   tutti dataset vocabulary SOURCE TARGET    the different texts of a component, the most frequent first
//
// Each of them can change the examples first (preparation.h).
#ifndef TUTTI_TOOL_DATASET_DATASET_COMMAND_H_
#define TUTTI_TOOL_DATASET_DATASET_COMMAND_H_

#include <string>
#include <vector>

#include "tool/dataset/dataset_source.h"
#include "tool/dataset/preparation.h"

namespace tutti::tool {

/// What all its commands understand.
struct DatasetRequest {
  SourceRequest source;
  Preparation preparation;
  int64_t first = -1;  // so many elements at most; negative = all
  bool as_json = false;
  std::string sheet;   // inspect: file for a picture
  std::string target;  // convert, vocabulary
  std::string compression;
  int64_t shards = 1;
  std::string component;  // vocabulary: "" = the only one of texts
  int64_t most = 0;       // texts; 0 = all
  int64_t least = 0;      // times that a text came
  int64_t memory_bytes = 0;
};

/// What a command is about: the source, prepared.
Dataset open_dataset(const DatasetRequest &request, const Context &context);

int inspect_dataset(const DatasetRequest &request);
int print_statistics(const DatasetRequest &request);
int convert_dataset(const DatasetRequest &request);
int write_vocabulary(const DatasetRequest &request);

}  // namespace tutti::tool

#endif  // TUTTI_TOOL_DATASET_DATASET_COMMAND_H_
