/* SPDX-License-Identifier: Apache-2.0 */
#include "replica_networks.h"

#include <string.h>

static tutti_value dense(tutti_graph *g, tutti_value x, int64_t units, int relu) {
  tutti_layer_dense_attrs attrs = {.activation = TUTTI_LAYER_DENSE_ACTIVATION_RELU};
  return tutti_layer_dense(g, x, units, relu ? &attrs : NULL);
}

static tutti_value conv_norm(tutti_graph *g, tutti_value x, int64_t filters, int64_t size, int64_t stride) {
  tutti_layer_conv2d_attrs conv = {.stride = stride, .without_bias = 1, .kernel_initializer = "he_normal"};
  tutti_layer_batch_norm_attrs norm = {.has_momentum = 1, .momentum = 0.9};
  return tutti_layer_batch_norm(g, tutti_layer_conv2d(g, x, filters, size, &conv), &norm);
}

static tutti_value unit(tutti_graph *g, tutti_value x, int64_t filters, int64_t size, int64_t stride) {
  return tutti_relu(g, conv_norm(g, x, filters, size, stride));
}

static tutti_value classify(tutti_graph *g, tutti_value x, int64_t classes) {
  return dense(g, tutti_layer_global_average_pool2d(g, x), classes, 0);
}

static tutti_value toy(tutti_graph *g, tutti_value x) { return dense(g, dense(g, x, 16, 1), 2, 0); }

static tutti_value mlp(tutti_graph *g, tutti_value x) { return dense(g, dense(g, dense(g, x, 512, 1), 256, 1), 10, 0); }

static tutti_value cnn(tutti_graph *g, tutti_value x) {
  tutti_layer_conv2d_attrs conv = {.activation = TUTTI_LAYER_CONV2D_ACTIVATION_RELU,
                                   .padding = TUTTI_LAYER_CONV2D_PADDING_VALID};
  x = tutti_layer_conv2d(g, tutti_layer_conv2d(g, x, 32, 3, &conv), 64, 3, &conv);
  x = tutti_layer_flatten(g, tutti_layer_max_pool2d(g, x, 2, NULL));
  return dense(g, dense(g, x, 128, 1), 10, 0);
}

static tutti_value basic_resnet(tutti_graph *g, tutti_value x, int64_t width, int64_t stages, int64_t blocks) {
  x = unit(g, x, width, 3, 1);
  for (int64_t stage = 0; stage < stages; stage++) {
    for (int64_t block = 0; block < blocks; block++) {
      const int64_t filters = width << stage, stride = stage > 0 && block == 0 ? 2 : 1;
      tutti_value skip = stride == 1 ? x : conv_norm(g, x, filters, 1, stride);
      x = tutti_relu(g, tutti_add(g, conv_norm(g, unit(g, x, filters, 3, stride), filters, 3, 1), skip));
    }
  }
  return classify(g, x, 10);
}

static tutti_value resnet20(tutti_graph *g, tutti_value x) { return basic_resnet(g, x, 16, 3, 3); }

static tutti_value resnet18(tutti_graph *g, tutti_value x) { return basic_resnet(g, x, 64, 4, 2); }

static tutti_value resnet50(tutti_graph *g, tutti_value x) {
  tutti_layer_max_pool2d_attrs halve = {.stride = 2, .padding = TUTTI_LAYER_MAX_POOL2D_PADDING_SAME};
  x = tutti_layer_max_pool2d(g, unit(g, x, 64, 7, 2), 3, &halve);
  const int64_t blocks[] = {3, 4, 6, 3};
  for (int64_t stage = 0; stage < 4; stage++) {
    for (int64_t block = 0; block < blocks[stage]; block++) {
      const int64_t width = (int64_t)64 << stage, stride = stage > 0 && block == 0 ? 2 : 1;
      tutti_value skip = block > 0 ? x : conv_norm(g, x, 4 * width, 1, stride);
      tutti_value branch = unit(g, unit(g, x, width, 1, 1), width, 3, stride);
      x = tutti_relu(g, tutti_add(g, conv_norm(g, branch, 4 * width, 1, 1), skip));
    }
  }
  return classify(g, x, 1000);
}

static tutti_value separable(tutti_graph *g, tutti_value x) {
  tutti_layer_batch_norm_attrs norm = {.has_momentum = 1, .momentum = 0.9};
  const int64_t filters[] = {64, 128, 128, 256, 256, 512}, strides[] = {1, 2, 1, 2, 1, 2};
  x = unit(g, x, 32, 3, 1);
  for (int i = 0; i < 6; i++) {
    tutti_layer_depthwise_conv2d_attrs each = {.stride = strides[i], .without_bias = 1};
    x = tutti_relu(g, tutti_layer_batch_norm(g, tutti_layer_depthwise_conv2d(g, x, 3, &each), &norm));
    x = unit(g, x, filters[i], 1, 1);
  }
  return classify(g, x, 10);
}

static const struct replica_network networks[] = {
    {"toy", {10, 0, 0}, 2, toy},
    {"mlp", {784, 0, 0}, 10, mlp},
    {"cnn", {28, 28, 1}, 10, cnn},
    {"resnet20", {32, 32, 3}, 10, resnet20},
    {"separable", {32, 32, 3}, 10, separable},
    {"resnet18", {32, 32, 3}, 10, resnet18},
    {"resnet50", {224, 224, 3}, 1000, resnet50},
};

const struct replica_network *replica_network_find(const char *name) {
  for (size_t i = 0; i < sizeof networks / sizeof *networks; i++)
    if (strcmp(networks[i].name, name) == 0) return &networks[i];
  return NULL;
}

int32_t replica_network_model(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  const struct replica_network *network = user;
  tutti_value logits = network->logits(g, tutti_graph_get_feature(g, "image"));
  tutti_graph_set_output(g, "logits", logits);
  if (mode == TUTTI_MODE_PREDICT) return tutti_graph_check(g, err);
  tutti_value y = tutti_graph_get_label(g, "label");
  tutti_graph_set_loss(g, tutti_loss_sparse_softmax_cross_entropy(g, logits, y, NULL));
  tutti_optimizer_adam(g, tutti_graph_constant(g, TUTTI_DTYPE_F32, 1e-3), NULL);
  return tutti_graph_check(g, err);
}
