// SPDX-License-Identifier: Apache-2.0
//
// GraphBuilder: builds graphs and models, checking every node as it comes.
//
//   GraphBuilder b;
//   ValueId x = b.feature("image", tensor::DType::f32, {b.batch(), 784});
//   b.push_scope("dense");
//   ValueId w = b.variable("kernel", tensor::DType::f32, {784, 10}, {"glorot_uniform", {}});   // "dense/kernel"
//   ValueId logits = b.matmul(x, w);                                                           // "dense/matmul"
//   b.pop_scope();
//   b.set_output("logits", logits);
//   Result<Model> model = b.finish();
//
// Errors are deferred: a failing call returns kNoValue, which later calls pass through silently; the first error, with
// the scoped node name, the argument and the shapes, is kept and returned by finish(). status() shows it at any time.
//
// Regions are built by lambdas; a value of an enclosing scope used inside becomes a capture: a further input of the
// node and parameter of the region.
//
// Threads: one builder belongs to one thread at a time.
#ifndef TUTTI_GRAPH_BUILDER_H_
#define TUTTI_GRAPH_BUILDER_H_

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "graph/graph.h"
#include "graph/model.h"
#include "graph/op_registry.h"

namespace tutti::impl::graph {

/// Optional settings of a variable.
struct VariableOptions {
  bool trainable = true;
  Aggregation aggregation = Aggregation::trained;
  bool automatic_name = false;
};

/// On the values of a variable.
struct Penalty {
  ValueId variable = kNoValue;
  double l1 = 0, l2 = 0;
};

struct RuleSettings;

class GraphBuilder {
 public:
  using Values = std::vector<ValueId>;
  /// Builds a region from its parameters, returns its results.
  using RegionFunction = std::function<Values(GraphBuilder &, const Values &parameters)>;

  GraphBuilder();
  /// Goes on building a graph, for example to add gradients to it.
  explicit GraphBuilder(Graph graph);

  // ---- errors ----
  const base::Status &status() const { return status_; }
  bool ok() const { return status_.ok(); }
  /// Records an error unless there is one already; returns kNoValue.
  ValueId fail(base::Status status);

  // ---- names ----
  /// Scope names are joined with '/'. A name given twice in the same scope is a different scope the second time when
  /// `unique` is set ("dense", "dense_1"), else the same one. Returns the full name of the scope.
  std::string push_scope(std::string_view scope_name, bool unique = false);
  /// A scope by its full name, whatever the current one is.
  void push_root_scope(std::string full_name) { scopes_.push_back(std::move(full_name)); }
  void pop_scope();
  const std::string &scope() const { return scopes_.back(); }
  /// scope + '/' + kind, with _1, _2, ... from the second time on.
  std::string unique_name(std::string_view kind);

  // ---- nodes ----
  static Dim batch() { return Dim::symbol(kBatchSymbol); }
  /// A node of the newest revision with one output.
  ValueId op(std::string_view op_name, std::initializer_list<ValueId> inputs, Attributes attributes = {}) {
    return op(op_name, Values(inputs), std::move(attributes));
  }
  ValueId op(std::string_view op_name, const Values &inputs, Attributes attributes = {});
  /// Any number of outputs; all kNoValue after an error. `outputs` is their number when an error hides it.
  Values op_n(std::string_view op_name, const Values &inputs, Attributes attributes = {}, size_t outputs = 0);
  /// A node in full: revision 0 = newest, empty scope_name and zero stable_id = made here; regions must be empty.
  Values add_node(Node node);
  /// A copy of a node with other inputs, scope name and stable id kept (so random ops draw the same values).
  Values copy_node(const Graph &source, const Node &node, const Values &inputs);

  const Graph &graph() const { return graph_; }
  /// The region under construction; the top one outside of region functions.
  const Region &region() const { return frames_.back().region; }
  const ValueInfo &info(ValueId value) const { return graph_.value(value); }
  /// Shape of a value; empty for kNoValue.
  const Dims &dims(ValueId value) const;
  tensor::DType dtype(ValueId value) const;
  size_t rank(ValueId value) const { return dims(value).size(); }
  void set_value_name(ValueId value, std::string name);

  // ---- leaves ----
  ValueId input(std::string_view name, tensor::DType dtype, Dims dims);
  ValueId constant(tensor::Tensor value);
  /// A scalar constant of any number dtype or boolean.
  ValueId constant(double value, tensor::DType dtype);
  ValueId run_scalar(std::string_view kind, tensor::DType dtype);
  ValueId state_read(std::string_view entry, tensor::DType dtype, Dims dims);
  void state_write(ValueId value, std::string_view entry, std::string_view mode = "write");

