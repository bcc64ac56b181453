// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/step_networks.h"

#include <bit>
#include <cmath>
#include <string_view>
#include <utility>

#include "graph/autodiff.h"
#include "graph/builder.h"
#include "graph/rewrite/rewrites.h"

namespace tutti::testing {

using impl::base::Result;
using impl::base::Status;
using impl::graph::Attributes;
using impl::graph::GraphBuilder;
using impl::graph::ValueId;
using impl::tensor::DType;
namespace base = impl::base;
namespace graph = impl::graph;

namespace {

constexpr double kEpsilon = 1e-5;
constexpr double kMomentum = 0.9;

/// Layers with their variables, counted by kind; one for each graph of a model.
class Network {
 public:
  Network(StepModel &model, bool training) : model_(model), training_(training) {}

  GraphBuilder b;
  /// Trained variables as the graph reads them.
  std::vector<ValueId> weights;

  ValueId dense(ValueId x, int64_t in, int64_t out, bool relu) {
    const std::string name = base::concat("dense", ++dense_count_);
    const ValueId w = variable({name + "/kernel", {in, out}, std::sqrt(6.0 / static_cast<double>(in + out))});
    const ValueId bias = variable({name + "/bias", {out}});
    const ValueId y = b.add(b.matmul(x, w), bias);
    count(positions_of(x) * static_cast<double>(in * out), dense_count_ > 1 || convolution_count_ > 0);
    return relu ? b.unary("relu", y) : y;
  }

  struct Convolution {
    int64_t in = 1, out = 1, size = 3, stride = 1, groups = 1;
    bool padded = true, bias = false;
  };

  ValueId convolution(ValueId x, const Convolution &c) {
    const std::string name = base::concat("conv", ++convolution_count_);
    const double fan = static_cast<double>(c.size * c.size * c.in / c.groups);
    std::vector<ValueId> inputs = {
        x, variable({name + "/kernel", {c.size, c.size, c.in / c.groups, c.out}, std::sqrt(3.0 / fan)})};
    if (c.bias) inputs.push_back(variable({name + "/bias", {c.out}}));
    Attributes attributes;
    attributes["stride"] = std::vector<int64_t>{c.stride, c.stride};
    attributes["groups"] = c.groups;
    attributes["padding"] = std::string(!c.padded ? "valid" : c.stride == 1 ? "same" : "explicit");
    if (c.padded && c.stride > 1) attributes["pads"] = std::vector<int64_t>(4, c.size / 2);
    const ValueId y = b.op("conv2d", inputs, attributes);
    const auto shape = graph::evaluate(b.dims(y), {{"batch", 1}});
    if (shape.ok()) count(fan * static_cast<double>((*shape)[1] * (*shape)[2] * c.out), convolution_count_ > 1);
    return y;
  }

  ValueId norm(ValueId x, int64_t channels) {
    const std::string name = base::concat("norm", ++norm_count_);
    const ValueId scale = variable({name + "/scale", {channels}, 0.2, 1});
    const ValueId offset = variable({name + "/offset", {channels}});
    const ValueId mean = variable({name + "/mean", {channels}, 0.1, 0, false});
    const ValueId variance = variable({name + "/variance", {channels}, 0.2, 1, false});
    if (!training_) return b.op("batch_norm_inference", {x, scale, offset, mean, variance}, {{"epsilon", kEpsilon}});
    const auto y = b.op_n("batch_norm_training", {x, scale, offset}, {{"epsilon", kEpsilon}}, 3);
    keep_running(name + "/mean", mean, y[1]);
    keep_running(name + "/variance", variance, y[2]);
    return y[0];
  }

  ValueId norm_relu(ValueId x, int64_t channels) { return b.unary("relu", norm(x, channels)); }

  /// Convolution, normalisation and, with `relu`, its cut.
  ValueId unit(ValueId x, const Convolution &c, bool relu = true) {
    const ValueId y = norm(convolution(x, c), c.out);
    return relu ? b.unary("relu", y) : y;
  }

