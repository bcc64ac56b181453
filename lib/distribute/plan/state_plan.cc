// SPDX-License-Identifier: Apache-2.0
#include "distribute/plan/state_plan.h"

#include <algorithm>
#include <array>
#include <set>
#include <unordered_set>

#include "base/hash/checksum.h"

namespace tutti::impl::distribute {

using backend::StateEntry;
using base::Json;
using base::JsonArray;
using base::JsonObject;
using base::JsonReader;
using base::Result;
using base::Status;

namespace {

constexpr int64_t entry_alignment = 64;
constexpr std::array<std::string_view, arena_count> arena_names = {"weights", "slots",       "partials", "report",
                                                                   "host",    "accumulated", "signal"};

int64_t align(int64_t bytes) { return (bytes + entry_alignment - 1) / entry_alignment * entry_alignment; }

int64_t dense_bytes(const StateSpec &spec) {
  int64_t bytes = static_cast<int64_t>(tensor::size_bytes(spec.dtype));
  for (const int64_t dim : spec.dims)
    bytes *= dim;
  return bytes;
}

bool is_sum(const std::string &name) { return name.rfind("sum/", 0) == 0; }

}  // namespace

std::string_view name(Arena arena) { return arena_names[static_cast<size_t>(arena)]; }

std::string of_contributor(int32_t contributor, std::string_view entry) {
  return "contributor/" + std::to_string(contributor) + "/" + std::string(entry);
}

/// Fills a plan.
struct StatePlan::Builder {
  StatePlan plan;
  const PlanOptions &options;
  std::unordered_map<std::string, const backend::LayoutProposal *> layouts;  // by variable
  std::unordered_map<std::string, int32_t> slots;                            // planned so far, by variable
  std::unordered_map<std::string, int64_t> units;                            // elements that stay together, by variable
  std::set<std::string> whole, row_major;                                    // variables

  explicit Builder(const PlanOptions &plan_options) : options(plan_options) {}

  bool is_cut_between_units(const std::string &variable) const { return units.count(variable) != 0; }

  Status add(const StateSpec &spec) {
    if (spec.slice_unit > 0) units[spec.variable] = spec.slice_unit;
    if (spec.is_whole) whole.insert(spec.variable);
    if (spec.is_row_major) row_major.insert(spec.variable);
    if (!plan.index_.emplace(spec.name, static_cast<int32_t>(plan.entries_.size())).second) {
      return base::internal_error("state entry '", spec.name, "' is planned twice");
    }
    StateEntry entry;
    entry.name = spec.name;
    entry.arena = static_cast<int32_t>(spec.arena);
    entry.dtype = spec.dtype;
    entry.dims = spec.dims;
    entry.storage_bytes = dense_bytes(spec);
    const auto layout = layouts.find(spec.variable);
    if (layout != layouts.end() && !spec.variable.empty() && !spec.has_own_dims &&
        !is_cut_between_units(spec.variable) && !row_major.contains(spec.variable)) {
      entry.layout = layout->second->layout;
      entry.storage_bytes = layout->second->storage_bytes;
    }
    int64_t &end = plan.arena_bytes_[static_cast<size_t>(spec.arena)];
    // Partials are reduced as they lie, without gaps.
    entry.offset =
        spec.arena == Arena::partials ? end : backend::place_entry(end, entry.storage_bytes, colour_of(spec));
    end = align(entry.offset + entry.storage_bytes);
    plan.entries_.push_back(std::move(entry));
    plan.entry_variables_.push_back(spec.variable);
    plan.entries_have_own_dims_.push_back(spec.has_own_dims);
    return Status();
  }

  /// A variable's weight and slots differ.
  int32_t colour_of(const StateSpec &spec) { return spec.arena == Arena::slots ? ++slots[spec.variable] : 0; }

  /// Cuts the partials into contiguous ranges: by dtype, sliced or not, and size.
  void cut_buckets() {
    int64_t limit = options.first_bucket_bytes;
    const int64_t total = plan.arena_bytes_[static_cast<size_t>(Arena::partials)];
    for (size_t i = 0; i < plan.entries_.size(); ++i) {
      const StateEntry &entry = plan.entries_[i];
      if (entry.arena != static_cast<int32_t>(Arena::partials)) continue;
      const bool sliced = !is_sum(entry.name) && plan.slice_count_ > 1;
      const bool fits = !plan.buckets_.empty() && plan.buckets_.back().dtype == entry.dtype &&
                        plan.buckets_.back().sliced == sliced && !is_full(plan.buckets_.back(), entry, limit, total);
      if (!fits) {
        if (!plan.buckets_.empty()) limit = options.bucket_bytes;
        plan.buckets_.push_back({entry.offset, 0, entry.dtype, sliced, static_cast<int32_t>(i), 0});
      }
      Bucket &bucket = plan.buckets_.back();
      const auto element = static_cast<int64_t>(tensor::size_bytes(entry.dtype));
      bucket.elements = (align(entry.offset + entry.storage_bytes) - bucket.offset) / element;
      ++bucket.entry_count;
    }
  }