  // ---- frequent ops ----
  ValueId add(ValueId a, ValueId b) { return op("add", {a, b}); }
  ValueId sub(ValueId a, ValueId b) { return op("sub", {a, b}); }
  ValueId mul(ValueId a, ValueId b) { return op("mul", {a, b}); }
  ValueId div(ValueId a, ValueId b) { return op("div", {a, b}); }
  ValueId neg(ValueId x) { return op("neg", {x}); }
  /// x times a constant of the dtype of x.
  ValueId scale(ValueId x, double factor);
  ValueId add_scalar(ValueId x, double summand);
  ValueId unary(std::string_view op_name, ValueId x) { return op(op_name, {x}); }
  ValueId cast(ValueId x, tensor::DType dtype);  // x itself when it has that dtype
  ValueId select(ValueId condition, ValueId a, ValueId b) { return op("select", {condition, a, b}); }
  ValueId matmul(ValueId a, ValueId b, bool transpose_a = false, bool transpose_b = false);
  ValueId reduce(std::string_view op_name, ValueId x, std::vector<int64_t> axes, bool keep_dims = false);
  ValueId reduce_sum(ValueId x, std::vector<int64_t> axes = {}, bool keep_dims = false);
  /// Expanded when an axis carries the batch: the mean over the rows of the whole step.
  ValueId reduce_mean(ValueId x, std::vector<int64_t> axes = {}, bool keep_dims = false);
  ValueId reshape(ValueId x, Dims dims);  // x itself when it has those dims
  ValueId transpose(ValueId x, std::vector<int64_t> permutation);
  ValueId broadcast_to(ValueId x, Dims dims);  // x itself when it has those dims
  ValueId concat(const Values &inputs, int64_t axis);
  ValueId slice(ValueId x, Dims begin, Dims size, std::vector<int64_t> strides = {});
  /// `parts` equal slices along an axis.
  Values split(ValueId x, int64_t parts, int64_t axis);
  /// x reduced and reshaped to `dims`, undoing a broadcast from `dims`.
  ValueId sum_to(ValueId x, const Dims &dims);

  // ---- regions ----
  Values call(const Values &inputs, const RegionFunction &body);
  /// backward(inputs..., outputs..., output gradients...) returns one gradient for each input. No captures.
  Values custom_gradient(const Values &inputs, const RegionFunction &forward, const RegionFunction &backward);
  /// body(states..., one element of each sequence...) returns new states..., elements of stacked results...
  Values scan(const Values &states, const Values &sequences, const RegionFunction &body, int64_t axis = 0,
              bool reverse = false);
  Values cond(ValueId predicate, const RegionFunction &then_region, const RegionFunction &else_region);
  /// The same piece by piece: the op, its regions in order, its outputs. Every begin has its end, after an error too.
  void begin_op(std::string_view op_name, Values inputs, Attributes attributes = {});
  /// The parameters of its next region; none after an error.
  Values begin_region();
  void end_region(const Values &results);
  Values end_op();

  // ---- models ----
  /// Inputs with rows on axis 0; a name used twice is an error.
  ValueId feature(std::string_view name, tensor::DType dtype, Dims dims);
  ValueId label(std::string_view name, tensor::DType dtype, Dims dims);
  /// Full name = scope + '/' + name. A name used twice is an error.
  ValueId variable(std::string_view name, tensor::DType dtype, std::vector<int64_t> dims,
                   InitializerSpec initializer = {}, VariableOptions options = {});
  /// The value of a variable made before, or kNoValue without an error.
  ValueId find_variable(std::string_view full_name) const;
  /// Freezes or frees the variables made so far whose full name matches a pattern with * and ?; those without a
  /// gradient of their own (running statistics) stay as they are.
  void set_trainable(std::string_view pattern, bool trainable);
  /// Each update keeps the variable to it; there may be one. Axes may be negative, or left out.
  void constrain(ValueId variable, ConstraintSpec constraint);
  /// The same of trained variables whose full name matches a pattern with * and ?, made before or after. finish()
  /// refuses a pattern that matches none.
  void add_constraint(std::string pattern, ConstraintSpec constraint);
  /// The variable, made before, begins with these values: of its dtype and shape.
  void set_initial_value(std::string_view variable_full_name, const tensor::Tensor &value);
  void set_loss(ValueId loss);
  /// finish() adds l1 * sum |variable| + l2 * sum variable^2 to the loss, if there is one.
  void add_penalty(const Penalty &penalty);
  void set_output(std::string_view name, ValueId value);
  void add_metric(std::string_view name, ValueId value);
  /// A metric for each element of one that is there, a tensor [classes] or [classes, classes]: "metric/class", or
  /// "metric/class of the row/class of the column".
  void name_classes(std::string_view metric, const std::vector<std::string> &classes);
  /// The name is no metric's; `has_rows` and `is_known` are found out here.
  void add_summary(SummarySpec summary);
  /// The variable gets this value at the end of a training step.
  void assign(std::string_view variable_full_name, ValueId new_value);
  /// The rule of training; may be given before or after set_gradients and set_clip_global_norm.
  void set_train(TrainSpec train);
  /// The optimizer updates these variables with these gradients, in place of all trainable ones with the loss's.
  /// Shaped like their variables, which must be trainable; those that are not in the list keep their values. Once.
  void set_gradients(const std::vector<std::pair<std::string, ValueId>> &gradients);
  void set_clip_global_norm(double norm);
  /// Variables that are updated otherwise; may be given before or after set_train, and before the variables are made.
  /// finish() refuses a group that has none.
  void add_parameter_group(ParameterGroup group);
  /// A f32 scalar that the host can set while training.
  ValueId host_scalar(std::string_view name, double initial);
  /// What is being built; loss, outputs and variables as far as they are known.
  const Model &model() const { return model_; }

