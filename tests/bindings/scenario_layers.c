/* SPDX-License-Identifier: Apache-2.0 */
#include "scenario_layers.h"

/* z as a sequence, an image, a volume, and as channels of one position; and the sum of what was reported. */
struct shapes {
  tutti_graph *g;
  tutti_value sequence, image, volume, point, pixel, sum;
};

/* The mean over all elements under the layer's name. */
static void report(struct shapes *s, const char *name, tutti_value value) {
  tutti_value mean = tutti_reduce_mean(s->g, value, NULL);
  tutti_graph_add_metric(s->g, name, mean);
  s->sum = tutti_add(s->g, s->sum, mean);
}

static void report_convolutions(struct shapes *s) {
  tutti_graph *g = s->g;
  tutti_layer_conv1d_attrs causal = {.padding = TUTTI_LAYER_CONV1D_PADDING_CAUSAL, .kernel_initializer = "ones"};
  report(s, "conv1d", tutti_layer_conv1d(g, s->sequence, 1, 2, &causal));
  tutti_layer_conv2d_attrs flat = {
      .sizes = {1, 2}, .padding = TUTTI_LAYER_CONV2D_PADDING_VALID, .kernel_initializer = "ones"};
  report(s, "conv2d", tutti_layer_conv2d(g, s->image, 1, 1, &flat));
  tutti_layer_conv3d_attrs deep = {
      .sizes = {3, 0, 0}, .padding = TUTTI_LAYER_CONV3D_PADDING_VALID, .without_bias = 1, .kernel_initializer = "ones"};
  report(s, "conv3d", tutti_layer_conv3d(g, s->volume, 1, 1, &deep));
  tutti_layer_depthwise_conv1d_attrs each = {.kernel_initializer = "ones"};
  report(s, "depthwise_conv1d", tutti_layer_depthwise_conv1d(g, s->point, 1, &each));
  tutti_layer_depthwise_conv2d_attrs each_pixel = {.kernel_initializer = "ones"};
  report(s, "depthwise_conv2d", tutti_layer_depthwise_conv2d(g, s->pixel, 1, &each_pixel));
  tutti_layer_separable_conv1d_attrs both = {.kernel_initializer = "ones"};
  report(s, "separable_conv1d", tutti_layer_separable_conv1d(g, s->point, 1, 1, &both));
  tutti_layer_separable_conv2d_attrs both_pixel = {.kernel_initializer = "ones"};
  report(s, "separable_conv2d", tutti_layer_separable_conv2d(g, s->pixel, 1, 1, &both_pixel));
}

static void report_transposes(struct shapes *s) {
  tutti_graph *g = s->g;
  tutti_layer_conv1d_transpose_attrs twice = {.stride = 2, .kernel_initializer = "ones"};
  report(s, "conv1d_transpose", tutti_layer_conv1d_transpose(g, s->sequence, 1, 2, &twice));
  tutti_layer_conv2d_transpose_attrs wide = {.strides = {1, 2},
                                             .padding = TUTTI_LAYER_CONV2D_TRANSPOSE_PADDING_VALID,
                                             .extra = {0, 1},
                                             .kernel_initializer = "ones"};
  report(s, "conv2d_transpose", tutti_layer_conv2d_transpose(g, s->image, 1, 1, &wide));
  tutti_layer_conv3d_transpose_attrs deep = {
      .sizes = {2, 0, 0}, .padding = TUTTI_LAYER_CONV3D_TRANSPOSE_PADDING_VALID, .kernel_initializer = "ones"};
  report(s, "conv3d_transpose", tutti_layer_conv3d_transpose(g, s->volume, 1, 1, &deep));
}

static void report_pools(struct shapes *s) {
  tutti_graph *g = s->g;
  tutti_layer_max_pool1d_attrs by_one = {.stride = 1};
  report(s, "max_pool1d", tutti_layer_max_pool1d(g, s->sequence, 2, &by_one));
  tutti_layer_average_pool1d_attrs same = {.padding = TUTTI_LAYER_AVERAGE_POOL1D_PADDING_SAME};
  report(s, "average_pool1d", tutti_layer_average_pool1d(g, s->sequence, 2, &same));
  tutti_layer_max_pool2d_attrs wide = {.sizes = {1, 3}};
  report(s, "max_pool2d", tutti_layer_max_pool2d(g, s->image, 1, &wide));
  tutti_layer_average_pool2d_attrs pairs = {.sizes = {1, 2}, .strides = {1, 1}};
  report(s, "average_pool2d", tutti_layer_average_pool2d(g, s->image, 1, &pairs));
  tutti_layer_max_pool3d_attrs deep = {.stride = 1, .sizes = {2, 0, 0}};
  report(s, "max_pool3d", tutti_layer_max_pool3d(g, s->volume, 1, &deep));
  tutti_layer_average_pool3d_attrs padded = {.sizes = {2, 0, 0},
                                             .padding = TUTTI_LAYER_AVERAGE_POOL3D_PADDING_EXPLICIT,
                                             .pads = {1, 0, 0, 0, 0, 0},
                                             .count_include_padding = 1};
  report(s, "average_pool3d", tutti_layer_average_pool3d(g, s->volume, 1, &padded));
  report(s, "global_average_pool1d", tutti_layer_global_average_pool1d(g, s->sequence));
  report(s, "global_max_pool1d", tutti_layer_global_max_pool1d(g, s->sequence));
  report(s, "global_average_pool2d", tutti_layer_global_average_pool2d(g, s->image));
  report(s, "global_max_pool2d", tutti_layer_global_max_pool2d(g, s->image));
  report(s, "global_average_pool3d", tutti_layer_global_average_pool3d(g, s->volume));
  report(s, "global_max_pool3d", tutti_layer_global_max_pool3d(g, s->volume));
}