  /// A bucket ends before it exceeds its limit, and early enough to leave a small last one, whose reduction nothing
  /// hides.
  bool is_full(const Bucket &bucket, const StateEntry &next, int64_t limit, int64_t total) const {
    const int64_t bytes = next.offset + next.storage_bytes - bucket.offset;
    if (bytes > limit) return true;
    const int64_t rest = total - next.offset;
    return rest <= options.last_bucket_bytes && next.offset - bucket.offset > options.last_bucket_bytes;
  }

  /// The first entry of each variable among the partials decides its slices; later gradient sets follow it.
  void slice_variables() {
    for (const auto &[variable, unit] : units)
      slice_between_units(variable, unit);
    for (const Bucket &bucket : plan.buckets_) {
      if (bucket.sliced) slice_bucket(bucket);
    }
    for (size_t b = 0; b < plan.buckets_.size(); ++b)
      plan.bucket_slices_.push_back(slices_of(plan.buckets_[b]));
  }

  void slice_between_units(const std::string &variable, int64_t unit) {
    const StateEntry &entry = *plan.find("weight/" + variable);
    std::vector<int64_t> &bounds = plan.variable_bounds_[variable];
    for (int64_t s = 0; s <= plan.slice_count_; ++s)
      bounds.push_back((entry.storage_elements() / unit * s + plan.slice_count_ - 1) / plan.slice_count_ * unit);
  }

  void slice_bucket(const Bucket &bucket) {
    const auto element = static_cast<int64_t>(tensor::size_bytes(bucket.dtype));
    const int64_t block = entry_alignment / element;
    std::vector<int32_t> firsts;  // entries that decide
    int64_t blocks = 0;
    for (int32_t i = bucket.first_entry; i < bucket.first_entry + bucket.entry_count; ++i) {
      const auto at = static_cast<size_t>(i);
      if (plan.variable_bounds_.count(plan.entry_variables_[at]) != 0) continue;
      plan.variable_bounds_[plan.entry_variables_[at]] = {};
      firsts.push_back(i);
      blocks += align(plan.entries_[at].storage_bytes) / entry_alignment;
    }
    int64_t first_block = 0;
    for (const int32_t i : firsts) {
      const StateEntry &entry = plan.entries_[static_cast<size_t>(i)];
      const int64_t count = entry.storage_bytes / element;
      std::vector<int64_t> &bounds = plan.variable_bounds_[plan.entry_variables_[static_cast<size_t>(i)]];
      const int64_t own_blocks = align(entry.storage_bytes) / entry_alignment;
      const bool is_whole = whole.contains(plan.entry_variables_[static_cast<size_t>(i)]);
      for (int64_t s = 0; s <= plan.slice_count_; ++s) {
        const int64_t cut = blocks * s / plan.slice_count_ - first_block;
        // A whole variable belongs to the slice that its middle is in.
        const int64_t own_cut = !is_whole ? cut * block : cut * 2 > own_blocks ? count : 0;
        bounds.push_back(std::clamp(own_cut, int64_t{0}, count));
      }
      bounds.front() = 0;
      bounds.back() = count;
      first_block += own_blocks;
    }
  }