  ValueId basic_block(ValueId x, int64_t in, int64_t out, int64_t stride) {
    ValueId y = unit(x, {.in = in, .out = out, .stride = stride});
    y = unit(y, {.in = out, .out = out}, false);
    if (in != out) x = unit(x, {.in = in, .out = out, .size = 1, .stride = stride}, false);
    return b.unary("relu", b.add(y, x));
  }

  /// `width` is that of the 3x3 convolution; four times as many channels leave.
  ValueId bottleneck(ValueId x, int64_t in, int64_t width, int64_t stride) {
    ValueId y = unit(x, {.in = in, .out = width, .size = 1});
    y = unit(y, {.in = width, .out = width, .stride = stride});
    y = unit(y, {.in = width, .out = 4 * width, .size = 1}, false);
    if (in != 4 * width) x = unit(x, {.in = in, .out = 4 * width, .size = 1, .stride = stride}, false);
    return b.unary("relu", b.add(y, x));
  }

  ValueId separable(ValueId x, int64_t in, int64_t out, int64_t stride) {
    x = unit(x, {.in = in, .out = in, .stride = stride, .groups = in});
    return unit(x, {.in = in, .out = out, .size = 1});
  }

  ValueId table(int64_t words, int64_t channels, double scale) {
    return variable({"embedding/table", {words, channels}, scale});
  }

  /// Rows of a table, [..., channels], of which the first `drawn` are picked by numbers in [-1, 1). Where `drawn` is a
  /// power of two nothing is rounded.
  ValueId embedding(ValueId x, ValueId table, int64_t drawn) {
    const double half = static_cast<double>(drawn) / 2;
    const ValueId indices = b.cast(b.unary("floor", b.add_scalar(b.scale(x, half), half)), DType::i64);
    return b.op("gather", {table, indices});
  }

  ValueId places(ValueId x, int64_t length, int64_t channels, double scale) {
    return b.add(x, variable({"embedding/places", {length, channels}, scale}));
  }

  ValueId layer_norm(ValueId x, int64_t channels) {
    const std::string name = base::concat("norm", ++norm_count_);
    const ValueId scale = variable({name + "/scale", {channels}, 0.2, 1});
    return b.op_n("layer_norm", {x, scale, variable({name + "/offset", {channels}})}, {}, 3)[0];
  }

  /// Attention of x [rows, length, channels] to what of itself comes no later.
  ValueId causal_attention(ValueId x, int64_t length, int64_t channels, int64_t heads) {
    const auto part = [&] {
      return b.reshape(dense(x, channels, channels, false), {GraphBuilder::batch(), length, heads, channels / heads});
    };
    const ValueId queries = part(), keys = part(), values = part();
    const ValueId y = b.op_n("attention", {queries, keys, values}, {{"causal", true}}, 2)[0];
    count(static_cast<double>(length * length * channels), true);  // two products, half of each
    return dense(b.reshape(y, {GraphBuilder::batch(), length, channels}), channels, channels, false);
  }

  /// Attention of x [rows, length, channels] to itself, in parts.
  ValueId composed_attention(ValueId x, int64_t length, int64_t channels, int64_t heads) {
    const int64_t size = channels / heads;
    const auto part = [&](bool turned) {
      const ValueId y = b.reshape(dense(x, channels, channels, false), {GraphBuilder::batch(), length, heads, size});
      return b.transpose(y, turned ? std::vector<int64_t>{0, 2, 3, 1} : std::vector<int64_t>{0, 2, 1, 3});
    };
    const ValueId queries = part(false), keys = part(true), values = part(false);
    const ValueId scores = b.scale(b.matmul(queries, keys), 1 / std::sqrt(static_cast<double>(size)));
    const ValueId mixed = b.transpose(b.matmul(b.op("softmax", {scores}), values), {0, 2, 1, 3});
    return dense(b.reshape(mixed, {GraphBuilder::batch(), length, channels}), channels, channels, false);
  }

