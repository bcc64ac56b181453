// SPDX-License-Identifier: Apache-2.0
#include "tool/model/checkpoint_files.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string_view>

#include "tool/console/text_ending.h"

namespace tutti::tool {

namespace {

using json = nlohmann::ordered_json;
namespace filesystem = std::filesystem;

constexpr std::string_view kPrefix = "checkpoint-", kVariablesEnd = ".safetensors";
constexpr char kManifest[] = "manifest.json", kGraph[] = "graph.json";
/// Of JSON, as the library bounds it.
constexpr uint64_t kMostJsonBytes = 100'000'000;

[[noreturn]] void refuse_file(const std::string &path, const std::string &what) {
  throw std::runtime_error("'" + path + "': " + what);
}

/// Calls `read`; what JSON is not as expected is told with the file's name.
template <typename Read>
auto told_with(const std::string &path, const Read &read) {
  try {
    return read();
  } catch (const json::exception &error) {
    refuse_file(path, std::string("is damaged, or of another release: ") + error.what());
  }
}

/// A pipe, for instance, would be waited for.
void refuse_other_files(const std::string &path) {
  std::error_code error;
  const filesystem::file_status status = filesystem::status(path, error);
  if (filesystem::exists(status) && !filesystem::is_regular_file(status)) refuse_file(path, "is not a regular file");
}

std::ifstream open_to_read(const std::string &path) {
  refuse_other_files(path);
  std::ifstream file(path, std::ios::binary);
  if (!file) refuse_file(path, filesystem::exists(path) ? "cannot be read" : "is not there");
  return file;
}

int64_t file_bytes(const std::string &path) {
  refuse_other_files(path);
  std::error_code error;
  const uintmax_t size = filesystem::file_size(path, error);
  if (error) refuse_file(path, error.message());
  return static_cast<int64_t>(size);
}

json read_json(const std::string &path) {
  std::ifstream file = open_to_read(path);
  if (static_cast<uint64_t>(file_bytes(path)) > kMostJsonBytes) refuse_file(path, "is too large");
  return told_with(path, [&] { return json::parse(std::string(std::istreambuf_iterator<char>(file), {})); });
}

/// "weights.safetensors" -> "weight".
std::string kind_of(const std::string &file_name) {
  std::string kind = file_name.substr(0, file_name.size() - kVariablesEnd.size());
  if (has_ending(kind, "s")) kind.pop_back();
  return kind;
}

/// The header of a file in the safetensors format: eight bytes with its length, then JSON.
json read_header(const std::string &path) {
  std::ifstream file = open_to_read(path);
  std::array<unsigned char, 8> length{};
  if (!file.read(reinterpret_cast<char *>(length.data()), length.size())) refuse_file(path, "has no header");
  uint64_t bytes = 0;
  for (size_t i = length.size(); i-- > 0;)
    bytes = bytes << 8 | length[i];
  const auto size = static_cast<uint64_t>(file_bytes(path));
  if (bytes > kMostJsonBytes || bytes + length.size() > size) refuse_file(path, "its header is longer than the file");
  std::string text(bytes, '\0');
  if (!file.read(text.data(), static_cast<std::streamsize>(bytes))) refuse_file(path, "its header cannot be read");
  return told_with(path, [&] { return json::parse(text); });
}

std::string in_lower_case(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

std::vector<Variable> read_variables(const std::string &path, const std::string &kind) {
  const json header = read_header(path);
  std::vector<Variable> variables;
  told_with(path, [&] {
    for (const auto &[name, entry] : header.items()) {
      if (name == "__metadata__") continue;
      const auto offsets = entry.at("data_offsets").get<std::array<int64_t, 2>>();
      variables.push_back({name, kind, in_lower_case(entry.at("dtype").get<std::string>()),
                           entry.at("shape").get<std::vector<int64_t>>(), offsets[1] - offsets[0]});
    }
  });
  std::sort(variables.begin(), variables.end(), [](const Variable &a, const Variable &b) { return a.name < b.name; });
  return variables;
}

void check_version(const std::string &path, const json &version) {
  if (version == 1) return;
  refuse_file(path, "is of version " + version.dump() + "; this command reads version 1");
}

/// The step of a directory's name; -1 for a name that is none of a checkpoint.
int64_t step_of(const std::string &name) {
  if (name.compare(0, kPrefix.size(), kPrefix) != 0) return -1;
  const std::string digits = name.substr(kPrefix.size());
  const bool is_number = !digits.empty() && digits.size() <= 18 &&
                         std::all_of(digits.begin(), digits.end(), [](unsigned char c) { return std::isdigit(c); });
  return is_number && std::to_string(std::stoll(digits)) == digits ? std::stoll(digits) : -1;
}

void read_files(CheckpointContent &checkpoint) {
  for (const json &file : checkpoint.manifest.at("files")) {
    CheckpointFile record{file.at("name").get<std::string>(), file.at("size_bytes").get<int64_t>()};
    const std::string path = checkpoint.path + "/" + record.name;
    if (record.name.find('/') != std::string::npos) refuse_file(checkpoint.path, "lists a file that is not in it");
    const int64_t size = file_bytes(path);
    if (size != record.bytes)
      refuse_file(path,
                  "has " + std::to_string(size) + " bytes, and the manifest says " + std::to_string(record.bytes));
    if (has_ending(record.name, kVariablesEnd)) {
      const std::vector<Variable> more = read_variables(path, kind_of(record.name));
      checkpoint.variables.insert(checkpoint.variables.end(), more.begin(), more.end());
    }
    checkpoint.files.push_back(std::move(record));
  }
}

CheckpointContent read_directory(const std::string &path) {
  CheckpointContent checkpoint;
  checkpoint.path = path;
  const std::string manifest = path + "/" + kManifest;
  const json text = read_json(manifest);
  told_with(manifest, [&] {
    checkpoint.manifest = text.at("manifest");
    if (checkpoint.manifest.at("format") != "tutti checkpoint") refuse_file(manifest, "is no manifest of a checkpoint");
    check_version(manifest, checkpoint.manifest.at("format_version"));
    read_files(checkpoint);
  });
  return checkpoint;
}

CheckpointContent read_variable_file(const std::string &path) {
  CheckpointContent file;
  file.path = path;
  file.files.push_back({filesystem::path(path).filename().string(), file_bytes(path)});
  file.variables = read_variables(path, "variable");
  return file;
}

SignatureEntry entry_of(const std::string &name, const json &values, const json &value) {
  const json &described = values.at(value.get<size_t>());
  return {name, described.at("dtype").get<std::string>(), described.at("dims")};
}

}  // namespace

int64_t CheckpointContent::bytes_of(const std::string &kind) const {
  int64_t bytes = 0;
  for (const Variable &variable : variables) {
    if (kind.empty() || variable.kind == kind) bytes += variable.bytes;
  }
  return bytes;
}

std::vector<CheckpointPlace> find_checkpoints(const std::string &directory) {
  std::error_code error;
  std::vector<CheckpointPlace> found;
  for (const filesystem::directory_entry &entry : filesystem::directory_iterator(directory, error)) {
    const int64_t step = step_of(entry.path().filename().string());
    if (step >= 0) found.push_back({step, entry.path().string()});
  }
  if (error) refuse_file(directory, error.message());
  std::sort(found.begin(), found.end(),
            [](const CheckpointPlace &a, const CheckpointPlace &b) { return a.step < b.step; });
  return found;
}

CheckpointContent read_checkpoint(const std::string &path) {
  if (filesystem::exists(path) && !filesystem::is_directory(path)) return read_variable_file(path);
  if (filesystem::exists(path + "/" + kManifest)) return read_directory(path);
  const std::vector<CheckpointPlace> places = find_checkpoints(path);
  if (places.empty()) refuse_file(path, "there is no checkpoint here");
  return read_directory(places.back().path);
}

bool has_signature(const CheckpointContent &checkpoint) {
  return std::any_of(checkpoint.files.begin(), checkpoint.files.end(),
                     [](const CheckpointFile &file) { return file.name == kGraph; });
}

Signature read_signature(const CheckpointContent &checkpoint) {
  const std::string path = checkpoint.path + "/" + kGraph;
  const json model = read_json(path);
  return told_with(path, [&] {
    if (model.at("format") != "tutti-model") refuse_file(path, "is no model");
    check_version(path, model.at("version"));
    const json &values = model.at("graph").at("values");
    Signature signature;
    for (const json &feature : model.at("features"))
      signature.inputs.push_back(entry_of(feature.at("name").get<std::string>(), values, feature.at("value")));
    for (const auto &[name, value] : model.at("outputs").items())
      signature.outputs.push_back(entry_of(name, values, value));
    return signature;
  });
}

}  // namespace tutti::tool
