// SPDX-License-Identifier: Apache-2.0
//
// Datasets named on a command line: files, and what is in them.
#ifndef TUTTI_TOOL_DATASET_DATASET_SOURCE_H_
#define TUTTI_TOOL_DATASET_DATASET_SOURCE_H_

#include <string>
#include <tutti/tutti.hpp>
#include <utility>
#include <vector>

#include "tool/command/command.h"

namespace tutti::tool {

/// What the arguments say about a source.
struct SourceRequest {
  std::vector<std::string> paths;
  std::string format;                                         // "" = by the name of the first path
  std::vector<std::pair<std::string, std::string>> settings;  // parameters of the source
  std::vector<std::string> features;  // of examples in TFRecord files; none = all that are found
};

/// What the argument SOURCE may be.
std::string source_description();
/// The options of a source, in a section of their own. The request lives as long as the command.
void add_source_options(Command &command, SourceRequest &request);

/// The dataset of one pass over the files. Examples in TFRecord files become their features. Throws UsageError and
/// tutti::Error.
Dataset open_source(const SourceRequest &request, const Context &context);

/// Warnings of the library go to standard error, as of files that a source leaves out.
void tell_warnings(Context &context);

/// "tfrecord", "csv", ...: what files of this name are.
std::string format_of(const SourceRequest &request);

}  // namespace tutti::tool

#endif  // TUTTI_TOOL_DATASET_DATASET_SOURCE_H_