  /// Long short-term memory (Hochreiter and Schmidhuber, 1997, with forget gates) over x [rows, length, channels]: the
  /// outputs of all positions. Gates in the order input, forget, cell, output. Two biases, as in PyTorch.
  ValueId lstm(ValueId x, int64_t in, int64_t units) {
    const std::string name = base::concat("lstm", ++lstm_count_);
    const double scale = 1 / std::sqrt(static_cast<double>(units));
    const ValueId kernel = variable({name + "/kernel", {in, 4 * units}, scale});
    const ValueId recurrent = variable({name + "/recurrent_kernel", {units, 4 * units}, scale});
    ValueId gates = b.add(b.matmul(x, kernel), variable({name + "/bias", {4 * units}, scale}));
    gates = b.add(gates, variable({name + "/recurrent_bias", {4 * units}, scale}));
    count(positions_of(x) * static_cast<double>((in + units) * 4 * units), lstm_count_ > 1);
    const graph::Dims dims = {GraphBuilder::batch(), units};
    const ValueId zeros = b.broadcast_to(b.constant(0, DType::f32), dims);
    const auto body = [&](GraphBuilder &at, const std::vector<ValueId> &v) {
      const ValueId all = at.add(v[2], at.matmul(v[0], recurrent));
      const auto part = [&](const char *activation, int64_t index) {
        return at.unary(activation, at.slice(all, {0, index * units}, dims));
      };
      const ValueId i = part("sigmoid", 0), f = part("sigmoid", 1), g = part("tanh", 2), o = part("sigmoid", 3);
      const ValueId c = at.add(at.mul(f, v[1]), at.mul(i, g));
      const ValueId h = at.mul(o, at.unary("tanh", c));
      // What the backward pass need not make again.
      return training_ ? std::vector<ValueId>{h, c, h, v[1], i, f, g, o} : std::vector<ValueId>{h, c, h};
    };
    return b.scan({zeros, zeros}, {gates}, body, 1)[2];
  }

  /// Logits of the words of a table.
  ValueId words_of(ValueId x, ValueId table) {
    const graph::Dims &dims = b.dims(table);
    count(positions_of(x) * static_cast<double>(dims[0].constant() * dims[1].constant()), true);
    return b.matmul(x, table, false, true);
  }

  ValueId flatten(ValueId x) {
    const graph::Dims &dims = b.dims(x);
    return b.reshape(x, {dims[0], dims[1] * dims[2] * dims[3]});
  }

  /// Running statistics as they are after the step.
  const std::vector<std::pair<std::string, ValueId>> &running() const { return running_; }

 private:
  /// Of one row of the batch.
  double positions_of(ValueId x) const {
    const auto shape = graph::evaluate(b.dims(x), {{"batch", 1}});
    double positions = 1;
    for (size_t i = 0; shape.ok() && i + 1 < shape->size(); ++i)
      positions *= static_cast<double>((*shape)[i]);
    return positions;
  }

  ValueId variable(const StepVariable &variable) {
    if (training_) model_.variables.push_back(variable);
    const ValueId value = b.state_read("weight/" + variable.name, DType::f32, graph::to_dims(variable.dims));
    if (variable.trained) weights.push_back(value);
    return value;
  }

  void keep_running(const std::string &name, ValueId before, ValueId batch) {
    running_.emplace_back("weight/" + name, b.add(b.scale(before, kMomentum), b.scale(batch, 1 - kMomentum)));
  }

  /// Forward, kernel gradient and, behind the first layer, input gradient.
  void count(double products, bool input_gradient) {
    if (!training_) return;
    model_.forward_flops += 2 * products;
    model_.dense_flops += 2 * products * (input_gradient ? 3 : 2);
  }