  // ---- end ----
  /// Named result of a plain graph.
  void set_result(std::string_view name, ValueId value);
  /// The graph, or the first error. The builder is empty afterwards.
  base::Result<Graph> finish_graph();
  /// The model, or the first error. Checks that outputs carry rows and that loss and metrics are scalars.
  base::Result<Model> finish();

 private:
  // A region under construction, and what it captured from the enclosing one.
  struct Frame {
    int32_t id = 0;
    Region region;
    bool captures_allowed = true;
    std::string owner;                    // op that will own the region, for messages
    std::vector<ValueId> captures;        // values of the enclosing frame, in the order of their parameters
    std::map<ValueId, ValueId> captured;  // any outer value → its parameter here
  };
  struct BuiltRegion {
    Region region;
    std::vector<ValueId> captures;
  };
  /// An op between begin_op() and end_op().
  struct OpenOp {
    Node node;
    std::vector<BuiltRegion> regions{};
  };
  /// Its region between begin_region() and end_region().
  struct OpenRegion {
    size_t depth = 0;  // of its frame
    std::vector<std::string> scopes;
  };

  Values insert(Node node, size_t outputs, size_t frame);
  bool resolve_inputs(const OpDefinition &definition, Node &node, size_t frame);
  void name_node(Node &node);
  ValueId capture(ValueId value, size_t frame);
  ValueId add_value(ValueInfo info, int32_t frame_id);
  ValueId expand_batch_mean(ValueId x, const Attributes &attributes);
  void push_frame(std::string_view owner, bool captures_allowed);
  std::vector<ValueInfo> next_parameters(const OpenOp &op);
  void run_region(const RegionFunction &function);
  void join_captures(std::vector<BuiltRegion> &branches);
  std::vector<ValueInfo> infos(const Values &values) const;
  Region copy_region(const Graph &source, const Region &region, std::string_view owner);
  ValueId model_input(std::vector<InputSpec> &list, std::string_view role, std::string_view name, tensor::DType dtype,
                      Dims dims);
  bool check_top(std::string_view what, ValueId value);
  void check_forms();
  bool check_gradient(const std::string &variable_name, ValueId gradient);
  bool check_rate(std::string_view what, ValueId rate);
  void keep_rule(NodeId id);
  void add_rule(NodeId id, const RuleSettings &settings);
  void settle_groups();
  void settle_penalties();
  void settle_constraints();
  void constrain_variable(VariableSpec &variable, ConstraintSpec constraint);
  VariableSpec *require_variable(std::string_view purpose, std::string_view full_name);
  bool check_free(std::string_view what, std::string_view name, bool taken);
  bool check_summary(const SummarySpec &summary);
  bool check_classes(const std::string &what, ValueId value, const std::vector<std::string> &classes);

  Graph graph_;
  Model model_;
  std::vector<Penalty> penalties_;
  std::vector<std::pair<std::string, ConstraintSpec>> constraints_;  // by pattern
  base::Status status_;
  std::vector<std::string> scopes_{""};
  std::map<std::string, int64_t, std::less<>> name_counts_;
  std::set<std::string, std::less<>> names_;
  std::vector<int32_t> frame_of_value_;  // id of the frame a value belongs to; -1 = of a finished region
  std::vector<Frame> frames_;            // enclosing regions under construction, the top region first
  int32_t frame_count_ = 0;
  std::vector<OpenOp> open_ops_;          // the innermost last
  std::vector<OpenRegion> open_regions_;  // likewise
};

}  // namespace tutti::impl::graph

#endif  // TUTTI_GRAPH_BUILDER_H_