  std::vector<Slice> slices_of(const Bucket &bucket) const {
    std::vector<Slice> slices;
    if (!bucket.sliced) return slices;
    const auto element = static_cast<int64_t>(tensor::size_bytes(bucket.dtype));
    for (int32_t i = bucket.first_entry; i < bucket.first_entry + bucket.entry_count; ++i) {
      const auto at = static_cast<size_t>(i);
      const std::vector<int64_t> &bounds = plan.variable_bounds_.at(plan.entry_variables_[at]);
      const int64_t first = (plan.entries_[at].offset - bucket.offset) / element;
      for (int32_t s = 0; s < plan.slice_count_; ++s) {
        const Slice slice{first + bounds[static_cast<size_t>(s)], first + bounds[static_cast<size_t>(s) + 1], s};
        if (slice.begin == slice.end) continue;
        // The padding between two entries of one owner may be reduced with them.
        if (!slices.empty() && slices.back().owner == s &&
            slice.begin - slices.back().end < entry_alignment / element) {
          slices.back().end = slice.end;
        } else {
          slices.push_back(slice);
        }
      }
    }
    return slices;
  }
};

Result<StatePlan> StatePlan::make(const std::vector<StateSpec> &specs,
                                  const std::vector<backend::LayoutProposal> &layouts, const PlanOptions &options) {
  Builder builder(options);
  builder.plan.slice_count_ = options.slices;
  for (const backend::LayoutProposal &layout : layouts) {
    if (layout.name.rfind("weight/", 0) == 0) builder.layouts[layout.name.substr(7)] = &layout;
    if (layout.name.rfind("derived/", 0) == 0) builder.layouts[layout.name] = &layout;
  }
  for (const StateSpec &spec : specs)
    TUTTI_TRY(builder.add(spec));
  builder.cut_buckets();
  builder.slice_variables();
  StatePlan &plan = builder.plan;
  const std::string text = plan.to_json().dump();
  plan.hash_ = base::fnv1a64(text);
  return std::move(plan);
}

const StateEntry *StatePlan::find(std::string_view entry_name) const {
  const auto found = index_.find(std::string(entry_name));
  return found == index_.end() ? nullptr : &entries_[static_cast<size_t>(found->second)];
}

std::pair<int64_t, int64_t> StatePlan::slice_of(std::string_view variable, int32_t index) const {
  const auto found = variable_bounds_.find(std::string(variable));
  if (found == variable_bounds_.end()) return {0, -1};
  return {found->second[static_cast<size_t>(index)], found->second[static_cast<size_t>(index) + 1]};
}

backend::StateTable StatePlan::table(int32_t slice, int32_t seen) const {
  backend::StateTable table;
  for (const std::string_view arena : arena_names)
    table.add_arena(arena);
  for (int32_t c = 0; c < seen; ++c)
    table.add_arena(of_contributor(c, name(Arena::partials)));
  for (size_t i = 0; i < entries_.size(); ++i) {
    StateEntry entry = entries_[i];
    if (slice >= 0 && slice_count_ > 1 && !entry_variables_[i].empty()) {
      const auto [begin, end] = slice_of(entry_variables_[i], slice);
      if (end >= begin) {
        const bool has_own_dims = entries_have_own_dims_[i];
        entry.slice_offset = has_own_dims ? 0 : begin;
        entry.slice_length = !has_own_dims ? end - begin : end > begin ? entry.storage_elements() : 0;
      }
    }
    const bool is_partial = entry.arena == static_cast<int32_t>(Arena::partials) && !entry_variables_[i].empty();
    for (int32_t c = 0; is_partial && c < seen; ++c) {
      StateEntry other = entry;
      other.name = of_contributor(c, entry.name);
      other.arena = arena_count + c;
      (void)table.add(std::move(other));
    }
    (void)table.add(std::move(entry));  // names are unique by construction
  }
  return table;
}

Json StatePlan::to_json() const {
  JsonArray entries;
  for (size_t i = 0; i < entries_.size(); ++i) {
    const StateEntry &entry = entries_[i];
    entries.push_back(JsonObject{{"name", entry.name},
                                 {"arena", std::string(arena_names[static_cast<size_t>(entry.arena)])},
                                 {"offset", entry.offset},
                                 {"dtype", std::string(tensor::name(entry.dtype))},
                                 {"dims", Json(entry.dims)},
                                 {"layout", entry.layout},
                                 {"storage_bytes", entry.storage_bytes},
                                 {"variable", entry_variables_[i]}});
  }
  JsonArray buckets;
  for (size_t b = 0; b < buckets_.size(); ++b) {
    const Bucket &bucket = buckets_[b];
    JsonArray slices;
    for (const Slice &slice : bucket_slices_[b])
      slices.push_back(JsonArray{slice.begin, slice.end, slice.owner});
    buckets.push_back(JsonObject{{"offset", bucket.offset},
                                 {"elements", bucket.elements},
                                 {"dtype", std::string(tensor::name(bucket.dtype))},
                                 {"sliced", bucket.sliced},
                                 {"first_entry", bucket.first_entry},
                                 {"entry_count", bucket.entry_count},
                                 {"slices", std::move(slices)}});
  }
  return JsonObject{{"slices", slice_count_},
                    {"arena_bytes", Json(arena_bytes_)},
                    {"entries", std::move(entries)},
                    {"buckets", std::move(buckets)}};
}

}  // namespace tutti::impl::distribute
