/* SPDX-License-Identifier: Apache-2.0 */
#include "scenario_data_ops.h"

static void give(tutti_graph *g, const char *name, tutti_value value) { tutti_graph_set_output(g, name, value); }

static tutti_value part(tutti_graph *g, tutti_value text, int64_t start, int64_t length, int32_t unit) {
  tutti_bytes_substring_attrs attrs = {.start = start, .has_length = 1, .length = length, .unit = unit};
  return tutti_bytes_substring(g, text, &attrs);
}

int32_t scenario_text_ops(tutti_graph *g, void *user, tutti_error **err) {
  (void)user;
  tutti_value text = tutti_graph_get_feature(g, "text");
  tutti_bytes_split_attrs three = {.separator = " ", .skip_empty = 1, .count = 3};
  tutti_value words = tutti_bytes_split(g, text, &three);
  tutti_bytes_length_attrs characters = {.unit = TUTTI_BYTES_LENGTH_UNIT_CHARACTERS};
  give(g, "bytes_length", tutti_bytes_length(g, text, &characters));
  give(g, "bytes_substring", part(g, text, 1, 3, TUTTI_BYTES_SUBSTRING_UNIT_CHARACTERS));
  give(g, "bytes_split", words);
  give(g, "bytes_lower", tutti_bytes_lower(g, text));
  tutti_bytes_join_attrs plus = {.separator = "+"};
  give(g, "bytes_join", tutti_bytes_join(g, words, &plus));
  tutti_bytes_to_number_attrs whole = {.dtype = TUTTI_DTYPE_I64};
  tutti_value digits = part(g, text, -3, 3, TUTTI_BYTES_SUBSTRING_UNIT_BYTES);
  give(g, "bytes_to_number", tutti_bytes_to_number(g, digits, &whole));
  tutti_bytes_to_values_attrs big = {
      .dtype = TUTTI_DTYPE_I64, .count = 1, .byte_order = TUTTI_BYTES_TO_VALUES_BYTE_ORDER_BIG};
  tutti_value eight = part(g, text, 0, 8, TUTTI_BYTES_SUBSTRING_UNIT_BYTES);
  give(g, "bytes_to_values", tutti_bytes_to_values(g, eight, &big));
  tutti_bytes_hash_bucket_attrs salted = {.salt = 3};
  give(g, "bytes_hash_bucket", tutti_bytes_hash_bucket(g, text, 1000, &salted));
  return tutti_graph_check(g, err);
}

/* 2 x 2 pixels of one gray, the level 40. */
static tutti_value plain_pixels(tutti_graph *g, tutti_value photo) {
  tutti_crop_attrs corner = {.size = {2, 2}};
  return tutti_crop(g, tutti_decode_jpeg(g, photo, NULL), &corner);
}

static void give_shapes(tutti_graph *g, tutti_value pixels) {
  tutti_crop_attrs corner = {.size = {1, 2}, .offset = {1, 1}};
  give(g, "crop", tutti_crop(g, pixels, &corner));
  tutti_pad_image_attrs edge = {.mode = TUTTI_PAD_IMAGE_MODE_EDGE};
  give(g, "pad_image", tutti_pad_image(g, pixels, (int64_t[]){1, 0, 1, 0}, &edge));
  tutti_flip_attrs down = {.direction = TUTTI_FLIP_DIRECTION_VERTICAL};
  give(g, "flip", tutti_flip(g, pixels, &down));
  give(g, "rotate90", tutti_rotate90(g, pixels, NULL));
  tutti_rotate_attrs nearest = {.method = TUTTI_ROTATE_METHOD_NEAREST};
  give(g, "rotate", tutti_rotate(g, pixels, 180, &nearest));
}

