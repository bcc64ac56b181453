// SPDX-License-Identifier: Apache-2.0
#include "data/graph/byte_table.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "base/memory.h"

namespace tutti::impl::data {

using base::Result;
using base::Status;
using graph::Graph;
using graph::ValueId;

namespace {

constexpr int64_t kByteValues = 256;

// Ops that compute each element of the output from the elements at the same place.
bool is_elementwise(std::string_view op) {
  static constexpr std::string_view kOps[] = {
      "abs",     "add",           "cast",        "ceil",        "cos",           "div",          "elu",
      "equal",   "erf",           "exp",         "expm1",       "floor",         "floor_divide", "gelu",
      "greater", "greater_equal", "identity",    "is_finite",   "leaky_relu",    "less",         "less_equal",
      "log",     "log1p",         "logical_and", "logical_not", "logical_or",    "logical_xor",  "maximum",
      "minimum", "mod",           "mul",         "neg",         "not_equal",     "pow",          "reciprocal",
      "relu",    "round",         "rsqrt",       "select",      "sigmoid",       "sign",         "silu",
      "sin",     "softplus",      "sqrt",        "square",      "stop_gradient", "sub",          "tanh"};
  return std::find(std::begin(kOps), std::end(kOps), op) != std::end(kOps);
}

bool is_scalar_constant(const Graph &graph, ValueId value) {
  const graph::ValueInfo &info = graph.value(value);
  return info.producer != graph::kNoNode && graph.node(info.producer).op == "constant" &&
         graph::element_count(info.dims) == graph::Dim(1);
}

// The one input that `value` is an elementwise function of, by node of the input; nothing when there is none or more.
class Dependence {
 public:
  explicit Dependence(const Graph &graph) : graph_(graph) {}

  std::optional<ValueId> single_input(ValueId result) {
    std::vector<ValueId> open{result};
    std::optional<ValueId> found;
    while (!open.empty()) {
      const ValueId value = open.back();
      open.pop_back();
      if (!seen_.insert(value).second || is_scalar_constant(graph_, value)) continue;
      const graph::ValueInfo &info = graph_.value(value);
      if (info.producer == graph::kNoNode || info.dims != graph_.value(result).dims) return std::nullopt;
      const graph::Node &node = graph_.node(info.producer);
      if (node.op == "input") {
        if (found && *found != value) return std::nullopt;
        found = value;
      } else if (is_elementwise(node.op)) {
        for (const ValueId input : node.inputs)
          open.push_back(input);
      } else {
        return std::nullopt;
      }
    }
    return found;
  }

 private:
  const Graph &graph_;
  std::set<ValueId> seen_;
};

std::optional<int32_t> position_of_input(const GraphPlan &plan, ValueId value) {
  for (size_t i = 0; i < plan.inputs.size(); ++i) {
    if (plan.graph->input(plan.inputs[i].name) == value) return static_cast<int32_t>(i);
  }
  return std::nullopt;
}

// Memory for the ports of a function.
struct Ports {
  std::vector<base::AlignedMemory> memory;
  std::vector<void *> pointers;