  StepModel &model_;
  bool training_;
  int dense_count_ = 0, convolution_count_ = 0, norm_count_ = 0, lstm_count_ = 0;
  std::vector<std::pair<std::string, ValueId>> running_;
};

ValueId build_toy(Network &n, ValueId x, int64_t) { return n.dense(n.dense(x, 10, 16, true), 16, 2, false); }

ValueId build_mlp(Network &n, ValueId x, int64_t d) {
  x = n.dense(x, 784, 512 / d, true);
  return n.dense(n.dense(x, 512 / d, 256 / d, true), 256 / d, 10, false);
}

ValueId build_cnn(Network &n, ValueId x, int64_t d) {
  x = n.b.unary("relu", n.convolution(x, {.in = 1, .out = 32 / d, .padded = false, .bias = true}));
  x = n.b.unary("relu", n.convolution(x, {.in = 32 / d, .out = 64 / d, .padded = false, .bias = true}));
  x = n.b.op("max_pool2d", {x}, {{"window", std::vector<int64_t>{2, 2}}});
  x = n.dense(n.flatten(x), 12 * 12 * 64 / d, 128 / d, true);
  return n.dense(x, 128 / d, 10, false);
}

/// Stages of basic blocks behind a 3x3 stem; each stage but the first halves the image and doubles the channels.
ValueId build_basic_resnet(Network &n, ValueId x, int64_t width, int64_t stages, int64_t blocks) {
  x = n.unit(x, {.in = 3, .out = width});
  int64_t in = width;
  for (int64_t stage = 0; stage < stages; ++stage) {
    for (int64_t block = 0; block < blocks; ++block) {
      const int64_t out = width << stage;
      x = n.basic_block(x, in, out, stage > 0 && block == 0 ? 2 : 1);
      in = out;
    }
  }
  return n.dense(n.b.reduce_mean(x, {1, 2}), in, 10, false);
}

ValueId build_resnet20(Network &n, ValueId x, int64_t d) { return build_basic_resnet(n, x, 16 / d, 3, 3); }

ValueId build_resnet18(Network &n, ValueId x, int64_t d) { return build_basic_resnet(n, x, 64 / d, 4, 2); }

ValueId build_resnet50(Network &n, ValueId x, int64_t d) {
  x = n.unit(x, {.in = 3, .out = 64 / d, .size = 7, .stride = 2});
  x = n.b.op("max_pool2d", {x},
             {{"window", std::vector<int64_t>{3, 3}},
              {"stride", std::vector<int64_t>{2, 2}},
              {"padding", std::string("explicit")},
              {"pads", std::vector<int64_t>(4, 1)}});
  int64_t in = 64 / d;
  const int64_t blocks[] = {3, 4, 6, 3};
  for (int64_t stage = 0; stage < 4; ++stage) {
    const int64_t width = (64 << stage) / d;
    for (int64_t block = 0; block < blocks[stage]; ++block) {
      x = n.bottleneck(x, in, width, stage > 0 && block == 0 ? 2 : 1);
      in = 4 * width;
    }
  }
  return n.dense(n.b.reduce_mean(x, {1, 2}), in, 1000, false);
}

ValueId build_separable(Network &n, ValueId x, int64_t d) {
  x = n.unit(x, {.in = 3, .out = 32 / d});
  const int64_t channels[] = {32, 64, 128, 128, 256, 256, 512};
  const int64_t strides[] = {1, 2, 1, 2, 1, 2};
  for (size_t i = 0; i < 6; ++i)
    x = n.separable(x, channels[i] / d, channels[i + 1] / d, strides[i]);
  return n.dense(n.b.reduce_mean(x, {1, 2}), 512 / d, 10, false);
}

/// Small, but wide enough for what pays only for many channels.
ValueId build_wide(Network &n, ValueId x, int64_t d) {
  for (const int64_t in : {int64_t{3}, 64 / d, 64 / d})
    x = n.unit(x, {.in = in, .out = 64 / d});
  return n.dense(n.b.reduce_mean(x, {1, 2}), 64 / d, 10, false);
}

/// Two blocks of a transformer that normalise first, over 12 numbers as words.
ValueId build_transformer(Network &n, ValueId x, int64_t d) {
  const int64_t length = 12, channels = 64 / d;
  x = n.places(n.embedding(x, n.table(50, channels, 0.5), 50), length, channels, 0.5);
  for (int block = 0; block < 2; ++block) {
    x = n.b.add(x, n.composed_attention(n.layer_norm(x, channels), length, channels, 2));
    const ValueId wide = n.b.op("gelu", {n.dense(n.layer_norm(x, channels), channels, 4 * channels, false)});
    x = n.b.add(x, n.dense(wide, 4 * channels, channels, false));
  }
  return n.dense(n.b.reduce_mean(n.layer_norm(x, channels), {1}), channels, 10, false);
}

struct Gpt2Sizes {
  int64_t blocks, channels, heads, length, words;
};

constexpr Gpt2Sizes kGpt2 = {12, 768, 12, 1024, 50304}, kGpt2Tiny = {2, 64, 4, 48, 320};

ValueId build_gpt2(Network &n, ValueId x, const Gpt2Sizes &sizes, int64_t d) {
  const double scale = 0.035;  // as far spread as normal numbers of deviation 0.02
  const int64_t channels = sizes.channels / d;
  const ValueId table = n.table(sizes.words, channels, scale);
  const auto drawn = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(sizes.words)));
  x = n.places(n.embedding(x, table, drawn), sizes.length, channels, scale);
  for (int64_t block = 0; block < sizes.blocks; ++block) {
    x = n.b.add(x, n.causal_attention(n.layer_norm(x, channels), sizes.length, channels, sizes.heads));
    const ValueId wide = n.dense(n.layer_norm(x, channels), channels, 4 * channels, false);
    x = n.b.add(x, n.dense(n.b.op("gelu", {wide}, {{"approximate", true}}), 4 * channels, channels, false));
  }
  return n.words_of(n.layer_norm(x, channels), table);
}

