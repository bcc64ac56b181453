// SPDX-License-Identifier: Apache-2.0
#include "tool/training/array_files.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "tool/console/text_file.h"

namespace tutti::tool {

namespace {

using json = nlohmann::ordered_json;

/// Of archives whose sizes and places are written in 32 bits.
constexpr uint64_t kMostArchiveBytes = 0xFFFFFFFF;
constexpr size_t kHeaderStep = 64;

[[noreturn]] void refuse_arrays(const std::string &path, const std::string &what) {
  throw std::runtime_error("'" + path + "': " + what);
}

/// `size` bytes of a number, the lowest first.
std::string little_endian(uint64_t number, int size) {
  std::string bytes;
  for (int i = 0; i < size; ++i)
    bytes += static_cast<char>(number >> (8 * i) & 255);
  return bytes;
}

uint64_t read_length(std::ifstream &file) {
  std::array<unsigned char, 8> bytes{};
  file.read(reinterpret_cast<char *>(bytes.data()), bytes.size());
  uint64_t length = 0;
  for (size_t i = bytes.size(); i-- > 0;)
    length = length << 8 | bytes[i];
  return length;
}

std::string dtype_of(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  return name;
}

std::string in_capitals(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::toupper(c); });
  return name;
}

/// CRC-32 as ZIP has it.
uint32_t checksum(const std::string &bytes, uint32_t crc = 0) {
  static const std::array<uint32_t, 256> table = [] {
    std::array<uint32_t, 256> made{};
    for (uint32_t i = 0; i < 256; ++i) {
      made[i] = i;
      for (int bit = 0; bit < 8; ++bit)
        made[i] = made[i] >> 1 ^ ((made[i] & 1) != 0 ? 0xEDB88320U : 0U);
    }
    return made;
  }();
  crc = ~crc;
  for (const char c : bytes)
    crc = crc >> 8 ^ table[(crc ^ static_cast<unsigned char>(c)) & 255];
  return ~crc;
}

/// bf16 is the upper half of f32.
std::string widened(const std::string &halves) {
  std::string bytes;
  bytes.reserve(2 * halves.size());
  for (size_t i = 0; i + 1 < halves.size(); i += 2)
    bytes += std::string(2, '\0') + halves[i] + halves[i + 1];
  return bytes;
}

/// The array as a file of NumPy.
std::string npy_of(const std::string &path, const NamedArray &array) {
  static const std::map<std::string, const char *> names = {
      {"f32", "<f4"}, {"f64", "<f8"}, {"f16", "<f2"}, {"bf16", "<f4"}, {"i32", "<i4"}, {"i64", "<i8"}, {"i16", "<i2"},
      {"i8", "|i1"},  {"u8", "|u1"},  {"u16", "<u2"}, {"u32", "<u4"},  {"u64", "<u8"}, {"bool", "|b1"}};
  const auto name = names.find(array.dtype);
  if (name == names.end()) refuse_arrays(path, "NumPy has no type " + array.dtype + ", that of '" + array.name + "'");
  std::string shape;
  for (const int64_t size : array.shape)
    shape += std::to_string(size) + ", ";
  if (array.shape.size() > 1) shape.resize(shape.size() - 2);
  if (array.shape.size() == 1) shape.pop_back();
  std::string header =
      std::string("{'descr': '") + name->second + "', 'fortran_order': False, 'shape': (" + shape + "), }";
  // Ten bytes are in front of it, and a line feed ends it.
  header.append((kHeaderStep - (header.size() + 11) % kHeaderStep) % kHeaderStep, ' ');
  header += '\n';
  const std::string begin = "\x93NUMPY" + std::string("\x01\x00", 2) + little_endian(header.size(), 2) + header;
  return begin + (array.dtype == "bf16" ? widened(array.bytes) : array.bytes);
}

/// What stands in front of a file of the archive, and in its list at the end, where that is the same.
std::string zip_fields(const std::string &name, const std::string &content) {
  // Version 2.0, names in UTF-8, stored; the first of January 1980.
  return little_endian(20, 2) + little_endian(1 << 11, 2) + little_endian(0, 2) + little_endian(0, 2) +
         little_endian(0x21, 2) + little_endian(checksum(content), 4) + little_endian(content.size(), 4) +
         little_endian(content.size(), 4) + little_endian(name.size(), 2) + little_endian(0, 2);
}

}  // namespace

std::vector<NamedArray> read_safetensors(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  const uint64_t length = read_length(file);
  file.seekg(0, std::ios::end);
  const auto size = static_cast<uint64_t>(std::max<std::streamoff>(0, file.tellg()));
  if (!file || size < 8 || length > size - 8) refuse_arrays(path, "cannot be read, or is damaged");
  std::string text(length, '\0');
  file.seekg(8);
  file.read(text.data(), static_cast<std::streamsize>(length));
  std::vector<NamedArray> arrays;
  try {
    const json header = json::parse(text);
    for (const auto &[name, entry] : header.items()) {
      if (name == "__metadata__") continue;
      const auto place = entry.at("data_offsets").get<std::array<uint64_t, 2>>();
      if (place[0] > place[1] || place[1] > size - 8 - length) refuse_arrays(path, "'" + name + "' is not in the file");
      NamedArray array{name, dtype_of(entry.at("dtype")), entry.at("shape").get<std::vector<int64_t>>(),
                       std::string(place[1] - place[0], '\0')};
      file.seekg(static_cast<std::streamoff>(8 + length + place[0]));
      file.read(array.bytes.data(), static_cast<std::streamsize>(array.bytes.size()));
      arrays.push_back(std::move(array));
    }
  } catch (const json::exception &error) {
    refuse_arrays(path, std::string("is damaged: ") + error.what());
  }
  if (!file) refuse_arrays(path, "cannot be read to its end");
  std::sort(arrays.begin(), arrays.end(), [](const NamedArray &a, const NamedArray &b) { return a.name < b.name; });
  return arrays;
}

void write_safetensors(const std::string &path, const std::vector<NamedArray> &arrays) {
  json header = json::object();
  uint64_t at = 0;
  for (const NamedArray &array : arrays) {
    header[array.name] = {
        {"dtype", in_capitals(array.dtype)}, {"shape", array.shape}, {"data_offsets", {at, at + array.bytes.size()}}};
    at += array.bytes.size();
  }
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');
  TextFile file(path);
  file.write(little_endian(text.size(), 8) + text);
  for (const NamedArray &array : arrays)
    file.write(array.bytes);
  file.close();
}

void write_npz(const std::string &path, const std::vector<NamedArray> &arrays) {
  TextFile file(path);
  std::string list;
  uint64_t at = 0;
  for (const NamedArray &array : arrays) {
    const std::string name = array.name + ".npy", content = npy_of(path, array);
    const std::string begin = "PK\x03\x04" + zip_fields(name, content) + name;
    list += "PK\x01\x02" + little_endian(20, 2) + zip_fields(name, content) + little_endian(0, 2) +
            little_endian(0, 2) + little_endian(0, 2) + little_endian(0, 4) + little_endian(at, 4) + name;
    file.write(begin);
    file.write(content);
    at += begin.size() + content.size();
    if (at + list.size() > kMostArchiveBytes)
      refuse_arrays(path, "the weights are more than the 4 GiB of an archive: write .safetensors");
  }
  file.write(list);
  file.write(std::string("PK\x05\x06") + little_endian(0, 4) + little_endian(arrays.size(), 2) +
             little_endian(arrays.size(), 2) + little_endian(list.size(), 4) + little_endian(at, 4) +
             little_endian(0, 2));
  file.close();
}

}  // namespace tutti::tool
