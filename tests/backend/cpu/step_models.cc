// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/step_models.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "base/philox.h"
#include "graph/autodiff.h"
#include "graph/builder.h"
#include "graph/serialize.h"

namespace tutti::testing {

using impl::backend::StateEntry;
using impl::base::Result;
using impl::base::Status;
using impl::graph::Attributes;
using impl::graph::GraphBuilder;
using impl::graph::ValueId;
using impl::tensor::DType;
namespace base = impl::base;
namespace graph = impl::graph;
namespace backend = impl::backend;

namespace {

class Network {
 public:
  explicit Network(StepModel &model) : model_(model) {}

  GraphBuilder b;
  std::vector<ValueId> weights;

  ValueId variable(const std::string &name, std::vector<int64_t> dims, double scale, double offset = 0) {
    model_.variables.push_back({name, dims, scale, offset});
    weights.push_back(b.state_read("weight/" + name, DType::f32, graph::to_dims(dims)));
    return weights.back();
  }

  ValueId dense(ValueId x, int64_t in, int64_t out, bool relu) {
    const std::string name = base::concat("dense", ++dense_count_);
    const ValueId w = variable(name + "/kernel", {in, out}, std::sqrt(6.0 / static_cast<double>(in + out)));
    const ValueId bias = variable(name + "/bias", {out}, 0);
    ValueId y = b.add(b.matmul(x, w), bias);
    count(static_cast<double>(in * out), dense_count_ > 1 || convolution_count_ > 0);
    return relu ? b.unary("relu", y) : y;
  }

  ValueId convolution(ValueId x, int64_t in, int64_t out, int64_t size, int64_t stride, int64_t groups, bool same,
                      bool bias) {
    const std::string name = base::concat("conv", ++convolution_count_);
    const double fan = static_cast<double>(size * size * in / groups);
    const ValueId w = variable(name + "/kernel", {size, size, in / groups, out}, std::sqrt(3.0 / fan));
    std::vector<ValueId> inputs = {x, w};
    if (bias) inputs.push_back(variable(name + "/bias", {out}, 0));
    Attributes attributes;
    attributes["stride"] = std::vector<int64_t>{stride, stride};
    attributes["groups"] = groups;
    attributes["padding"] = std::string(same ? "same" : "valid");
    const ValueId y = b.op("conv2d", inputs, attributes);
    const auto shape = graph::evaluate(b.dims(y), {{"batch", 1}});
    if (shape.ok()) count(fan * static_cast<double>((*shape)[1] * (*shape)[2] * out), convolution_count_ > 1);
    return y;
  }

  ValueId norm(ValueId x, int64_t channels) {
    const std::string name = base::concat("norm", ++norm_count_);
    const ValueId scale = variable(name + "/scale", {channels}, 0, 1);
    const ValueId offset = variable(name + "/offset", {channels}, 0);
    return b.op_n("batch_norm_training", {x, scale, offset}, {{"epsilon", 1e-5}}, 3)[0];
  }

  ValueId norm_relu(ValueId x, int64_t channels) { return b.unary("relu", norm(x, channels)); }

  ValueId residual_block(ValueId x, int64_t in, int64_t out, int64_t stride) {
    ValueId y = norm_relu(convolution(x, in, out, 3, stride, 1, true, false), out);
    y = norm(convolution(y, out, out, 3, 1, 1, true, false), out);
    if (in != out) x = norm(convolution(x, in, out, 1, stride, 1, true, false), out);
    return b.unary("relu", b.add(y, x));
  }

  ValueId separable(ValueId x, int64_t in, int64_t out, int64_t stride) {
    x = norm_relu(convolution(x, in, in, 3, stride, in, true, false), in);
    return norm_relu(convolution(x, in, out, 1, 1, 1, true, false), out);
  }

  ValueId flatten(ValueId x) {
    const graph::Dims &dims = b.dims(x);
    return b.reshape(x, {dims[0], dims[1] * dims[2] * dims[3]});
  }

 private:
  /// Forward, kernel gradient and, behind the first layer, input gradient.
  void count(double products, bool input_gradient) { model_.dense_flops += 2 * products * (input_gradient ? 3 : 2); }

