// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <cstdlib>

#include "tool/console/progress.h"
#include "tool/console/table.h"
#include "tool/console/tensor_values.h"
#include "tool/dataset/component_statistics.h"
#include "tool/dataset/dataset_command.h"

namespace tutti::tool {

namespace {

using json = nlohmann::ordered_json;

constexpr size_t kCountsShown = 20;
constexpr int64_t kBar = 40;

/// What a pass over the dataset has found.
struct Found {
  std::vector<ComponentStatistics> components;
  int64_t elements = 0, failures = 0;
  std::string first_failure;
  double seconds = 0;
  json report;
};

Found walk(const Dataset &dataset, int64_t limit, int64_t seed) {
  Found found;
  for (int64_t i = 0; i < dataset.component_count(); ++i)
    found.components.emplace_back(dataset.component_name(i));
  Iterator iterator(dataset, seed);
  const int64_t known = dataset.cardinality();
  Progress progress(limit >= 0 && (known < 0 || limit < known) ? limit : known);
  // An element that fails is left out; an error that comes twice at the same place ends the walk.
  std::string place;
  while (limit < 0 || found.elements < limit) {
    try {
      if (!iterator.next()) break;
    } catch (const Error &error) {
      ++found.failures;
      if (found.first_failure.empty()) found.first_failure = error.what();
      const std::string here = iterator.save();
      if (here == place) break;
      place = here;
      continue;
    }
    for (size_t i = 0; i < found.components.size(); ++i)
      found.components[i].add(iterator.component(static_cast<int64_t>(i)));
    progress.at(++found.elements);
  }
  found.seconds = progress.seconds();
  found.report = json::parse(iterator.report());
  return found;
}

void print_components(const Found &found) {
  Table table({"component", "type", ">values", ">min", ">max", ">mean", ">deviation", "not finite"});
  for (const ComponentStatistics &one : found.components) {
    const bool has_numbers = one.values() > one.not_finite();
    const auto number = [&](double value) { return has_numbers ? readable(value) : std::string(); };
    const std::string of_bytes = one.dtype() == TUTTI_DTYPE_BYTES ? " bytes" : "";
    table.add({one.name(), dtype_name(one.dtype()) + one.shape(), with_commas(one.values()),
               number(one.least()) + of_bytes, number(one.most()) + of_bytes, number(one.mean()) + of_bytes,
               number(one.deviation()), one.not_finite() > 0 ? with_commas(one.not_finite()) : ""});
  }
  table.print();
}

void print_counts(const ComponentStatistics &component) {
  const auto counts = component.counts();
  // Values that never repeat say nothing.
  if (counts.empty() || counts.front().second == 1) return;
  std::printf("\n%s: %s different values\n", component.name().c_str(),
              with_commas(static_cast<int64_t>(counts.size())).c_str());
  Table table({"value", ">times", ">share", ""});
  for (size_t i = 0; i < counts.size() && i < kCountsShown; ++i) {
    const double share = static_cast<double>(counts[i].second) / static_cast<double>(component.values());
    const auto bar = static_cast<size_t>(kBar * counts[i].second / counts.front().second);
    table.add({counts[i].first, with_commas(counts[i].second), readable(100 * share) + " %", std::string(bar, '#')});
  }
  table.print();
  if (counts.size() > kCountsShown) std::printf("... and %zu more\n", counts.size() - kCountsShown);
}

json to_json(const Found &found) {
  json components = json::array();
  for (const ComponentStatistics &one : found.components)
    components.push_back(one.to_json());
  return {{"elements", found.elements}, {"failures", found.failures}, {"first_failure", found.first_failure},
          {"seconds", found.seconds},   {"components", components},   {"report", found.report}};
}

void print_all(const Found &found) {
  std::printf("%s elements in %s s, %s a second\n\n", with_commas(found.elements).c_str(),
              readable(found.seconds).c_str(), readable(static_cast<double>(found.elements) / found.seconds).c_str());
  print_components(found);
  for (const ComponentStatistics &one : found.components)
    print_counts(one);
  if (found.failures > 0) {
    std::printf("\n%s elements could not be read; the first: %s\n", with_commas(found.failures).c_str(),
                found.first_failure.c_str());
  }
}

}  // namespace

int print_statistics(const DatasetRequest &request) {
  Context context;
  tell_warnings(context);
  const Found found = walk(open_dataset(request, context), request.first, request.preparation.seed);
  if (request.as_json) {
    std::printf("%s\n", to_json(found).dump(1, ' ', false, json::error_handler_t::replace).c_str());
  } else {
    print_all(found);
  }
  return found.failures > 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

}  // namespace tutti::tool