  Status add(const std::vector<GraphPort> &ports) {
    for (const GraphPort &port : ports) {
      TUTTI_ASSIGN(base::AlignedMemory block, base::allocate_zeroed(static_cast<size_t>(port.bytes)));
      pointers.push_back(block.get());
      memory.push_back(std::move(block));
    }
    return Status();
  }
};

int64_t elements_of(const GraphPort &port) {
  int64_t count = 1;
  for (const int64_t extent : port.dims)
    count *= extent;
  return count;
}

// The smallest number of rows that holds all byte values, or 1 for a graph on elements.
int64_t rows_for_all_values(const GraphPlan &plan) {
  if (!plan.has_rows_form) return 1;
  int64_t smallest = kByteValues;
  for (const GraphPlan::Input &input : plan.inputs) {
    const graph::Dims row(input.dims.begin() + 1, input.dims.end());
    const int64_t elements = graph::element_count(row).evaluate(plan.bindings).value_or(1);
    smallest = std::min(smallest, std::max<int64_t>(elements, 1));
  }
  return (kByteValues + smallest - 1) / smallest;
}

// Runs the graph on all byte values, as many at a time as the ports hold, and keeps what comes out.
Status fill_tables(GraphFunction &function, int64_t rows, std::vector<ByteTable> &tables) {
  Ports inputs;
  Ports outputs;
  TUTTI_TRY(inputs.add(function.inputs()));
  TUTTI_TRY(outputs.add(function.outputs()));
  int64_t together = kByteValues;
  for (const GraphPort &port : function.outputs())
    together = std::min(together, elements_of(port));
  if (together == 0) return base::failed_precondition("no elements to run on");
  for (int64_t first = 0; first < kByteValues; first += together) {
    for (size_t i = 0; i < inputs.pointers.size(); ++i) {
      const GraphPort &port = function.inputs()[i];
      if (tensor::size_bytes(port.dtype) != 1) continue;
      auto *bytes = static_cast<uint8_t *>(inputs.pointers[i]);
      for (int64_t e = 0; e < elements_of(port); ++e) {
        const int64_t value = (first + e) % kByteValues;
        bytes[e] = static_cast<uint8_t>(port.dtype == tensor::DType::boolean ? value & 1 : value);
      }
    }
    TUTTI_TRY(function.run(inputs.pointers, outputs.pointers, {.rows = rows}));
    const int64_t count = std::min(together, kByteValues - first);
    for (size_t r = 0; r < tables.size(); ++r) {
      const int64_t bytes = tables[r].value_bytes;
      std::memcpy(tables[r].values.data() + first * bytes, outputs.pointers[r], static_cast<size_t>(count * bytes));
    }
  }
  return Status();
}

template <typename Value>
void look_up(const std::vector<std::byte> &values, const std::byte *input, int64_t count, std::byte *output) {
  Value table[kByteValues];
  std::memcpy(table, values.data(), sizeof(table));
  const auto *bytes = reinterpret_cast<const uint8_t *>(input);
  auto *target = reinterpret_cast<Value *>(output);
  for (int64_t i = 0; i < count; ++i)
    target[i] = table[bytes[i]];
}

}  // namespace

void ByteTable::apply(const std::byte *input_bytes, int64_t count, std::byte *output) const {
  switch (value_bytes) {
    case 1:
      return look_up<uint8_t>(values, input_bytes, count, output);
    case 2:
      return look_up<uint16_t>(values, input_bytes, count, output);
    case 4:
      return look_up<uint32_t>(values, input_bytes, count, output);
    default:
      return look_up<uint64_t>(values, input_bytes, count, output);
  }
}

Result<std::vector<ByteTable>> make_byte_tables(const GraphPlan &plan, GraphRunner &runner) {
  std::vector<ByteTable> tables;
  for (const std::string &name : plan.results) {
    const ValueId result = plan.graph->result(name);
    const std::optional<ValueId> input = Dependence(*plan.graph).single_input(result);
    const std::optional<int32_t> position = input ? position_of_input(plan, *input) : std::nullopt;
    const tensor::DType from = position ? plan.graph->value(*input).dtype : tensor::DType::f32;
    if (!position || tensor::size_bytes(from) != 1) return std::vector<ByteTable>();
    const auto bytes = static_cast<int64_t>(tensor::size_bytes(plan.graph->value(result).dtype));
    tables.push_back({*position, bytes, std::vector<std::byte>(static_cast<size_t>(kByteValues * bytes))});
  }
  // Other symbols than the rows have no value here.
  const int64_t rows = rows_for_all_values(plan);
  for (const std::string &symbol : graph::symbols_of(*plan.graph)) {
    if (symbol != graph::kBatchSymbol && !plan.bindings.contains(symbol)) return std::vector<ByteTable>();
  }
  graph::SymbolBindings bindings = plan.bindings;
  if (plan.has_rows_form) bindings.emplace(graph::kBatchSymbol, rows);
  TUTTI_ASSIGN(const std::unique_ptr<GraphFunction> function, runner.prepare(plan.graph, bindings));
  // A graph that fails on made-up values is simply run the ordinary way.
  if (!fill_tables(*function, rows, tables).ok()) tables.clear();
  return tables;
}

}  // namespace tutti::impl::data
