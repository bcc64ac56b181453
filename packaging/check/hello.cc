// SPDX-License-Identifier: Apache-2.0
// As hello.c, by the C++ header.
#include <cstdio>
#include <cstring>
#include <exception>
#include <tutti/tutti.hpp>

namespace {

constexpr int64_t kRows = 512, kFeatures = 4;
float rows[kRows][kFeatures];
int32_t labels[kRows];

void make_rows() {
  unsigned state = 1;
  for (int64_t i = 0; i < kRows; ++i) {
    for (float &number : rows[i]) {
      state = state * 1664525u + 1013904223u;
      number = static_cast<float>(state >> 8) / static_cast<float>(1 << 24);
    }
    labels[i] = rows[i][0] + rows[i][1] > 1.0f ? 1 : 0;
  }
}

void model(tutti::Graph g, int32_t mode) {
  tutti_layer_dense_attrs relu{};
  relu.activation = TUTTI_LAYER_DENSE_ACTIVATION_RELU;
  const tutti_value hidden = tutti_layer_dense(g, g.feature("x"), 16, &relu);
  const tutti_value logits = tutti_layer_dense(g, hidden, 2, nullptr);
  tutti_graph_set_output(g, "logits", logits);
  if (mode == TUTTI_MODE_PREDICT) return;
  const tutti_value y = g.label("y");
  tutti_graph_set_loss(g, tutti_loss_sparse_softmax_cross_entropy(g, logits, y, nullptr));
  tutti_optimizer_adam(g, tutti_schedule_constant(g, 0.02), nullptr);
}

bool predict(tutti::Predictor &predictor, const tutti::Tensor &x) {
  const tutti::Batch batch = predictor.run({{"x", x}});
  const tutti::Tensor output = batch.output("logits");
  const float *const logits = output.data<float>();
  int64_t right = 0;
  double sum = 0;
  for (int64_t i = 0; i < kRows; ++i) {
    right += (logits[2 * i + 1] > logits[2 * i]) == (labels[i] == 1) ? 1 : 0;
    sum += logits[2 * i] + logits[2 * i + 1];
  }
  std::printf("%lld of %lld right, sum %.3f\n", static_cast<long long>(right), static_cast<long long>(kRows), sum);
  return right > kRows * 9 / 10;
}

}  // namespace

int main(int argc, char **argv) try {
  if (argc != 3) return 2;
  make_rows();
  const tutti::Context context(tutti::Options("context").set("logical_devices", 2));
  const tutti::Tensor x(TUTTI_DTYPE_F32, {kRows, kFeatures}, rows, sizeof rows);
  const tutti::Tensor y(TUTTI_DTYPE_I32, {kRows}, labels, sizeof labels);
  const auto strategy = std::strcmp(argv[1], "workers") == 0
                            ? tutti::Strategy::multi_worker_from_environment(nullptr, context)
                            : tutti::Strategy::mirrored(context);
  if (std::strcmp(argv[1], "predict") == 0) {
    tutti::Predictor predictor(argv[2], strategy, context);
    return predict(predictor, x) ? 0 : 1;
  }
  tutti::Pipeline pipeline(context);
  pipeline.slices("x", TUTTI_ROLE_FEATURE, x).slices("y", TUTTI_ROLE_LABEL, y);
  tutti_pipeline_repeat(pipeline, nullptr);
  tutti_pipeline_batch(pipeline, 64, nullptr);
  tutti::Estimator estimator(model, tutti::Options("run").set("model_dir", argv[2]), strategy, context);
  estimator.train(pipeline.build(), tutti::Options("train").set("steps", 300));
  tutti::Predictor predictor(estimator);
  return predict(predictor, x) ? 0 : 1;
} catch (const std::exception &error) {
  std::fprintf(stderr, "hello: %s\n", error.what());
  return 1;
}
