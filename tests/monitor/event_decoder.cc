// SPDX-License-Identifier: Apache-2.0
#include "monitor/event_decoder.h"

#include <dirent.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <stdexcept>

namespace tutti::testing {

namespace {

// Castagnoli, bit by bit; masked as record files have it.
uint32_t masked_checksum(std::string_view bytes) {
  uint32_t crc = 0xffffffffu;
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit)
      crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78u : 0);
  }
  crc = ~crc;
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

uint64_t little_endian(std::string_view bytes) {
  uint64_t number = 0;
  for (size_t i = 0; i < bytes.size(); ++i)
    number |= static_cast<uint64_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  return number;
}

std::string_view take(std::string_view &from, uint64_t size, const char *what) {
  if (size > from.size()) throw std::runtime_error(std::string("the file or message ends within ") + what);
  const std::string_view taken = from.substr(0, size);
  from.remove_prefix(size);
  return taken;
}

uint64_t take_varint(std::string_view &from) {
  uint64_t number = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    const auto byte = static_cast<unsigned char>(take(from, 1, "a number")[0]);
    number |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if ((byte & 0x80) == 0) return number;
  }
  throw std::runtime_error("a number has too many bytes");
}

std::string as_bytes(uint64_t number) { return std::string(reinterpret_cast<const char *>(&number), sizeof(number)); }

DecodedEvent decode_event(std::string_view message) {
  DecodedEvent event;
  const Fields fields = decode_message(message);
  event.wall_time = double_of(field_of(fields, 1));
  event.step = integer_of(fields, 2);
  event.file_version = field_of(fields, 3);
  event.graph = field_of(fields, 4);
  event.is_start = integer_of(decode_message(field_of(fields, 7)), 1) == 1;
  for (const auto &[number, value] : decode_message(field_of(fields, 5))) {
    if (number != 1) throw std::runtime_error("a summary has a field that is no value");
    Fields parts = decode_message(value);
    event.values[field_of(parts, 1)] = std::move(parts);
  }
  return event;
}

}  // namespace

Fields decode_message(std::string_view message) {
  Fields fields;
  while (!message.empty()) {
    const uint64_t key = take_varint(message);
    const auto number = static_cast<int32_t>(key >> 3);
    switch (key & 7) {
      case 0:
        fields.emplace_back(number, as_bytes(take_varint(message)));
        break;
      case 1:
        fields.emplace_back(number, take(message, 8, "a double"));
        break;
      case 2:
        fields.emplace_back(number, take(message, take_varint(message), "a field"));
        break;
      case 5:
        fields.emplace_back(number, take(message, 4, "a float"));
        break;
      default:
        throw std::runtime_error("a field has a type that there is not");
    }
  }
  return fields;
}

std::string field_of(const Fields &fields, int32_t number) {
  for (auto field = fields.rbegin(); field != fields.rend(); ++field)
    if (field->first == number) return field->second;
  return {};
}

int64_t integer_of(const Fields &fields, int32_t number) {
  return static_cast<int64_t>(little_endian(field_of(fields, number)));
}

double double_of(std::string_view bytes) {
  double number = std::numeric_limits<double>::quiet_NaN();
  if (bytes.size() == sizeof(number)) std::memcpy(&number, bytes.data(), sizeof(number));
  return number;
}

float float_of(std::string_view bytes) {
  float number = std::numeric_limits<float>::quiet_NaN();
  if (bytes.size() == sizeof(number)) std::memcpy(&number, bytes.data(), sizeof(number));
  return number;
}

double DecodedEvent::scalar(const std::string &tag) const {
  const auto found = values.find(tag);
  return found == values.end() ? std::numeric_limits<double>::quiet_NaN() : float_of(field_of(found->second, 2));
}

std::vector<DecodedEvent> decode_event_file(const std::string &path, Tail tail) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  std::vector<DecodedEvent> events;
  for (std::string_view rest = text; !rest.empty();) {
    const bool is_cut = rest.size() < 8 || rest.size() - 8 < little_endian(rest.substr(0, 8)) + 8;
    if (is_cut && tail == Tail::may_be_cut) return events;
    const std::string_view length = take(rest, 8, "the length of a record");
    if (little_endian(take(rest, 4, "a checksum")) != masked_checksum(length))
      throw std::runtime_error("the checksum of a length is wrong");
    const std::string_view record = take(rest, little_endian(length), "a record");
    if (little_endian(take(rest, 4, "a checksum")) != masked_checksum(record))
      throw std::runtime_error("the checksum of a record is wrong");
    events.push_back(decode_event(record));
    events.back().file = path;
  }
  if (events.empty() || events.front().file_version != "brain.Event:2")
    throw std::runtime_error("the file does not begin with its version");
  return events;
}

std::vector<DecodedEvent> decode_event_folder(const std::string &folder, Tail tail) {
  std::vector<std::string> names;
  if (DIR *const opened = opendir(folder.c_str()); opened != nullptr) {
    while (const dirent *entry = readdir(opened))
      if (std::string_view(entry->d_name).find("tfevents") != std::string_view::npos) names.emplace_back(entry->d_name);
    closedir(opened);
  }
  std::sort(names.begin(), names.end());
  std::vector<DecodedEvent> events;
  for (const std::string &name : names)
    for (DecodedEvent &event : decode_event_file(folder + "/" + name, tail))
      events.push_back(std::move(event));
  return events;
}

std::vector<DecodedEvent> shown_events(const std::vector<DecodedEvent> &events) {
  std::vector<DecodedEvent> shown;
  bool has_started = false;
  for (const DecodedEvent &event : events) {
    if (event.is_start && has_started)
      std::erase_if(shown, [&](const DecodedEvent &earlier) { return earlier.step >= event.step; });
    has_started |= event.is_start;
    if (!event.values.empty()) shown.push_back(event);
  }
  return shown;
}

std::vector<std::pair<int64_t, double>> curve(const std::vector<DecodedEvent> &events, const std::string &tag) {
  std::vector<std::pair<int64_t, double>> points;
  for (const DecodedEvent &event : events)
    if (event.values.contains(tag)) points.emplace_back(event.step, event.scalar(tag));
  return points;
}

}  // namespace tutti::testing
