// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/manifest.h"

#include <charconv>

#include "base/file.h"
#include "base/hash/checksum.h"

namespace tutti::impl::checkpoint {

using base::data_loss;
using base::invalid_argument;
using base::Json;
using base::JsonArray;
using base::JsonObject;
using base::JsonReader;
using base::Result;
using base::Status;

namespace {

constexpr std::string_view kFormat = "tutti checkpoint";
constexpr std::string_view kHead = "{\"manifest\": ";
constexpr std::string_view kMiddle = ",\n \"crc32c\": \"";
constexpr std::string_view kTail = "\"}\n";
constexpr size_t kChecksumDigits = 8;

std::string hexadecimal(uint32_t value) {
  char digits[kChecksumDigits + 1] = "00000000";
  for (size_t i = 0; i < kChecksumDigits; ++i) {
    digits[i] = "0123456789abcdef"[(value >> (4 * (kChecksumDigits - 1 - i))) & 15];
  }
  return digits;
}

Result<uint32_t> from_hexadecimal(std::string_view text) {
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (text.size() != kChecksumDigits || error != std::errc() || end != text.data() + text.size()) {
    return data_loss("expected a checksum of eight hexadecimal digits, got ", base::quoted(text));
  }
  return value;
}

Json to_json(const Manifest &manifest) {
  JsonArray files;
  for (const FileRecord &file : manifest.files) {
    files.push_back(JsonObject{
        {"name", file.name}, {"size_bytes", file.summary.size_bytes}, {"crc32c", hexadecimal(file.summary.crc32c)}});
  }
  return JsonObject{{"format", std::string(kFormat)},
                    {"format_version", manifest.format_version},
                    {"step", manifest.step},
                    {"files", std::move(files)},
                    {"run", manifest.run},
                    {"options", manifest.options},
                    {"plan", manifest.plan},
                    {"iterator", manifest.iterator},
                    {"metrics", manifest.metrics}};
}

Result<FileRecord> file_from_json(const JsonReader &reader) {
  FileRecord file;
  TUTTI_ASSIGN(file.name, reader.get_string("name"));
  TUTTI_ASSIGN(file.summary.size_bytes, reader.get_integer("size_bytes"));
  TUTTI_ASSIGN(const std::string checksum, reader.get_string("crc32c"));
  TUTTI_ASSIGN(file.summary.crc32c, from_hexadecimal(checksum));
  if (!base::is_plain_name(file.name)) {
    return invalid_argument(reader.path(), ".name: ", base::quoted(file.name), " is not a plain file name");
  }
  if (file.summary.size_bytes < 0) return reader.wrong("a size that is not negative");
  return file;
}

Json part(const JsonReader &root, std::string_view key) {
  const Json *value = root.json().find(key);
  return value == nullptr ? Json() : *value;
}

Result<Manifest> from_json(const JsonReader &root) {
  TUTTI_ASSIGN(const std::string format, root.get_string("format"));
  if (format != kFormat) return invalid_argument("expected format '", kFormat, "', got ", base::quoted(format));
  Manifest manifest;
  TUTTI_ASSIGN(manifest.format_version, root.get_integer("format_version"));
  if (manifest.format_version > kManifestFormatVersion) {
    return base::failed_precondition("checkpoint format version ", manifest.format_version,
                                     " was written by a newer release; this one reads up to ", kManifestFormatVersion);
  }
  if (manifest.format_version < 1)
    return invalid_argument("format version ", manifest.format_version, " does not exist");
  TUTTI_ASSIGN(manifest.step, root.get_integer("step"));
  if (manifest.step < 0) return invalid_argument("step ", manifest.step, " is negative");
  TUTTI_ASSIGN(const JsonReader files, root.get("files"));
  TUTTI_ASSIGN(const std::vector<JsonReader> elements, files.elements());
  for (const JsonReader &element : elements) {
    TUTTI_ASSIGN(FileRecord file, file_from_json(element));
    if (manifest.find_file(file.name)) return invalid_argument("file ", base::quoted(file.name), " is listed twice");
    manifest.files.push_back(std::move(file));
  }
  manifest.run = part(root, "run");
  manifest.options = part(root, "options");
  manifest.plan = part(root, "plan");
  manifest.iterator = part(root, "iterator");
  manifest.metrics = part(root, "metrics");
  return manifest;
}

// The text that the checksum covers, after checking it.
Result<std::string_view> verified_body(std::string_view text) {
  const size_t frame = kHead.size() + kMiddle.size() + kChecksumDigits + kTail.size();
  if (text.size() < frame || !text.starts_with(kHead) || !text.ends_with(kTail)) {
    return data_loss("the text is cut or damaged at its ", text.starts_with(kHead) ? "end" : "beginning");
  }
  const std::string_view body = text.substr(kHead.size(), text.size() - frame);
  const std::string_view middle = text.substr(kHead.size() + body.size(), kMiddle.size());
  if (middle != kMiddle) return data_loss("the text is damaged before its checksum");
  const size_t digits_at = text.size() - kTail.size() - kChecksumDigits;
  TUTTI_ASSIGN(const uint32_t expected, from_hexadecimal(text.substr(digits_at, kChecksumDigits)));
  if (base::crc32c(body) != expected) return data_loss("the text differs from its checksum");
  return body;
}

}  // namespace

const FileRecord *Manifest::find_file(std::string_view name) const {
  for (const FileRecord &file : files) {
    if (file.name == name) return &file;
  }
  return nullptr;
}

std::string manifest_text(const Manifest &manifest) {
  const std::string body = to_json(manifest).dump(1);
  return base::concat(kHead, body, kMiddle, hexadecimal(base::crc32c(body)), kTail);
}

Result<Manifest> parse_manifest(std::string_view text) {
  TUTTI_ASSIGN(const std::string_view body, verified_body(text));
  TUTTI_ASSIGN(const Json json, Json::parse(body));
  return from_json(JsonReader(json, "manifest"));
}

}  // namespace tutti::impl::checkpoint
