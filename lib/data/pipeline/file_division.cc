// SPDX-License-Identifier: Apache-2.0
#include "data/pipeline/file_division.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "data/pipeline/block_share.h"
#include "data/pipeline/remade.h"

namespace tutti::impl::data {

using base::Result;

namespace {

struct Reason {
  std::string_view transform, text;
};
// What means something else over the files of one worker.
constexpr Reason kReasons[] = {
    {"enumerate", "numbers the elements of all files"},
    {"repeat", "ends each pass at once for all files, and workers have different numbers of elements"},
    {"resample", "draws by the order of the elements of all files"},
    {"sample_from", "draws from datasets in one order for all files"},
    {"scan", "passes a state through all files"},
    {"scan_callback", "passes a state through all files"},
    {"shard", "counts the elements of all files"},
    {"skip", "counts the elements of all files"},
    {"snapshot", "writes elements of all files"},
    {"split", "counts the elements of all files"},
    {"take", "counts the elements of all files"},
    {"take_while", "ends all files at one element"},
    {"take_while_callback", "ends all files at one element"},
    {"unique", "compares the elements of all files"},
    {"window", "joins elements of successive files"},
    {"zip", "joins elements of several sources in order"},
};

class FileDivider {
 public:
  FileDivider(int32_t worker, int32_t workers) : worker_(worker), workers_(workers) {}

  // Null: it is to be left out, as none of its files is this worker's; or there is a reason that it cannot be divided.
  Result<DatasetRef> part_of(const DatasetRef &dataset) {
    if (dataset->file_count() > 0) return files_of(dataset);
    const Recipe *recipe = dataset->recipe().get();
    if (is_list_of_files(*dataset)) return elements_of(dataset);
    if (recipe == nullptr || recipe->is_source)
      return refuse(base::concat("the source '", dataset->kind(), "' does not read a list of files one by one"));
    for (const Reason &reason : kReasons) {
      if (recipe->name == reason.transform) return refuse(base::concat("'", recipe->name, "' ", reason.text));
    }
    if (is_one_of(*recipe, {"concatenate", "interleave"})) return parts_of(*recipe);
    if (is_one_of(*recipe, {"batch", "padded_batch", "rebatch"})) return batch(*recipe, "batch_size");
    if (recipe->name == "bucket_by_length") return batch(*recipe, "batch_sizes");
    TUTTI_ASSIGN(const bool passes, passes_part(*recipe));
    if (!passes) return DatasetRef();
    const bool was_below = std::exchange(is_below_list_, is_below_list_ || recipe->makes_datasets);
    TUTTI_ASSIGN(DatasetRef input, part_of(recipe->inputs.front()));
    is_below_list_ = was_below;
    if (input == nullptr) return input;
    return remake(*recipe, {{std::move(input)}});
  }

  const std::string &refusal() const { return refusal_; }
  int64_t all() const { return all_; }
  int64_t own() const { return own_; }

 private:
  // Who makes batches without a transform for it has no size that could be divided.
  bool has_batch() {
    if (!is_below_batch_) refuse("its batches are not made by a transform behind the files");
    return is_below_batch_;
  }

  DatasetRef refuse(std::string reason) {
    if (refusal_.empty()) refusal_ = std::move(reason);
    return DatasetRef();
  }

  bool takes_next_file() {
    const bool is_own = all_++ % workers_ == worker_;
    own_ += is_own ? 1 : 0;
    return is_own;
  }

  Result<DatasetRef> files_of(const DatasetRef &source) {
    if (!has_batch()) return DatasetRef();
    std::vector<int64_t> own;
    for (int64_t file = 0; file < source->file_count(); ++file) {
      if (takes_next_file()) own.push_back(file);
    }
    return own.empty() ? DatasetRef() : source->with_files(own);
  }

  // The paths that the source `files` gives, and texts in memory that a function makes datasets of.
  bool is_list_of_files(const Dataset &dataset) const {
    const Recipe *recipe = dataset.recipe().get();
    if (recipe != nullptr && recipe->is_source && recipe->name == "files") return true;
    const auto is_text = [](const ComponentSpec &component) { return component.dtype == tensor::DType::bytes; };
    return is_below_list_ && recipe == nullptr && dataset.kind() == "slices" && dataset.cardinality().is_exact() &&
           std::ranges::any_of(dataset.spec().components, is_text);
  }

