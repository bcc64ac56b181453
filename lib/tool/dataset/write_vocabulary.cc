// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "tool/console/name_suggestions.h"
#include "tool/console/table.h"
#include "tool/console/tensor_values.h"
#include "tool/console/text_file.h"
#include "tool/console/usage_error.h"
#include "tool/dataset/dataset_command.h"

namespace tutti::tool {

namespace {

/// The component that was named, or the only one of texts.
std::string component_of(const DatasetRequest &request, const Dataset &dataset) {
  std::vector<std::string> names;
  const nlohmann::json spec = nlohmann::json::parse(dataset.spec());
  for (const auto &component : spec.at("components")) {
    if (component.at("dtype") == "bytes") names.push_back(component.at("name"));
  }
  const std::string &wanted = request.component;
  if (wanted.empty() && names.size() == 1) return names[0];
  for (const std::string &name : names) {
    if (name == wanted) return name;
  }
  const std::string there = names.empty() ? "; none are known" : "; known: " + listed(names);
  if (wanted.empty()) throw UsageError{"--of needs the component to read texts from" + there, false};
  throw UsageError{"--of: there is no component of texts '" + wanted + "'" + did_you_mean(wanted, names) + there,
                   false};
}

/// The dataset, or its first elements.
Dataset first_elements_of(const DatasetRequest &request, const Context &context) {
  Pipeline pipeline(context);
  pipeline.dataset(open_dataset(request, context));
  if (request.first >= 0) pipeline.take(request.first);
  return pipeline.build();
}

/// What was written, and how much of all it is.
struct Written {
  int64_t texts = 0, different = 0;  // of all
  int64_t kept_texts = 0, kept = 0;
};

Written write_lines(const DatasetRequest &request, const TextCounts &found) {
  TextFile file(request.target);
  Written written;
  written.different = found.texts.element_count();
  for (int64_t i = 0; i < written.different; ++i) {
    const int64_t count = found.counts.data<int64_t>()[i];
    written.texts += count;
    if (count < request.least || (request.most > 0 && i >= request.most)) continue;
    const std::string_view text = bytes_at(found.texts, i);
    if (text.find('\n') != std::string_view::npos || (!text.empty() && text.back() == '\r')) {
      throw std::runtime_error("a vocabulary has one text per line, but " + tool::quoted(text) +
                               " has line breaks; split it by --map, for example with bytes_tokenize");
    }
    file.write(text);
    file.write("\n");
    written.kept_texts += count;
    ++written.kept;
  }
  file.close();
  return written;
}

}  // namespace

int write_vocabulary(const DatasetRequest &request) {
  Context context;
  tell_warnings(context);
  const Dataset dataset = first_elements_of(request, context);
  const std::string component = component_of(request, dataset);
  const Written written = write_lines(request, dataset.count_texts(component.c_str(), 0, 0, request.memory_bytes));
  const double share =
      written.texts > 0 ? static_cast<double>(written.kept_texts) / static_cast<double>(written.texts) : 1;
  if (request.as_json) {
    const nlohmann::ordered_json json = {{"component", component},
                                         {"written", written.kept},
                                         {"different", written.different},
                                         {"texts", written.texts},
                                         {"share", share}};
    std::printf("%s\n", json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
  } else {
    std::printf(
        "%s: %s of %s different texts of '%s', which are %s %% of all %s\nlookup(%s, path=\"%s\") numbers them\n",
        request.target.c_str(), with_commas(written.kept).c_str(), with_commas(written.different).c_str(),
        component.c_str(), readable(100 * share).c_str(), with_commas(written.texts).c_str(), component.c_str(),
        request.target.c_str());
  }
  return EXIT_SUCCESS;
}

}  // namespace tutti::tool
