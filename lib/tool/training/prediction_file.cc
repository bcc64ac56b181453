// SPDX-License-Identifier: Apache-2.0
#include "tool/training/prediction_file.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>

#include "tool/console/tensor_values.h"
#include "tool/console/text_file.h"

namespace tutti::tool {

namespace {

/// One output of a batch, as columns.
struct Columns {
  Tensor tensor;
  std::vector<double> numbers;  // where it is floating
  int64_t width = 1;

  Columns(Tensor of_batch, int64_t rows) : tensor(std::move(of_batch)), width(tensor.element_count() / rows) {
    if (is_floating(tensor.dtype())) read_numbers(tensor, numbers);
  }
  std::string text(int64_t index) const {
    if (!is_floating(tensor.dtype())) return value_text(tensor, index);
    return exact_number(numbers[static_cast<size_t>(index)], tensor.dtype());
  }
};

class CsvFile : public PredictionFile {
 public:
  CsvFile(const std::string &path, std::vector<std::string> outputs) : file_(path), outputs_(std::move(outputs)) {}

  void add(const Batch &batch) override {
    std::vector<Columns> all;
    for (const std::string &name : outputs_)
      all.emplace_back(batch.output(name.c_str()), batch.row_count());
    write_header(all);
    std::string lines;
    for (int64_t row = 0; row < batch.row_count(); ++row) {
      std::string line;
      for (const Columns &columns : all) {
        for (int64_t i = 0; i < columns.width; ++i)
          line += "," + columns.text(row * columns.width + i);
      }
      lines += line.substr(1) + "\r\n";
    }
    file_.write(lines);
  }
  void close() override {
    write_header({});
    file_.close();
  }

 private:
  /// Without rows: nobody knows how many numbers an output has.
  void write_header(const std::vector<Columns> &all) {
    if (has_header_) return;
    std::string line;
    for (size_t o = 0; o < outputs_.size(); ++o) {
      const int64_t width = o < all.size() ? all[o].width : 1;
      for (int64_t i = 0; i < width; ++i)
        line += "," + outputs_[o] + (width > 1 ? "_" + std::to_string(i) : "");
    }
    file_.write(line.substr(1) + "\r\n");
    has_header_ = true;
  }

  TextFile file_;
  const std::vector<std::string> outputs_;
  bool has_header_ = false;
};

/// Text in quotes, as JSON has it.
std::string text_in_json(std::string_view text) {
  return nlohmann::json(std::string(text)).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

class JsonLinesFile : public PredictionFile {
 public:
  JsonLinesFile(const std::string &path, std::vector<std::string> outputs)
      : file_(path), outputs_(std::move(outputs)) {}

  void add(const Batch &batch) override {
    std::vector<Columns> all;
    for (const std::string &name : outputs_)
      all.emplace_back(batch.output(name.c_str()), batch.row_count());
    std::string lines;
    for (int64_t row = 0; row < batch.row_count(); ++row) {
      for (size_t o = 0; o < all.size(); ++o) {
        int64_t next = row * all[o].width;
        lines += (o == 0 ? "{" : ", ") + text_in_json(outputs_[o]) + ": " + values(all[o], 1, next);
      }
      lines += "}\n";
    }
    file_.write(lines);
  }
  void close() override { file_.close(); }

 private:
  /// A number, or lists of them as the axes from `axis` on say.
  static std::string values(const Columns &columns, int64_t axis, int64_t &next) {
    if (axis == columns.tensor.rank()) return value(columns, next++);
    std::string text = "[";
    for (int64_t i = 0; i < columns.tensor.dim(axis); ++i)
      text += (i > 0 ? ", " : "") + values(columns, axis + 1, next);
    return text + "]";
  }
  static std::string value(const Columns &columns, int64_t index) {
    if (is_bytes(columns.tensor)) return text_in_json(bytes_at(columns.tensor, index));
    // JSON has no numbers for these.
    const bool is_finite = columns.numbers.empty() || std::isfinite(columns.numbers[static_cast<size_t>(index)]);
    return is_finite ? columns.text(index) : "null";
  }

  TextFile file_;
  const std::vector<std::string> outputs_;
};

bool has_end(const std::string &path, const std::string &end) {
  return path.size() > end.size() && path.compare(path.size() - end.size(), end.size(), end) == 0;
}

}  // namespace

bool is_prediction_file(const std::string &path) { return has_end(path, ".csv") || has_end(path, ".jsonl"); }

std::unique_ptr<PredictionFile> make_prediction_file(const std::string &path, std::vector<std::string> outputs) {
  if (has_end(path, ".jsonl")) return std::make_unique<JsonLinesFile>(path, std::move(outputs));
  return std::make_unique<CsvFile>(path, std::move(outputs));
}

}  // namespace tutti::tool
