// SPDX-License-Identifier: Apache-2.0
#include "data/pipeline/text_counts.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <memory_resource>
#include <unordered_map>
#include <vector>

#include "base/cancel.h"
#include "base/hash/keyed_hash.h"
#include "tensor/bytes_tensor.h"

namespace tutti::impl::data {

using base::Result;
using base::Status;
using tensor::Tensor;

namespace {

// A large batch is not to keep a cancel waiting.
constexpr int64_t kTextsBetweenChecks = 1 << 16;

class TextTable {
 public:
  using Entry = std::pair<const std::string_view, int64_t>;

  explicit TextTable(int64_t memory_bytes) : free_bytes_(memory_bytes) {}

  /// False when there is no room for a text that is new.
  bool add(std::string_view text) {
    const auto found = counts_.find(text);
    if (found != counts_.end()) {
      ++found->second;
      return true;
    }
    const int64_t bytes = static_cast<int64_t>(text.size()) + TextCountLimits::kBytesBeside;
    if (bytes > free_bytes_) return false;
    free_bytes_ -= bytes;
    char *const copy = static_cast<char *>(texts_.allocate(text.size(), 1));
    if (!text.empty()) std::memcpy(copy, text.data(), text.size());
    counts_.emplace(std::string_view(copy, text.size()), 1);
    return true;
  }
  size_t size() const { return counts_.size(); }
  /// The entries to be given, in their order; valid as long as the table.
  std::vector<const Entry *> sorted(const TextCountLimits &limits) const;

 private:
  int64_t free_bytes_;
  std::pmr::monotonic_buffer_resource texts_;  // which are given back together
  std::unordered_map<std::string_view, int64_t, base::KeyedHash> counts_;
};

std::vector<const TextTable::Entry *> TextTable::sorted(const TextCountLimits &limits) const {
  std::vector<const Entry *> entries;
  entries.reserve(counts_.size());
  for (const Entry &entry : counts_) {
    if (entry.second >= limits.least_count) entries.push_back(&entry);
  }
  // The table's order is another one in each process. string_view compares bytes as unsigned.
  const auto goes_first = [](const Entry *a, const Entry *b) {
    return a->second != b->second ? a->second > b->second : a->first < b->first;
  };
  const auto most = static_cast<size_t>(limits.most_texts);
  if (most > 0 && most < entries.size()) {
    std::nth_element(entries.begin(), entries.begin() + static_cast<ptrdiff_t>(most), entries.end(), goes_first);
    entries.resize(most);
  }
  std::sort(entries.begin(), entries.end(), goes_first);
  return entries;
}

Result<size_t> find_texts(const ElementSpec &spec, std::string_view component) {
  TUTTI_ASSIGN(const size_t index, find_component(spec, component));
  const ComponentSpec &texts = spec.components[index];
  if (texts.dtype == tensor::DType::bytes) return index;
  return base::invalid_argument("component '", texts.name, "': expected texts, which are of dtype bytes, got ",
                                texts.to_string());
}

Status count_element(const Tensor &texts, const base::CancelToken &token, TextTable &table, bool &fits) {
  for (int64_t i = 0; i < texts.elements() && fits; ++i) {
    if (i % kTextsBetweenChecks == kTextsBetweenChecks - 1) TUTTI_TRY(base::check(&token));
    fits = table.add(tensor::bytes_at(texts, i));
  }
  return Status();
}

Status too_many(std::string_view component, const TextTable &table, int64_t memory_bytes, const Lineage &lineage) {
  return in_element(base::resource_exhausted(
                        "count_texts: component '", component, "': the different texts need more than ", memory_bytes,
                        " bytes (memory_bytes; each needs its length and ", TextCountLimits::kBytesBeside,
                        "): there are ", table.size(), " of them before element ", lineage.index, ", which has more"),
                    lineage);
}

Result<TextCounts> to_tensors(const std::vector<const TextTable::Entry *> &entries) {
  const tensor::Shape shape{static_cast<int64_t>(entries.size())};
  std::vector<std::string_view> texts(entries.size());
  TUTTI_ASSIGN(Tensor counts, Tensor::allocate(tensor::DType::i64, shape));
  for (size_t i = 0; i < entries.size(); ++i) {
    texts[i] = entries[i]->first;
    counts.mutable_data_as<int64_t>()[i] = entries[i]->second;
  }
  TUTTI_ASSIGN(Tensor made, tensor::make_bytes_tensor(shape, texts));
  return TextCounts{std::move(made), std::move(counts)};
}

}  // namespace

Result<TextCounts> count_texts(const Dataset &dataset, std::string_view component, const TextCountLimits &limits,
                               const IteratorContext &context) {
  TUTTI_ASSIGN(const size_t index, find_texts(dataset.spec(), component));
  if (dataset.cardinality().is_infinite()) {
    return base::invalid_argument("the dataset has no end; count its texts before repeat");
  }
  TUTTI_ASSIGN(const std::unique_ptr<Iterator> iterator, dataset.make_iterator(context));
  TextTable table(limits.memory_bytes);
  for (Element element;;) {
    TUTTI_ASSIGN(const bool more, iterator->next(element));
    if (!more) break;
    bool fits = true;
    TUTTI_TRY(count_element(element.components[index], iterator->token(), table, fits));
    if (!fits) return too_many(component, table, limits.memory_bytes, element.lineage);
  }
  return to_tensors(table.sorted(limits));
}

}  // namespace tutti::impl::data
