// SPDX-License-Identifier: Apache-2.0
#include "backend/state_table.h"

#include <utility>

#include "base/json.h"

namespace tutti::impl::backend {

using base::Json;
using base::JsonArray;
using base::JsonObject;
using base::JsonReader;
using base::Result;
using base::Status;

namespace {

constexpr int64_t kLine = 64;
constexpr int64_t kWay = 4096;            // of first-level caches: a page
constexpr int64_t kColour = 9 * kLine;    // apart by more than a prefetcher runs ahead
constexpr int64_t kColoured = 64 * 1024;  // smaller entries lose more by gaps than they gain

}  // namespace

int64_t place_entry(int64_t end, int64_t bytes, int32_t colour) {
  const int64_t offset = (end + kLine - 1) / kLine * kLine;
  if (bytes < kColoured) return offset;
  const int64_t gap = (colour * kColour - offset) % kWay;
  return offset + (gap < 0 ? gap + kWay : gap);
}

int64_t StateEntry::storage_elements() const { return storage_bytes / static_cast<int64_t>(tensor::size_bytes(dtype)); }

int32_t StateTable::add_arena(std::string_view name) {
  for (size_t i = 0; i < arenas_.size(); ++i) {
    if (arenas_[i] == name) return static_cast<int32_t>(i);
  }
  arenas_.emplace_back(name);
  return static_cast<int32_t>(arenas_.size()) - 1;
}

Status StateTable::add(StateEntry entry) {
  const int64_t elements = entry.storage_elements();
  if (entry.arena < 0 || entry.arena >= static_cast<int32_t>(arenas_.size()))
    return base::invalid_argument("state entry '", entry.name, "': arena ", entry.arena, " of ", arenas_.size());
  if (entry.offset < 0 || entry.storage_bytes < 0 ||
      entry.offset % static_cast<int64_t>(tensor::size_bytes(entry.dtype)) != 0)
    return base::invalid_argument("state entry '", entry.name, "': offset ", entry.offset, " and size ",
                                  entry.storage_bytes, " do not suit ", entry.dtype);
  if (entry.slice_offset < 0 || entry.slice_offset > elements || entry.flat_length() > elements - entry.slice_offset)
    return base::invalid_argument("state entry '", entry.name, "': slice of ", entry.flat_length(), " elements at ",
                                  entry.slice_offset, " in a storage of ", elements);
  if (!index_.emplace(entry.name, static_cast<int32_t>(entries_.size())).second)
    return base::already_exists("state entry '", entry.name, "' is in the table twice");
  entries_.push_back(std::move(entry));
  return Status();
}

const StateEntry *StateTable::find(std::string_view name) const {
  const int32_t index = index_of(name);
  return index < 0 ? nullptr : &entries_[static_cast<size_t>(index)];
}

int32_t StateTable::index_of(std::string_view name) const {
  const auto found = index_.find(std::string(name));
  return found == index_.end() ? -1 : found->second;
}

std::string StateTable::to_text() const {
  JsonArray entries;
  for (const StateEntry &entry : entries_) {
    JsonObject object{{"name", entry.name},
                      {"arena", entry.arena},
                      {"offset", entry.offset},
                      {"storage_bytes", entry.storage_bytes},
                      {"dtype", std::string(name(entry.dtype))},
                      {"dims", entry.dims},
                      {"layout", entry.layout}};
    if (entry.slice_offset != 0 || entry.slice_length >= 0) {
      object.emplace_back("slice_offset", entry.slice_offset);
      object.emplace_back("slice_length", entry.flat_length());
    }
    entries.emplace_back(std::move(object));
  }
  return Json(JsonObject{{"arenas", arenas_}, {"entries", std::move(entries)}}).dump();
}

namespace {

Result<StateEntry> read_entry(const JsonReader &reader) {
  StateEntry entry;
  TUTTI_ASSIGN(entry.name, reader.get_string("name"));
  TUTTI_ASSIGN(const int64_t arena, reader.get_integer("arena"));
  entry.arena = static_cast<int32_t>(arena);
  TUTTI_ASSIGN(entry.offset, reader.get_integer("offset"));
  TUTTI_ASSIGN(entry.storage_bytes, reader.get_integer("storage_bytes"));
  TUTTI_ASSIGN(const std::string dtype, reader.get_string("dtype"));
  TUTTI_ASSIGN(entry.dtype, tensor::parse_dtype(dtype));
  TUTTI_ASSIGN(entry.dims, reader.get_integers("dims"));
  TUTTI_ASSIGN(entry.layout, reader.get_string("layout", ""));
  TUTTI_ASSIGN(entry.slice_offset, reader.get_integer("slice_offset", 0));
  TUTTI_ASSIGN(entry.slice_length, reader.get_integer("slice_length", -1));
  return entry;
}

}  // namespace

Result<StateTable> StateTable::from_text(std::string_view text) {
  TUTTI_ASSIGN(const Json json, Json::parse(text));
  const JsonReader root(json, "state");
  StateTable table;
  TUTTI_ASSIGN(const JsonReader arena_list, root.get("arenas"));
  TUTTI_ASSIGN(table.arenas_, arena_list.as_strings());
  TUTTI_ASSIGN(const JsonReader entry_list, root.get("entries"));
  TUTTI_ASSIGN(const std::vector<JsonReader> entries, entry_list.elements());
  for (const JsonReader &reader : entries) {
    TUTTI_ASSIGN(StateEntry entry, read_entry(reader));
    TUTTI_TRY(table.add(std::move(entry)));
  }
  return table;
}

}  // namespace tutti::impl::backend
