// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string_view>

#include "tool/console/progress.h"
#include "tool/console/table.h"
#include "tool/console/tensor_values.h"
#include "tool/console/text_ending.h"
#include "tool/console/text_file.h"
#include "tool/console/usage_error.h"
#include "tool/dataset/dataset_command.h"
#include "tool/dataset/record_features.h"

namespace tutti::tool {

namespace {

/// Where elements go; complete once close() has returned.
class Target {
 public:
  virtual ~Target() = default;
  virtual void add(const Dataset &dataset, const Iterator &element) = 0;
  virtual void close() = 0;
  /// How to read it again: lines behind what was written.
  virtual std::string reading(const Dataset &) const { return ""; }
};

/// "train.tfrecord" as file 3 of 10: "train-00003-of-00010.tfrecord".
std::string shard_path(const std::string &path, int64_t shard, int64_t shards) {
  if (shards == 1) return path;
  char number[48];
  std::snprintf(number, sizeof number, "-%05lld-of-%05lld", static_cast<long long>(shard),
                static_cast<long long>(shards));
  return path.substr(0, path.rfind(".tfrecord")) + number + path.substr(path.rfind(".tfrecord"));
}

std::string list_in_quotes(const std::vector<std::string> &texts) {
  std::string list;
  for (const std::string &text : texts)
    list += (list.empty() ? "\"" : ", \"") + text + "\"";
  return list;
}

class RecordFiles : public Target {
 public:
  RecordFiles(const DatasetRequest &request, const Dataset &dataset, const Context &context)
      : features_(record_features(dataset)) {
    const bool is_gzip = request.compression.empty() && has_ending(request.target, ".gz");
    const std::string compression = is_gzip ? "gzip" : request.compression;
    for (int64_t shard = 0; shard < request.shards; ++shard)
      writers_.emplace_back(shard_path(request.target, shard, request.shards), compression.c_str(), context);
  }
  void add(const Dataset &dataset, const Iterator &element) override {
    RecordWriter &writer = writers_[next_++ % writers_.size()];
    for (int64_t i = 0; i < dataset.component_count(); ++i)
      writer.feature(dataset.component_name(i).c_str(), record_value(element.component(i)));
    writer.write_example();
  }
  void close() override {
    for (RecordWriter &writer : writers_)
      writer.close();
  }
  std::string reading(const Dataset &dataset) const override {
    std::string text = "parse_example reads them with\n  features " + list_in_quotes(features_) + "\n";
    for (const auto &[role, parameter] : {std::pair(TUTTI_ROLE_LABEL, "labels"), {TUTTI_ROLE_WEIGHT, "weights"}}) {
      std::vector<std::string> names;
      for (int64_t i = 0; i < dataset.component_count(); ++i) {
        if (dataset.component_role(i) == role) names.push_back(dataset.component_name(i));
      }
      if (!names.empty()) text += std::string("  ") + parameter + " " + list_in_quotes(names) + "\n";
    }
    return text;
  }

 private:
  const std::vector<std::string> features_;
  std::vector<RecordWriter> writers_;
  size_t next_ = 0;
};

/// RFC 4180, with a header. Scalars only.
class CsvFile : public Target {
 public:
  explicit CsvFile(const DatasetRequest &request) : file_(request.target) {}
  void add(const Dataset &dataset, const Iterator &element) override {
    if (!has_header_) write_header(dataset);
    std::string line;
    for (int64_t i = 0; i < dataset.component_count(); ++i)
      line += (i > 0 ? "," : "") + field(dataset.component_name(i), element.component(i));
    file_.write(line + "\r\n");
  }
  void close() override { file_.close(); }

 private:
  void write_header(const Dataset &dataset) {
    std::string line;
    for (int64_t i = 0; i < dataset.component_count(); ++i)
      line += (i > 0 ? "," : "") + escaped(dataset.component_name(i));
    file_.write(line + "\r\n");
    has_header_ = true;
  }
  static std::string escaped(std::string_view text) {
    if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
    std::string quoted_text = "\"";
    for (const char c : text)
      quoted_text += c == '"' ? std::string("\"\"") : std::string(1, c);
    return quoted_text + '"';
  }
  static std::string field(const std::string &name, const Tensor &value) {
    if (value.element_count() != 1) {
      throw std::runtime_error("a CSV file holds scalars, but '" + name + "' has the shape " + shape_text(value));
    }
    if (is_bytes(value)) return escaped(bytes_at(value, 0));
    return exact_text(value);
  }

  TextFile file_;
  bool has_header_ = false;
};

/// A file that the dataset itself writes in the course of a whole pass.
class ElementFile : public Target {
 public:
  void add(const Dataset &, const Iterator &) override {}
  void close() override {}
  std::string reading(const Dataset &) const override { return "the source element_files reads them\n"; }
};

bool is_element_file(const DatasetRequest &request) { return has_ending(request.target, ".elements"); }

void refuse_record_options(const DatasetRequest &request) {
  if (request.shards > 1 || !request.compression.empty())
    throw UsageError{"--shards and --compression are for TFRecord files"};
}

std::unique_ptr<Target> open_target(const DatasetRequest &request, const Dataset &dataset, const Context &context) {
  if (request.target.find(".tfrecord") != std::string::npos)
    return std::make_unique<RecordFiles>(request, dataset, context);
  refuse_record_options(request);
  if (has_ending(request.target, ".csv")) return std::make_unique<CsvFile>(request);
  if (is_element_file(request)) return std::make_unique<ElementFile>();
  throw UsageError{"convert writes .tfrecord, .csv and .elements, got '" + request.target + "'"};
}

/// What is walked over: the first elements, kept in a file if that is the target.
Dataset open_elements(const DatasetRequest &request, const Context &context) {
  Pipeline pipeline(context);
  pipeline.dataset(open_dataset(request, context));
  if (request.first >= 0) pipeline.take(request.first);
  if (is_element_file(request)) pipeline.cache(request.target);
  return pipeline.build();
}

}  // namespace

int convert_dataset(const DatasetRequest &request) {
  Context context;
  tell_warnings(context);
  const Dataset dataset = open_elements(request, context);
  const std::unique_ptr<Target> target = open_target(request, dataset, context);
  Iterator iterator(dataset, request.preparation.seed);
  int64_t count = 0;
  {
    Progress progress(dataset.cardinality());
    for (; iterator.next(); progress.at(++count))
      target->add(dataset, iterator);
  }
  target->close();
  std::printf("%s: %s elements\n%s", request.target.c_str(), with_commas(count).c_str(),
              target->reading(dataset).c_str());
  return EXIT_SUCCESS;
}

}  // namespace tutti::tool
