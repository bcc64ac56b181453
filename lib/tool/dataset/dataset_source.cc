// SPDX-License-Identifier: Apache-2.0
#include "tool/dataset/dataset_source.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "tool/console/text_ending.h"
#include "tool/console/usage_error.h"
#include "tool/dataset/example_features.h"
#include "tool/dataset/tar_parts.h"

namespace tutti::tool {

namespace {

bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

bool is_directory(const std::string &path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

std::string file_name(const std::string &path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

/// Of a numpy file: its name without the ending.
std::string stem(const std::string &path) {
  const std::string name = file_name(path);
  return name.substr(0, name.find('.'));
}

/// The text as a truth value or number where it is one; in double quotes it is text in any case.
void set_parameter(tutti_pipeline *pipeline, const std::string &key, const std::string &value) {
  char *end = nullptr;
  const long long number = std::strtoll(value.c_str(), &end, 10);
  if (value == "true" || value == "false") {
    tutti_pipeline_set_bool(pipeline, key.c_str(), value == "true");
  } else if (value.size() >= 2 && value.front() == '"' && value.back() == '"') {
    tutti_pipeline_set_string(pipeline, key.c_str(), value.substr(1, value.size() - 2).c_str());
  } else if (!value.empty() && *end == '\0') {
    tutti_pipeline_set_i64(pipeline, key.c_str(), number);
  } else {
    tutti_pipeline_set_string(pipeline, key.c_str(), value.c_str());
  }
}

/// The files of MNIST and its like: one component each, labels by their name.
void add_idx(const SourceRequest &request, Pipeline &pipeline) {
  for (const std::string &path : request.paths) {
    const bool is_label = contains(file_name(path), "label");
    pipeline.idx(is_label ? "label" : "image", is_label ? TUTTI_ROLE_LABEL : TUTTI_ROLE_FEATURE, path);
  }
}

void set_paths(const SourceRequest &request, const std::string &format, tutti_pipeline *pipeline) {
  const bool takes_one = format == "image_folder" || format == "npz";
  if (takes_one && request.paths.size() > 1) throw UsageError{format + " takes one path"};
  for (const std::string &path : request.paths) {
    if (takes_one) {
      tutti_pipeline_set_string(pipeline, "path", path.c_str());
    } else if (format == "npy") {
      tutti_pipeline_set_string(pipeline, "arrays", (stem(path) + "=" + path).c_str());
    } else {
      tutti_pipeline_set_string(pipeline, "paths", path.c_str());
    }
  }
}

constexpr int64_t kTarBlock = 512;

/// What lies behind the last whole block of an archive whose last file is not padded; 0 where it is compressed.
int64_t unpadded_bytes(const std::string &path) {
  // A pipe would be waited for: the library refuses it.
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return 0;
  std::ifstream file(path, std::ios::binary);
  char begin[2] = {};
  if (!file.read(begin, 2) || (begin[0] == '\x1f' && begin[1] == '\x8b')) return 0;
  file.seekg(0, std::ios::end);
  const std::streamoff size = file.tellg();
  return size > 0 ? size % kTarBlock : 0;
}

/// All parts that the first sample of an archive has, whatever the file's compression.
std::vector<std::string> tar_parts(const SourceRequest &request, const Context &context) {
  Pipeline pipeline(context);
  pipeline.transform("fixed_records", 1, [&](tutti_pipeline *source) {
    tutti_pipeline_set_string(source, "paths", request.paths.front().c_str());
    tutti_pipeline_set_i64(source, "record_bytes", kTarBlock);
    tutti_pipeline_set_i64(source, "footer_bytes", unpadded_bytes(request.paths.front()));
    std::string compression = "auto";
    for (const auto &[key, value] : request.settings)
      if (key == "compression") compression = value;
    tutti_pipeline_set_string(source, "compression", compression.c_str());
  });
  return find_tar_parts(pipeline.build());
}

Dataset open_files(const SourceRequest &request, const std::string &format, const Context &context) {
  Pipeline pipeline(context);
  if (format == "idx") {
    add_idx(request, pipeline);
    return pipeline.build();
  }
  const bool is_tsv = format == "csv" && contains(file_name(request.paths.front()), ".tsv");
  pipeline.transform(format.c_str(), 1, [&](tutti_pipeline *source) {
    set_paths(request, format, source);
    if (is_tsv) tutti_pipeline_set_string(source, "delimiter", "\t");
    bool has_parts = false;
    for (const auto &[key, value] : request.settings) {
      set_parameter(source, key, value);
      has_parts = has_parts || key == "parts";
    }
    if (format != "tar" || has_parts) return;
    for (const std::string &part : tar_parts(request, context))
      tutti_pipeline_set_string(source, "parts", part.c_str());
  });
  return pipeline.build();
}

Dataset parse_examples(const Dataset &records, const std::vector<std::string> &features, const Context &context) {
  Pipeline pipeline(context);
  pipeline.dataset(records);
  pipeline.transform("parse_example", 1, [&](tutti_pipeline *parse) {
    for (const std::string &feature : features)
      tutti_pipeline_set_string(parse, "features", feature.c_str());
  });
  return pipeline.build();
}

}  // namespace

std::string source_description() {
  return "files, patterns such as 'train-*.tfrecord', or a directory with one directory for each class. Known endings "
         "are .tfrecord, .csv, .tsv, .npy, .npz, .tar, .elements, idx files by their names, and text for all others; "
         ".gz of each but .elements";
}

void add_source_options(Command &command, SourceRequest &request) {
  command.begin_section("Options of the source");
  command.add_option(request.format, {"--format",
                                      "KIND",
                                      "what the files are",
                                      "by their names",
                                      {"tfrecord", "csv", "npy", "npz", "tar", "element_files", "idx", "image_folder",
                                       "text_lines", "fixed_records"}});
  command.add_option(
      [&request](const std::string &setting) {
        const size_t equals = setting.find('=');
        if (equals == std::string::npos) throw UsageError{"--set takes KEY=VALUE, got '" + setting + "'"};
        request.settings.emplace_back(setting.substr(0, equals), setting.substr(equals + 1));
      },
      {"--set", "KEY=VALUE",
       "a parameter of the source; repeat the option for lists, as in --set 'columns=age: f32' --set 'columns=name: "
       "bytes'"});
  command.add_option(request.features, {"--feature", "'NAME: TYPE[DIMENSIONS]'",
                                        "a feature to read from examples in TFRecord files; may be repeated",
                                        "all that the first hundred examples have"});
}

void tell_warnings(Context &context) {
  const auto print = [](int32_t, const char *text) { std::fprintf(stderr, "tutti: %s\n", text); };
  context.set_log(print, TUTTI_LOG_WARNING);
}

/// "x.idx", and names that tell the element type as those of MNIST and its kin do: "train-images-idx3-ubyte", where the
/// number of dimensions may be missing or stand behind a dot.
bool is_idx_name(std::string_view name) {
  if (has_ending(name, ".idx") || has_ending(name, "-ubyte")) return true;
  for (const std::string_view type : {"ubyte", "byte", "short", "int", "float", "double"}) {
    for (const char dimensions : {'1', '2', '3', '4'}) {
      const std::string end = std::string("idx") + dimensions + "-" + std::string(type);
      if (has_ending(name, "-" + end) || has_ending(name, "." + end)) return true;
    }
  }
  return false;
}

std::string format_of(const SourceRequest &request) {
  if (!request.format.empty()) return request.format;
  const std::string &path = request.paths.front();
  std::string name = file_name(path);
  if (is_directory(path)) return "image_folder";
  if (has_ending(name, ".gz")) name.resize(name.size() - 3);
  if (contains(name, "tfrecord")) return "tfrecord";
  if (has_ending(name, ".csv") || has_ending(name, ".tsv")) return "csv";
  if (has_ending(name, ".npy")) return "npy";
  if (has_ending(name, ".npz")) return "npz";
  if (has_ending(name, ".tar") || has_ending(name, ".tgz")) return "tar";
  if (has_ending(name, ".elements")) return "element_files";
  if (is_idx_name(name)) return "idx";
  return "text_lines";
}

Dataset open_source(const SourceRequest &request, const Context &context) {
  const std::string format = format_of(request);
  Dataset dataset = open_files(request, format, context);
  if (format != "tfrecord") return dataset;
  const std::vector<std::string> features = request.features.empty() ? find_features(dataset) : request.features;
  return features.empty() ? std::move(dataset) : parse_examples(dataset, features, context);
}

}  // namespace tutti::tool