static void report_sizes(struct shapes *s) {
  tutti_graph *g = s->g;
  tutti_value longer = tutti_layer_up_sampling1d(g, s->sequence, 2);
  report(s, "up_sampling1d", tutti_layer_cropping1d(g, longer, (int64_t[]){0, 1}));
  tutti_layer_up_sampling2d_attrs smooth = {.factors = {1, 0}, .method = TUTTI_LAYER_UP_SAMPLING2D_METHOD_BILINEAR};
  tutti_value wider = tutti_layer_up_sampling2d(g, s->image, 2, &smooth);
  report(s, "up_sampling2d", tutti_layer_cropping2d(g, wider, (int64_t[]){0, 0, 0, 3}));
  tutti_layer_up_sampling3d_attrs deep = {.factors = {2, 0, 0}};
  tutti_value deeper = tutti_layer_up_sampling3d(g, s->volume, 1, &deep);
  report(s, "up_sampling3d", tutti_layer_cropping3d(g, deeper, (int64_t[]){0, 1, 0, 0, 0, 0}));
  report(s, "zero_padding1d", tutti_layer_zero_padding1d(g, s->sequence, (int64_t[]){1, 2}));
  report(s, "zero_padding2d", tutti_layer_zero_padding2d(g, s->image, (int64_t[]){0, 1, 1, 0}));
  report(s, "zero_padding3d", tutti_layer_zero_padding3d(g, s->volume, (int64_t[]){1, 1, 0, 0, 0, 0}));
  report(s, "cropping1d", tutti_layer_cropping1d(g, s->sequence, (int64_t[]){1, 0}));
  report(s, "cropping2d", tutti_layer_cropping2d(g, s->image, (int64_t[]){0, 0, 1, 1}));
  report(s, "cropping3d", tutti_layer_cropping3d(g, s->volume, (int64_t[]){0, 2, 0, 0, 0, 0}));
}

static void report_embeddings(struct shapes *s, tutti_value x, tutti_value y, tutti_value z) {
  tutti_graph *g = s->g;
  tutti_layer_embedding_attrs padded = {.has_padding_id = 1, .padding_id = 0, .table_initializer = "ones"};
  report(s, "embedding", tutti_layer_embedding(g, y, 3, 2, &padded));
  tutti_layer_embedding_bag_attrs weighed = {
      .weights = x, .lengths = y, .combiner = TUTTI_LAYER_EMBEDDING_BAG_COMBINER_SUM, .table_initializer = "ones"};
  report(s, "embedding_bag", tutti_layer_embedding_bag(g, tutti_argsort(g, z, NULL), 3, 2, &weighed));
}

int32_t scenario_layers(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  (void)user;
  tutti_value x = tutti_graph_get_feature(g, "x");
  tutti_value shift = tutti_graph_variable(g, "shift", TUTTI_DTYPE_F32, (int64_t[]){3}, 1, "ones", 0, 1);
  tutti_value four = tutti_graph_constant(g, TUTTI_DTYPE_F32, 4), three = tutti_graph_constant(g, TUTTI_DTYPE_F32, 3);
  tutti_value z = tutti_add(g, tutti_sub(g, tutti_mul(g, x, four), three), shift);
  tutti_graph_set_output(g, "z", z);
  if (mode != TUTTI_MODE_PREDICT) {
    struct shapes s = {.g = g,
                       .sequence = tutti_reshape(g, z, (int64_t[]){TUTTI_DIM_BATCH, 3, 1}, 3),
                       .image = tutti_reshape(g, z, (int64_t[]){TUTTI_DIM_BATCH, 1, 3, 1}, 4),
                       .volume = tutti_reshape(g, z, (int64_t[]){TUTTI_DIM_BATCH, 3, 1, 1, 1}, 5),
                       .point = tutti_reshape(g, z, (int64_t[]){TUTTI_DIM_BATCH, 1, 3}, 3),
                       .pixel = tutti_reshape(g, z, (int64_t[]){TUTTI_DIM_BATCH, 1, 1, 3}, 4),
                       .sum = tutti_graph_constant(g, TUTTI_DTYPE_F32, 0)};
    report_convolutions(&s);
    report_transposes(&s);
    report_pools(&s);
    report_sizes(&s);
    report_embeddings(&s, x, tutti_graph_get_label(g, "y"), z);
    tutti_graph_set_loss(g, s.sum);
    tutti_optimizer_sgd(g, tutti_schedule_constant(g, 0.01), NULL);
  }
  return tutti_graph_check(g, err);
}
