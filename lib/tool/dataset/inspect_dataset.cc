// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "tool/console/table.h"
#include "tool/console/tensor_values.h"
#include "tool/dataset/contact_sheet.h"
#include "tool/dataset/dataset_command.h"

namespace tutti::tool {

namespace {

using json = nlohmann::ordered_json;

constexpr int64_t kElementsShown = 3, kImagesShown = 64;

std::string cardinality_text(int64_t cardinality) {
  if (cardinality >= 0) return with_commas(cardinality) + (cardinality == 1 ? " element" : " elements");
  return cardinality == TUTTI_CARDINALITY_INFINITE ? "infinitely many elements" : "unknown number of elements";
}

const char *role_name(int32_t role) {
  return role == TUTTI_ROLE_LABEL ? "label" : role == TUTTI_ROLE_WEIGHT ? "weight" : "feature";
}

/// A row for each component of each of the first elements.
Table element_table(const Dataset &dataset, int64_t count, int64_t seed) {
  Table table({">element", "component", "role", "type", "values"});
  Iterator iterator(dataset, seed);
  for (int64_t n = 0; n < count && iterator.next(); ++n) {
    for (int64_t i = 0; i < dataset.component_count(); ++i) {
      const Tensor value = iterator.component(i);
      table.add({i == 0 ? std::to_string(n) : "", dataset.component_name(i), role_name(dataset.component_role(i)),
                 dtype_name(value.dtype()) + shape_text(value), preview(value)});
    }
  }
  return table;
}

json element_json(const Dataset &dataset, int64_t count, int64_t seed) {
  json elements = json::array();
  Iterator iterator(dataset, seed);
  for (int64_t n = 0; n < count && iterator.next(); ++n) {
    json element = json::object();
    for (int64_t i = 0; i < dataset.component_count(); ++i) {
      const Tensor value = iterator.component(i);
      element[dataset.component_name(i)] = {
          {"dtype", dtype_name(value.dtype())}, {"shape", shape_text(value)}, {"values", preview(value)}};
    }
    elements.push_back(std::move(element));
  }
  return elements;
}

void write_sheet(const DatasetRequest &request, const Dataset &dataset, const Context &context) {
  const int64_t seed = request.preparation.seed;
  const int64_t component = find_images(dataset, seed);
  if (component < 0) throw std::runtime_error("no component of the dataset is recognized as an image");
  const int64_t wanted = request.first > 0 ? request.first : kImagesShown;
  const int64_t count = write_contact_sheet(dataset, seed, component, wanted, request.sheet, context);
  std::fprintf(stderr, "%s: the first %lld of '%s'\n", request.sheet.c_str(), static_cast<long long>(count),
               dataset.component_name(component).c_str());
}

}  // namespace

int inspect_dataset(const DatasetRequest &request) {
  Context context;
  tell_warnings(context);
  const Dataset dataset = open_dataset(request, context);
  const int64_t seed = request.preparation.seed;
  const int64_t shown = request.first >= 0 ? request.first : kElementsShown;
  if (request.as_json) {
    const json all = {{"format", format_of(request.source)},
                      {"cardinality", dataset.cardinality()},
                      {"spec", json::parse(dataset.spec())},
                      {"elements", element_json(dataset, shown, seed)}};
    std::printf("%s\n", all.dump(1, ' ', false, json::error_handler_t::replace).c_str());
  } else {
    std::printf("%s: %s\n", format_of(request.source).c_str(), cardinality_text(dataset.cardinality()).c_str());
    element_table(dataset, shown, seed).print();
  }
  if (!request.sheet.empty()) write_sheet(request, dataset, context);
  return EXIT_SUCCESS;
}

}  // namespace tutti::tool
