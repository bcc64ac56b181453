// SPDX-License-Identifier: Apache-2.0
// Any bytes are a file of any source, or an error; reading ends, and a walk that was saved anywhere and restored gives
// what the first one gave from there on. The first byte chooses the source, the second where to save.
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "data/pipeline/pipeline.h"
#include "tensor/bytes_tensor.h"

using namespace tutti::impl;
using base::Ref;
using base::Result;
using data::DatasetRef;
using data::Element;
using graph::Attributes;

namespace {

using Strings = std::vector<std::string>;

// Elements and errors of one walk; more would only be slow.
constexpr size_t kMostAnswers = 300;

// One file, under any name.
class OneFile : public data::FileSystem {
 public:
  explicit OneFile(std::string_view bytes) : bytes_(bytes) {}
  Result<Ref<const data::ReadableFile>> open(const std::string &path, const Ref<base::CancelToken> &) const override {
    return data::memory_file(bytes_, path);
  }
  bool can_list() const override { return false; }
  Result<std::vector<Entry>> list(const std::string &, const Ref<base::CancelToken> &) const override {
    return std::vector<Entry>();
  }

 private:
  const std::string_view bytes_;
};

struct Source {
  const char *name;
  Attributes attributes;
};

const std::vector<Source> &sources() {
  const Strings one{"one://file"};
  static const auto *const made = new std::vector<Source>{
      {"text_lines", {{"paths", one}}},
      {"tfrecord", {{"paths", one}}},
      {"tar", {{"paths", one}, {"parts", Strings{"txt: bytes", "cls: i64 = 0"}}}},
      {"csv", {{"paths", one}}},
      {"csv", {{"paths", one}, {"header", false}, {"columns", Strings{"a: i64 = 0", "b: f32", "c: bytes = x"}}}},
      {"fixed_records", {{"paths", one}, {"fields", Strings{"a: u8", "b: i16[2]"}}}},
      {"fixed_records",
       {{"paths", one}, {"record_bytes", int64_t{3}}, {"header_bytes", int64_t{2}}, {"footer_bytes", int64_t{1}}}},
      {"npy", {{"arrays", Strings{"x=one://file"}}}},
      {"npz", {{"path", std::string("one://file")}}},
  };
  return *made;
}

// What next() answered, as text.
std::string answer_of(const Result<bool> &more, const Element &element) {
  if (!more.ok()) return std::string(name(more.code()));
  std::string text = base::concat(element.lineage.index, ":");
  for (const tensor::Tensor &component : element.components) {
    text += component.describe();
    if (component.dtype() != tensor::DType::bytes) {
      text.append(static_cast<const char *>(component.data()), static_cast<size_t>(component.size_bytes()));
      continue;
    }
    for (int64_t i = 0; i < component.elements(); ++i)
      text += tensor::bytes_at(component, i);
  }
  return text;
}

// The answers of a walk from a state on (null = the beginning); `state` becomes that after `at` answers.
std::vector<std::string> walk(const data::Dataset &dataset, const base::Json *from, size_t at, base::Json &state) {
  const auto iterator = dataset.make_iterator({}).value();
  if (from != nullptr && !iterator->restore(*from).ok()) std::abort();
  std::vector<std::string> answers;
  for (Element element; answers.size() < kMostAnswers;) {
    if (answers.size() == at) state = iterator->save();
    const Result<bool> more = iterator->next(element);
    if (more.ok() && !*more) break;
    answers.push_back(answer_of(more, element));
  }
  return answers;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 2) return 0;
  const Source &source = sources()[data[0] % sources().size()];
  const size_t at = data[1] % 16;
  const auto systems = base::make_ref<data::FileSystems>();
  const std::string_view bytes(reinterpret_cast<const char *>(data) + 2, size - 2);
  if (!systems->add("one", std::make_shared<OneFile>(bytes)).ok()) std::abort();
  const auto dataset =
      data::Pipeline(data::SourceServices{systems}).apply(source.name, Attributes(source.attributes)).build();
  if (!dataset.ok()) return 0;
  base::Json state, other;
  const std::vector<std::string> all = walk(**dataset, nullptr, at, state);
  if (at >= all.size()) return 0;
  const std::vector<std::string> rest = walk(**dataset, &state, kMostAnswers, other);
  const size_t common = std::min(rest.size(), all.size() - at);
  if (!std::equal(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(common),
                  all.begin() + static_cast<std::ptrdiff_t>(at))) {
    std::abort();
  }
  if (all.size() < kMostAnswers && rest.size() != all.size() - at) std::abort();
  return 0;
}
