// SPDX-License-Identifier: Apache-2.0
#include "monitor/projector.h"

#include <algorithm>
#include <cstdio>
#include <vector>

#include "base/file.h"
#include "base/hash/checksum.h"
#include "base/text.h"
#include "monitor/tensor_numbers.h"

namespace tutti::impl::monitor {

using base::Result;
using base::Status;

namespace {

constexpr std::string_view kBlock = "embeddings {";

int64_t lines_in(std::string_view text) {
  return std::ranges::count(text, '\n') + (text.empty() || text.back() == '\n' ? 0 : 1);
}

/// A text of a protocol buffer in text form.
std::string literal(std::string_view text) {
  std::string all = "\"";
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      all.append({'\\', c});
    } else if (code < 0x20) {
      char octal[8];
      std::snprintf(octal, sizeof(octal), "\\%03o", code);
      all += octal;
    } else {
      all += c;
    }
  }
  return all + "\"";
}

bool is_safe(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-'; }

/// A folder's name that no other embedding has.
std::string folder_of(std::string_view name) {
  std::string safe;
  for (const char c : name.substr(0, 40))
    safe += is_safe(c) ? c : '_';
  char hash[24];
  std::snprintf(hash, sizeof(hash), "-%08x", static_cast<uint32_t>(base::fnv1a64(name)));
  return "embedding-" + safe + hash;
}

std::string table_of(const std::vector<double> &numbers, size_t columns) {
  std::string table;
  for (size_t i = 0; i < numbers.size(); ++i) {
    char number[32];
    const int size = std::snprintf(number, sizeof(number), "%.9g", numbers[i]);
    table.append(number, static_cast<size_t>(size)) += (i + 1) % columns == 0 ? '\n' : '\t';
  }
  return table;
}

/// The configuration without the embedding of that name.
std::string without_embedding(std::string config, std::string_view name) {
  const std::string named = base::concat("\n  tensor_name: ", literal(name), "\n");
  const size_t at = config.find(named);
  if (at == std::string::npos) return config;
  const size_t begin = config.rfind(kBlock, at), end = config.find("\n}\n", at);
  if (begin == std::string::npos || end == std::string::npos) return config;
  return config.erase(begin, end + 3 - begin);
}

}  // namespace

Status check_embedding(const tensor::Tensor &points, std::string_view metadata) {
  if (points.rank() != 2 || points.elements() == 0 || points.dtype() == tensor::DType::bytes)
    return base::invalid_argument("expected numbers [points, dimensions], got ", points.describe());
  const int64_t lines = lines_in(metadata), rows = points.rows();
  const bool has_columns = metadata.substr(0, metadata.find('\n')).find('\t') != std::string_view::npos;
  if (metadata.empty() || lines == rows + 1 || (lines == rows && !has_columns)) return Status();
  return base::invalid_argument(
      "the metadata has ", lines, " lines for ", rows, " points, expected ",
      has_columns ? "the names of its columns and a line for each point" : "a line for each point");
}

Status write_embedding(const std::string &folder, std::string_view name, const tensor::Tensor &points,
                       std::string_view metadata) {
  const std::string own = folder_of(name), path = base::concat(folder, "/", own);
  TUTTI_TRY(base::make_directories(path));
  TUTTI_ASSIGN(const std::vector<double> numbers, numbers_of(points));
  TUTTI_TRY(
      base::write_file_atomically(path + "/tensors.tsv", table_of(numbers, static_cast<size_t>(points.shape()[1]))));
  if (!metadata.empty()) TUTTI_TRY(base::write_file_atomically(path + "/metadata.tsv", metadata));
  const std::string config_path = folder + "/projector_config.pbtxt";
  std::string config;
  if (base::path_exists(config_path)) {
    TUTTI_ASSIGN(config, base::read_file(config_path));
  }
  config = without_embedding(std::move(config), name);
  config += base::concat(kBlock, "\n  tensor_name: ", literal(name), "\n  tensor_path: ", literal(own + "/tensors.tsv"),
                         "\n");
  if (!metadata.empty()) config += base::concat("  metadata_path: ", literal(own + "/metadata.tsv"), "\n");
  config += "}\n";
  return base::write_file_atomically(config_path, config);
}

}  // namespace tutti::impl::monitor
