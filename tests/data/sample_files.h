// SPDX-License-Identifier: Apache-2.0
//
// Files for tests of sources: written into a directory that is removed at the end, and what a source makes of them.
#ifndef TUTTI_TESTS_DATA_SAMPLE_FILES_H_
#define TUTTI_TESTS_DATA_SAMPLE_FILES_H_

#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "../base/temporary_directory.h"
#include "data/dataset/dataset.h"
#include "data/pipeline/pipeline.h"
#include "tensor/bytes_tensor.h"
#include "testing.h"

namespace tutti::testing {

inline void write_bytes(const std::string &path, std::string_view bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  assert_true(file.flush().good());
}

/// A pipeline that begins with a source of the registry.
inline impl::data::Pipeline begin_with(std::string_view source, impl::graph::Attributes attributes,
                                       impl::data::SourceServices services = {}) {
  impl::data::Pipeline pipeline(std::move(services));
  return std::move(pipeline.apply(source, std::move(attributes)));
}

/// The elements of one bytes component in order; an element that fails is "!" and its error, the walk goes on.
inline std::vector<std::string> texts_of(const impl::data::DatasetRef &dataset, size_t component = 0) {
  std::vector<std::string> texts;
  auto iterator = assert_ok_value(dataset->make_iterator({}));
  impl::data::Element element;
  for (int i = 0; i < 100000; ++i) {
    const impl::base::Result<bool> more = iterator->next(element);
    if (more.ok() && !*more) return texts;
    if (more.ok()) {
      for (const std::string_view text : assert_ok_value(impl::tensor::bytes_values(element.components[component])))
        texts.emplace_back(text);
    } else {
      texts.push_back("!" + more.status().to_string());
    }
  }
  fail_msg("the walk does not end");
  return texts;
}

}  // namespace tutti::testing

#endif  // TUTTI_TESTS_DATA_SAMPLE_FILES_H_