constexpr int64_t kPositions = 64, kChannels = 256;

ValueId build_lstm(Network &n, ValueId x, int64_t d) {
  const int64_t units = kChannels / d;
  x = n.lstm(n.lstm(x, kChannels, units), units, units);
  const ValueId last = n.b.slice(x, {0, kPositions - 1, 0}, {GraphBuilder::batch(), 1, units});
  return n.dense(n.b.reshape(last, {GraphBuilder::batch(), units}), units, 10, false);
}

struct ModelEntry {
  const char *letter;
  const char *name;
  std::vector<int64_t> image;
  int64_t classes;
  ValueId (*build)(Network &, ValueId, int64_t);
  std::vector<int64_t> label = {};
};

const ModelEntry kModels[] = {
    {"A", "toy", {10}, 2, build_toy},
    {"B", "mlp", {784}, 10, build_mlp},
    {"C", "cnn", {28, 28, 1}, 10, build_cnn},
    {"D", "resnet20", {32, 32, 3}, 10, build_resnet20},
    {"E", "separable", {32, 32, 3}, 10, build_separable},
    {"F", "resnet18", {32, 32, 3}, 10, build_resnet18},
    {"G", "resnet50", {224, 224, 3}, 1000, build_resnet50},
    {"H", "wide", {5, 7, 3}, 10, build_wide},
    {"I", "transformer", {12}, 10, build_transformer},
    {"J",
     "gpt2",
     {kGpt2.length},
     kGpt2.words,
     [](Network &n, ValueId x, int64_t d) { return build_gpt2(n, x, kGpt2, d); },
     {kGpt2.length}},
    {"K",
     "gpt2_tiny",
     {kGpt2Tiny.length},
     kGpt2Tiny.words,
     [](Network &n, ValueId x, int64_t d) { return build_gpt2(n, x, kGpt2Tiny, d); },
     {kGpt2Tiny.length}},
    {"L", "lstm", {kPositions, kChannels}, 10, build_lstm},
};

ValueId build_logits(Network &n, const StepModel &model, const ModelEntry &entry, int64_t width_divisor) {
  graph::Dims dims = {GraphBuilder::batch()};
  for (int64_t size : model.image)
    dims.push_back(size);
  return entry.build(n, n.b.input("image", DType::f32, dims), width_divisor);
}