  Result<DatasetRef> elements_of(const DatasetRef &list) {
    if (!has_batch()) return DatasetRef();
    const int64_t first = (worker_ - all_ % workers_ + workers_) % workers_;
    int64_t own = 0;
    for (int64_t element = 0; element < list->cardinality().value(); ++element)
      own += takes_next_file() ? 1 : 0;
    if (own == 0) return DatasetRef();
    return Pipeline(list).apply("shard", {{"num_shards", int64_t{workers_}}, {"index", first}}).build();
  }

  Result<DatasetRef> parts_of(const Recipe &recipe) {
    std::vector<DatasetRef> own;
    for (const DatasetRef &input : recipe.inputs) {
      TUTTI_ASSIGN(DatasetRef part, part_of(input));
      if (!refusal_.empty()) return DatasetRef();
      if (part != nullptr) own.push_back(std::move(part));
    }
    if (own.size() <= 1) return own.empty() ? DatasetRef() : own.front();
    return remake(recipe, {std::move(own)});
  }

  Result<bool> passes_part(const Recipe &recipe) {
    if (recipe.name == "cache" && recipe.attributes.contains("path") &&
        !std::get<std::string>(recipe.attributes.at("path")).empty()) {
      refuse("'cache' keeps the elements of all files in one file");
      return false;
    }
    if (is_one_of(recipe, {"prefetch", "options", "select", "class_weights", "cache", "ignore_errors", "shuffle"}))
      return true;
    if (recipe.name == "map" && !is_below_batch_ && recipe.inputs.front()->spec().is_batched()) {
      TUTTI_ASSIGN(const bool passes, may_cut_rows(recipe));
      if (!passes) refuse("'map' behind the batch computes on whole batches");
      return passes;
    }
    const bool is_of_elements =
        is_one_of(recipe, {"filter", "filter_callback", "flat_map", "interleave_callback", "map", "map_callback",
                           "map_process", "parse_example", "parse_sequence_example", "unbatch"});
    if (!is_of_elements) {
      refuse(base::concat("'", recipe.name, "' may depend on the elements of all files"));
      return false;
    }
    if (is_below_batch_ || !recipe.inputs.front()->spec().is_batched()) return true;
    refuse(base::concat("'", recipe.name, "' behind the batch is given whole batches"));
    return false;
  }

  // The last batch makes those of all workers, of which this one has its rows.
  Result<DatasetRef> batch(const Recipe &recipe, const std::string &sizes) {
    graph::Attributes own;
    if (!is_below_batch_) {
      graph::Attribute rows = recipe.attributes.at(sizes);
      if (auto *one = std::get_if<int64_t>(&rows); one != nullptr && !take_rows(*one)) return DatasetRef();
      if (auto *several = std::get_if<std::vector<int64_t>>(&rows)) {
        if (!std::ranges::all_of(*several, [this](int64_t &size) { return take_rows(size); })) return DatasetRef();
      }
      own.emplace(sizes, std::move(rows));
    }
    const bool was_below = std::exchange(is_below_batch_, true);
    TUTTI_ASSIGN(DatasetRef input, part_of(recipe.inputs.front()));
    is_below_batch_ = was_below;
    if (input == nullptr) return input;
    return remake(recipe, {{std::move(input)}, std::move(own)});
  }

  bool take_rows(int64_t &size) {
    if (size < workers_) {
      refuse(base::concat("a batch of ", size, " rows has none for some of ", workers_, " workers"));
      return false;
    }
    size = BlockShare::of(size, worker_, workers_).rows;
    return true;
  }

  const int32_t worker_, workers_;
  bool is_below_batch_ = false;  // the last one
  bool is_below_list_ = false;   // of datasets that a function makes
  int64_t all_ = 0, own_ = 0;
  std::string refusal_;
};

}  // namespace

Result<FileDivision> divide_files(const DatasetRef &dataset, int32_t worker, int32_t workers) {
  FileDivider divider(worker, workers);
  TUTTI_ASSIGN(DatasetRef made, divider.part_of(dataset));
  FileDivision division{std::move(made), divider.refusal(), divider.own(), divider.all()};
  if (division.refusal.empty() && division.all < workers)
    division.refusal = base::concat("there are fewer files (", division.all, ") than workers (", workers, ")");
  if (!division.refusal.empty()) division.dataset.reset();
  return division;
}

}  // namespace tutti::impl::data