  StepModel &model_;
  int dense_count_ = 0, convolution_count_ = 0, norm_count_ = 0;
};

ValueId build_a(Network &n, ValueId x, int64_t) { return n.dense(n.dense(x, 10, 16, true), 16, 2, false); }

ValueId build_b(Network &n, ValueId x, int64_t d) {
  x = n.dense(x, 784, 512 / d, true);
  return n.dense(n.dense(x, 512 / d, 256 / d, true), 256 / d, 10, false);
}

ValueId build_c(Network &n, ValueId x, int64_t d) {
  x = n.b.unary("relu", n.convolution(x, 1, 32 / d, 3, 1, 1, false, true));
  x = n.b.unary("relu", n.convolution(x, 32 / d, 64 / d, 3, 1, 1, false, true));
  x = n.b.op("max_pool2d", {x}, {{"window", std::vector<int64_t>{2, 2}}});
  x = n.dense(n.flatten(x), 12 * 12 * 64 / d, 128 / d, true);
  return n.dense(x, 128 / d, 10, false);
}

ValueId build_d(Network &n, ValueId x, int64_t d) {
  x = n.norm_relu(n.convolution(x, 3, 16 / d, 3, 1, 1, true, false), 16 / d);
  int64_t in = 16 / d;
  for (int64_t stage = 0; stage < 3; ++stage) {
    const int64_t out = (16 << stage) / d;
    for (int64_t block = 0; block < 3; ++block) {
      x = n.residual_block(x, in, out, stage > 0 && block == 0 ? 2 : 1);
      in = out;
    }
  }
  return n.dense(n.b.reduce_mean(x, {1, 2}), in, 10, false);
}

ValueId build_e(Network &n, ValueId x, int64_t d) {
  x = n.norm_relu(n.convolution(x, 3, 32 / d, 3, 1, 1, true, false), 32 / d);
  const int64_t channels[] = {32, 64, 128, 128, 256, 256, 512};
  const int64_t strides[] = {1, 2, 1, 2, 1, 2};
  for (size_t i = 0; i < 6; ++i)
    x = n.separable(x, channels[i] / d, channels[i + 1] / d, strides[i]);
  return n.dense(n.b.reduce_mean(x, {1, 2}), 512 / d, 10, false);
}

struct ModelEntry {
  const char *name;
  std::vector<int64_t> image;
  int64_t classes;
  ValueId (*build)(Network &, ValueId, int64_t);
};

const ModelEntry kModels[] = {
    {"A", {10}, 2, build_a},         {"B", {784}, 10, build_b},       {"C", {28, 28, 1}, 10, build_c},
    {"D", {32, 32, 3}, 10, build_d}, {"E", {32, 32, 3}, 10, build_e},
};

/// Forward and backward; the gradient of the mean loss goes to gradient/0/<variable>.
Status build_accumulate(StepModel &model, const ModelEntry &entry, int64_t width_divisor) {
  Network n(model);
  graph::Dims dims = {GraphBuilder::batch()};
  for (int64_t size : model.image)
    dims.push_back(size);
  const ValueId x = n.b.input("image", DType::f32, dims);
  const ValueId labels = n.b.input("label", DType::i64, {GraphBuilder::batch()});
  const ValueId logits = entry.build(n, x, width_divisor);
  const ValueId losses = n.b.op("sparse_softmax_cross_entropy", {logits, labels});
  const ValueId rows = n.b.op("reciprocal", {n.b.run_scalar("step_rows", DType::f32)});
  const ValueId loss = n.b.mul(n.b.reduce_sum(losses), rows);
  const ValueId targets[] = {loss};
  TUTTI_TRY(n.b.status());
  TUTTI_ASSIGN(const std::vector<ValueId> gradients, graph::gradients_or_zeros(n.b, targets, {}, n.weights));
  n.b.state_write(loss, "report/loss");
  for (size_t i = 0; i < gradients.size(); ++i) {
    n.b.state_write(gradients[i], "gradient/0/" + model.variables[i].name);
  }
  TUTTI_ASSIGN(model.accumulate, n.b.finish_graph());
  return Status();
}

Status build_finish(StepModel &model) {
  GraphBuilder b;
  const ValueId ok = b.op("all_finite", {b.state_read("report/loss", DType::f32, {})});
  const ValueId rate = b.constant(1e-3, DType::f32);
  const ValueId iteration = b.run_scalar("iteration", DType::i64);
  for (const StepVariable &variable : model.variables) {
    const graph::Dims flat = {graph::Dim::symbol("slice." + variable.name)};
    const auto read = [&](const std::string &prefix, const std::string &suffix) {
      return b.state_read(prefix + variable.name + suffix, DType::f32, flat);
    };
    const auto updated = b.op_n(
        "adam_update",
        {read("weight/", ""), read("gradient/0/", ""), read("slot/", "/m"), read("slot/", "/v"), rate, iteration, ok},
        {}, 3);
    b.state_write(updated[0], "weight/" + variable.name);
    b.state_write(updated[1], "slot/" + variable.name + "/m");
    b.state_write(updated[2], "slot/" + variable.name + "/v");
  }
  TUTTI_ASSIGN(model.finish, b.finish_graph());
  return Status();
}

int64_t elements_of(const std::vector<int64_t> &dims) {
  int64_t n = 1;
  for (int64_t size : dims)
    n *= size;
  return n;
}

}  // namespace

Result<StepModel> make_step_model(const std::string &name, int64_t width_divisor) {
  for (const ModelEntry &entry : kModels) {
    if (entry.name != name) continue;
    StepModel model;
    model.name = name;
    model.image = entry.image;
    model.classes = entry.classes;
    TUTTI_TRY(build_accumulate(model, entry, width_divisor));
    TUTTI_TRY(build_finish(model));
    return model;
  }
  return base::not_found("there is no model '", name, "'");
}

Status StepTrainer::plan_state(const StepModel &model) {
  const char *arena_names[] = {"weights", "slots", "partials", "report"};
  std::map<std::string, backend::LayoutProposal> layouts;
  // Twice: first without layouts, to ask for them.
  for (int round = 0; round < 2; ++round) {
    state_ = backend::StateTable();
    for (const char *name : arena_names)
      state_.add_arena(name);
    int64_t offsets[4] = {0, 0, 0, 0};
    const auto add = [&](std::string name, int32_t arena, const StepVariable &variable) -> Status {
      const auto found = layouts.find("weight/" + variable.name);
      StateEntry entry;
      entry.name = std::move(name);
      entry.arena = arena;
      entry.offset = offsets[arena];
      entry.dims = variable.dims;
      entry.storage_bytes = elements_of(variable.dims) * 4;
      if (found != layouts.end()) {
        entry.layout = found->second.layout;
        entry.storage_bytes = found->second.storage_bytes;
      }
      bindings_["slice." + variable.name] = entry.storage_bytes / 4;
      offsets[arena] += (entry.storage_bytes + 63) / 64 * 64;
      return state_.add(entry);
    };
    for (const StepVariable &variable : model.variables) {
      TUTTI_TRY(add("weight/" + variable.name, 0, variable));
      TUTTI_TRY(add("slot/" + variable.name + "/m", 1, variable));
      TUTTI_TRY(add("slot/" + variable.name + "/v", 1, variable));
      TUTTI_TRY(add("gradient/0/" + variable.name, 2, variable));
    }
    TUTTI_TRY(state_.add({.name = "report/loss", .arena = 3, .storage_bytes = 4}));
    offsets[3] = 64;
    if (round == 0 && backend_->proposes_layouts()) {
      backend::CompileRequest request{&accumulate_text_, bindings_, &state_, level_};
      TUTTI_ASSIGN(const auto proposals, backend::plan_layouts(*device_, request));
      for (const backend::LayoutProposal &proposal : proposals)
        layouts[proposal.name] = proposal;
    } else {
      for (int64_t bytes : offsets) {
        TUTTI_ASSIGN(backend::Buffer buffer, device_->allocate(bytes));
        TUTTI_TRY(buffer.fill_zero(0, bytes));
        arenas_.push_back(std::move(buffer));
      }
      return Status();
    }
  }
  return Status();
}

Status StepTrainer::fill(const StepModel &model) {
  base::RandomStream random(base::RandomKey::of(7, 1, 0));
  const auto uniform = [&] { return static_cast<double>(base::uniform_float(random.next())); };
  for (const StepVariable &variable : model.variables) {
    std::vector<float> values(static_cast<size_t>(elements_of(variable.dims)));
    for (float &value : values)
      value = static_cast<float>((2 * uniform() - 1) * variable.scale + variable.offset);
    const StateEntry &entry = *state_.find("weight/" + variable.name);
    char *to = static_cast<char *>(arenas_[0].host_pointer()) + entry.offset;
    TUTTI_TRY(backend_->pack(entry.layout, DType::f32, variable.dims, values.data(), to, entry.storage_bytes));
  }
  float *images = static_cast<float *>(images_.host_pointer());
  for (int64_t i = 0; i < images_.size_bytes() / 4; ++i)
    images[i] = static_cast<float>(uniform() * 2 - 1);
  int64_t *labels = static_cast<int64_t *>(labels_.host_pointer());
  for (int64_t i = 0; i < batch_; ++i)
    labels[i] = random.below(model.classes);
  return Status();
}

Result<StepTrainer> StepTrainer::create(backend::BackendRef backend, const StepModel &model, int64_t batch,
                                        backend::Level level, int32_t flags) {
  StepTrainer t;
  t.backend_ = std::move(backend);
  t.batch_ = batch;
  t.level_ = level;
  TUTTI_ASSIGN(t.device_, t.backend_->open_device(0));
  TUTTI_ASSIGN(t.stream_, t.device_->create_stream());
  t.accumulate_text_ = graph::to_json_text(model.accumulate);
  t.finish_text_ = graph::to_json_text(model.finish);
  t.bindings_["batch"] = batch;
  TUTTI_TRY(t.plan_state(model));
  TUTTI_ASSIGN(t.images_, t.device_->allocate(batch * elements_of(model.image) * 4));
  TUTTI_ASSIGN(t.labels_, t.device_->allocate(batch * 8));
  TUTTI_TRY(t.fill(model));
  backend::CompileRequest request{&t.accumulate_text_, t.bindings_, &t.state_, level};
  request.flags = flags;
  TUTTI_ASSIGN(t.accumulate_, backend::Executable::compile(*t.device_, request));
  request.graph_text = &t.finish_text_;
  TUTTI_ASSIGN(t.finish_, backend::Executable::compile(*t.device_, request));
  const int64_t bytes =
      std::max(t.accumulate_->description().workspace_bytes, t.finish_->description().workspace_bytes);
  TUTTI_ASSIGN(t.workspace_, t.device_->allocate(bytes));
  // Whoever reads what nobody wrote shall notice.
  std::fill_n(static_cast<char *>(t.workspace_.host_pointer()), bytes, '\xff');
  std::vector<void *> arenas;
  for (const backend::Buffer &arena : t.arenas_)
    arenas.push_back(arena.device_pointer());
  TUTTI_ASSIGN(t.accumulate_program_, t.accumulate_->bind(*t.device_, arenas, t.workspace_.device_pointer()));
  TUTTI_ASSIGN(t.finish_program_, t.finish_->bind(*t.device_, arenas, t.workspace_.device_pointer()));
  t.scalars_.set(backend::RunScalar::local_rows, batch).set(backend::RunScalar::step_rows, batch);
  return t;
}

Status StepTrainer::step() {
  const auto &description = accumulate_->description();
  const void *inputs[2] = {nullptr, nullptr};
  inputs[description.input_index("image")] = images_.device_pointer();
  inputs[description.input_index("label")] = labels_.device_pointer();
  TUTTI_TRY(accumulate_program_.run(0, {inputs, nullptr, scalars_.data()}, stream_));
  TUTTI_TRY(finish_program_.run(0, {nullptr, nullptr, scalars_.data()}, stream_));
  scalars_.set(backend::RunScalar::iteration, scalars_.get(backend::RunScalar::iteration) + 1);
  return Status();
}

double StepTrainer::loss() const { return static_cast<double>(*static_cast<const float *>(arenas_[3].host_pointer())); }

Result<std::vector<float>> StepTrainer::values(const std::string &prefix, const std::string &name) const {
  const StateEntry *entry = state_.find(prefix + name);
  if (entry == nullptr) return base::not_found("there is no entry '", prefix, name, "'");
  std::vector<float> values(static_cast<size_t>(elements_of(entry->dims)));
  const char *from =
      static_cast<const char *>(arenas_[static_cast<size_t>(entry->arena)].host_pointer()) + entry->offset;
  TUTTI_TRY(backend_->unpack(entry->layout, DType::f32, entry->dims, from, entry->storage_bytes, values.data()));
  return values;
}

int64_t StepTrainer::workspace_bytes() const { return workspace_.size_bytes(); }

}  // namespace tutti::testing