static void give_colors(tutti_graph *g, tutti_value pixels) {
  tutti_normalize_image_attrs normal = {.mean = (double[]){10, 20, 30},
                                        .mean_count = 3,
                                        .stddev = (double[]){2, 4, 8},
                                        .stddev_count = 3,
                                        .has_scale = 1,
                                        .scale = 0.5};
  give(g, "convert_image_dtype", tutti_convert_image_dtype(g, pixels, NULL));
  give(g, "normalize_image", tutti_normalize_image(g, pixels, &normal));
  give(g, "adjust_brightness", tutti_adjust_brightness(g, pixels, 0.2));
  give(g, "adjust_contrast", tutti_adjust_contrast(g, pixels, 2));
  give(g, "adjust_saturation", tutti_adjust_saturation(g, pixels, 0.5));
  give(g, "adjust_hue", tutti_adjust_hue(g, pixels, 0.3));
}

/* What is the same whatever is drawn. */
static void give_draws(tutti_graph *g, tutti_value pixels, tutti_value plain) {
  tutti_crop_attrs left = {.size = {2, 1}};
  tutti_pad_image_attrs edge = {.mode = TUTTI_PAD_IMAGE_MODE_EDGE};
  tutti_value striped = tutti_pad_image(g, tutti_crop(g, pixels, &left), (int64_t[]){0, 0, 1, 2}, &edge);
  give(g, "random_crop", tutti_random_crop(g, striped, (int64_t[]){2, 2}, NULL));
  tutti_random_rotate_attrs gray = {.value = 40};
  give(g, "random_rotate", tutti_random_rotate(g, plain, 90, &gray));
  tutti_random_resized_crop_attrs mirrored = {.area = {1, 1}, .aspect = {1.5, 1.5}, .flip_probability = 1};
  give(g, "random_resized_crop", tutti_random_resized_crop(g, pixels, (int64_t[]){2, 3}, &mirrored));
  tutti_random_cutout_attrs seven = {.value = 7};
  give(g, "random_cutout", tutti_random_cutout(g, pixels, (int64_t[]){6, 8}, &seven));
  tutti_random_color_jitter_attrs jitter = {.contrast = 0.5, .saturation = 0.5, .hue = 0.25};
  give(g, "random_color_jitter", tutti_random_color_jitter(g, plain, &jitter));
}

int32_t scenario_image_ops(tutti_graph *g, void *user, tutti_error **err) {
  (void)user;
  tutti_value file = tutti_graph_get_feature(g, "image"), photo = tutti_graph_get_feature(g, "photo");
  tutti_value pixels = tutti_decode_png(g, file, NULL), size = tutti_image_size(g, photo);
  tutti_crop_attrs border = {.size = {1, 2}, .offset = {3, 7}};
  give(g, "photo", tutti_crop(g, tutti_decode_jpeg(g, photo, NULL), &border));
  give(g, "image", tutti_decode_image(g, file, NULL));
  give(g, "image_size", size);
  give_shapes(g, pixels);
  give_colors(g, pixels);
  give_draws(g, pixels, plain_pixels(g, photo));
  tutti_random_crop_window_attrs whole = {.area = {1, 1}, .aspect = {2, 2}};
  give(g, "random_crop_window", tutti_random_crop_window(g, size, &whole));
  return tutti_graph_check(g, err);
}

int32_t scenario_plain_images(tutti_graph *g, void *user, tutti_error **err) {
  (void)user;
  tutti_value plain = plain_pixels(g, tutti_graph_get_feature(g, "photo"));
  give(g, "photo", tutti_convert_image_dtype(g, plain, NULL));
  give(g, "target", tutti_one_hot(g, tutti_graph_get_feature(g, "id"), 3, NULL));
  return tutti_graph_check(g, err);
}

int32_t scenario_mixes(tutti_graph *g, void *user, tutti_error **err) {
  (void)user;
  tutti_value photo = tutti_graph_get_feature(g, "photo"), target = tutti_graph_get_feature(g, "target"), targets[1];
  tutti_reduce_sum_attrs all = {.axes = (int64_t[]){1}, .axes_count = 1};
  tutti_mixup_attrs even = {.alpha = 0.5};
  give(g, "mixup", tutti_mixup(g, photo, target, &even, targets));
  give(g, "mixup_targets", tutti_reduce_sum(g, targets[0], &all));
  give(g, "cutmix", tutti_cutmix(g, photo, target, NULL, targets));
  give(g, "cutmix_targets", tutti_reduce_sum(g, targets[0], &all));
  return tutti_graph_check(g, err);
}