/// Forward and backward; the gradient of the mean loss goes to gradient/0/<variable>.
Status build_accumulate(StepModel &model, const ModelEntry &entry, int64_t width_divisor) {
  Network n(model, true);
  const ValueId logits = build_logits(n, model, entry, width_divisor);
  graph::Dims label_dims = graph::to_dims(model.label);
  label_dims.insert(label_dims.begin(), GraphBuilder::batch());
  const ValueId labels = n.b.input("label", DType::i64, label_dims);
  const ValueId losses = n.b.op("sparse_softmax_cross_entropy", {logits, labels});
  const ValueId rows = n.b.op("reciprocal", {n.b.run_scalar("step_rows", DType::f32)});
  ValueId loss = n.b.mul(n.b.reduce_sum(losses), rows);
  if (!model.label.empty()) loss = n.b.scale(loss, 1 / static_cast<double>(elements_of(model.label)));
  const ValueId targets[] = {loss};
  TUTTI_TRY(n.b.status());
  TUTTI_ASSIGN(const std::vector<ValueId> gradients, graph::gradients_or_zeros(n.b, targets, {}, n.weights));
  n.b.state_write(loss, "report/loss");
  size_t next = 0;
  for (const StepVariable &variable : model.variables) {
    if (variable.trained) n.b.state_write(gradients[next++], "gradient/0/" + variable.name);
  }
  for (const auto &[entry_name, value] : n.running())
    n.b.state_write(value, entry_name);
  TUTTI_ASSIGN(graph::Graph accumulate, n.b.finish_graph());
  // As trainers do.
  model.accumulate = graph::rewrite::optimize(graph::rewrite::inline_regions(std::move(accumulate)));
  return Status();
}

/// `flat`: the storage of a variable as one row of elements, as programs apart see it; else the variable as it is.
Result<graph::Graph> build_finish(const StepModel &model, bool flat) {
  GraphBuilder b;
  const ValueId ok = b.op("all_finite", {b.state_read("report/loss", DType::f32, {})});
  const ValueId rate = b.constant(1e-3, DType::f32);
  const ValueId iteration = b.run_scalar("iteration", DType::i64);
  for (const StepVariable &variable : model.variables) {
    if (!variable.trained) continue;
    const graph::Dims dims =
        flat ? graph::Dims{graph::Dim::symbol("slice." + variable.name)} : graph::to_dims(variable.dims);
    const auto read = [&](const std::string &prefix, const std::string &suffix) {
      return b.state_read(prefix + variable.name + suffix, DType::f32, dims);
    };
    const auto updated = b.op_n(
        "adam_update",
        {read("weight/", ""), read("gradient/0/", ""), read("slot/", "/m"), read("slot/", "/v"), rate, iteration, ok},
        {}, 3);
    b.state_write(updated[0], "weight/" + variable.name);
    b.state_write(updated[1], "slot/" + variable.name + "/m");
    b.state_write(updated[2], "slot/" + variable.name + "/v");
  }
  return b.finish_graph();
}

Status build_predict(StepModel &model, const ModelEntry &entry, int64_t width_divisor) {
  Network n(model, false);
  const ValueId logits = build_logits(n, model, entry, width_divisor);
  n.b.set_result("logits", logits);
  TUTTI_ASSIGN(model.predict, n.b.finish_graph());
  return Status();
}

}  // namespace

int64_t elements_of(const std::vector<int64_t> &dims) {
  int64_t n = 1;
  for (int64_t size : dims)
    n *= size;
  return n;
}

Result<StepModel> make_step_model(const std::string &name, int64_t width_divisor) {
  for (const ModelEntry &entry : kModels) {
    if (entry.letter != name && entry.name != name) continue;
    StepModel model;
    model.name = entry.name;
    model.image = entry.image;
    model.label = entry.label;
    model.classes = entry.classes;
    TUTTI_TRY(build_accumulate(model, entry, width_divisor));
    TUTTI_ASSIGN(model.finish, build_finish(model, true));
    TUTTI_ASSIGN(const graph::Graph update, build_finish(model, false));
    constexpr std::string_view passing[] = {"gradient/"};
    TUTTI_ASSIGN(model.step, graph::rewrite::join_programs(model.accumulate, update, passing));
    TUTTI_TRY(build_predict(model, entry, width_divisor));
    return model;
  }
  return base::not_found("there is no model '", name, "'");
}

}  // namespace tutti::testing
