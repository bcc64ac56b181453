/* SPDX-License-Identifier: Apache-2.0 */
#include "scenario_pipelines.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "scenario_data_ops.h"

/* A pipeline that is written, and where its files are. */
struct recipe {
  tutti_context *context;
  tutti_pipeline *pipeline;
  const char *folder;
  char path[4][512];
  int paths;
};

static const char *path_of(struct recipe *recipe, const char *name) {
  char *path = recipe->path[recipe->paths++];
  snprintf(path, sizeof recipe->path[0], "%s/%s", recipe->folder, name);
  return path;
}

static void source_range(tutti_pipeline *pipeline, int64_t start, int64_t stop) {
  tutti_source_range_attrs attrs = {.start = start};
  tutti_source_range(pipeline, stop, &attrs);
}

/* A dataset of the numbers from start to before stop; NULL after an error, which the user of it reports. */
static tutti_dataset *range(tutti_context *context, int64_t start, int64_t stop) {
  tutti_pipeline *pipeline = NULL;
  tutti_dataset *dataset = NULL;
  if (tutti_pipeline_create(context, &pipeline, NULL) != TUTTI_OK) return NULL;
  source_range(pipeline, start, stop);
  tutti_pipeline_build(pipeline, &dataset, NULL);
  tutti_pipeline_unref(pipeline);
  return dataset;
}

static int64_t value_of(tutti_tensor *tensor) { return *(const int64_t *)tutti_tensor_get_data(tensor); }

static int32_t give(int64_t value, tutti_tensor **out, tutti_error **err) {
  return tutti_tensor_from_data(TUTTI_DTYPE_I64, NULL, 0, &value, sizeof value, out, err);
}

/* --- numbers ------------------------------------------------------------------------------------------------------ */

static void turns(struct recipe *recipe) {
  tutti_dataset *others[] = {range(recipe->context, 10, 15), range(recipe->context, 20, 22)};
  tutti_pipeline_interleave_attrs attrs = {.cycle_length = 2, .block_length = 2};
  source_range(recipe->pipeline, 0, 3);
  tutti_pipeline_interleave(recipe->pipeline, (const tutti_dataset *const *)others, 2, &attrs);
  tutti_dataset_unref(others[0]), tutti_dataset_unref(others[1]);
}

static void sample(struct recipe *recipe) {
  tutti_dataset *other = range(recipe->context, 100, 108);
  tutti_pipeline_sample_from_attrs attrs = {.weights = (const double[]){1, 3}, .weights_count = 2};
  source_range(recipe->pipeline, 0, 5);
  tutti_pipeline_sample_from(recipe->pipeline, (const tutti_dataset *const *)&other, 1, &attrs);
  tutti_dataset_unref(other);
}

static int32_t add(void *user, tutti_tensor *const *state, tutti_tensor **new_state, int64_t state_count,
                   tutti_tensor *const *inputs, int64_t count, tutti_tensor **outputs, int64_t output_count,
                   tutti_error **err) {
  (void)user, (void)state_count, (void)count, (void)output_count;
  int64_t sum = value_of(state[0]) + value_of(inputs[0]);
  int32_t code = give(sum, &new_state[0], err);
  return code == TUTTI_OK ? give(sum, &outputs[0], err) : code;
}

static int32_t add_in_graph(tutti_graph *graph, void *user, tutti_error **err) {
  (void)user, (void)err;
  tutti_value sum = tutti_add(graph, tutti_graph_get_feature(graph, "sum"), tutti_graph_get_feature(graph, "value"));
  tutti_graph_set_output(graph, "sum", sum);
  tutti_graph_set_output(graph, "value", sum);
  return TUTTI_OK;
}

static void sums(struct recipe *recipe, bool in_graph) {
  tutti_tensor *zero = NULL;
  give(0, &zero, NULL);
  source_range(recipe->pipeline, 0, 6);
  tutti_pipeline_begin(recipe->pipeline, in_graph ? "scan" : "scan_callback", 1);
  tutti_pipeline_set_state(recipe->pipeline, "sum", zero);
  if (in_graph) {
    tutti_pipeline_set_graph(recipe->pipeline, add_in_graph, NULL);
  } else {
    tutti_pipeline_set_scan(recipe->pipeline, add, NULL, NULL);
  }
  tutti_pipeline_end(recipe->pipeline);
  tutti_tensor_unref(zero);
}

static void sums_by_function(struct recipe *recipe) { sums(recipe, false); }
static void sums_by_graph(struct recipe *recipe) { sums(recipe, true); }

static int32_t is_below_4(tutti_graph *graph, void *user, tutti_error **err) {
  (void)user, (void)err;
  tutti_value limit = tutti_graph_constant(graph, TUTTI_DTYPE_I64, 4);
  tutti_graph_set_output(graph, "goes_on", tutti_less(graph, tutti_graph_get_feature(graph, "value"), limit));
  return TUTTI_OK;
}

static void below(struct recipe *recipe) {
  source_range(recipe->pipeline, 0, 10);
  tutti_pipeline_begin(recipe->pipeline, "take_while", 1);
  tutti_pipeline_set_graph(recipe->pipeline, is_below_4, NULL);
  tutti_pipeline_end(recipe->pipeline);
}

static int32_t is_odd(void *user, tutti_tensor *const *inputs, int64_t count, uint8_t *answer, tutti_error **err) {
  (void)user, (void)count, (void)err;
  *answer = value_of(inputs[0]) % 2 == 1;
  return TUTTI_OK;
}

static int32_t is_below_6(void *user, tutti_tensor *const *inputs, int64_t count, uint8_t *answer, tutti_error **err) {
  (void)user, (void)count, (void)err;
  *answer = value_of(inputs[0]) < 6;
  return TUTTI_OK;
}

static void odd(struct recipe *recipe) {
  source_range(recipe->pipeline, 0, 8);
  tutti_pipeline_begin(recipe->pipeline, "filter_callback", 1);
  tutti_pipeline_set_predicate(recipe->pipeline, is_odd, NULL, NULL);
  tutti_pipeline_end(recipe->pipeline);
  tutti_pipeline_begin(recipe->pipeline, "take_while_callback", 1);
  tutti_pipeline_set_predicate(recipe->pipeline, is_below_6, NULL, NULL);
  tutti_pipeline_end(recipe->pipeline);
}

static int32_t two_from_ten_times(void *user, tutti_tensor *const *inputs, int64_t count, tutti_dataset **dataset,
                                  tutti_error **err) {
  (void)count, (void)err;
  int64_t first = 10 * value_of(inputs[0]);
  *dataset = range(user, first, first + 2);
  return TUTTI_OK;
}

static void pairs(struct recipe *recipe) {
  source_range(recipe->pipeline, 0, 3);
  tutti_pipeline_begin(recipe->pipeline, "flat_map", 1);
  tutti_pipeline_set_expand(recipe->pipeline, two_from_ten_times, recipe->context, NULL);
  tutti_pipeline_end(recipe->pipeline);
}

static int32_t three_of_a_pass(void *user, int64_t pass, int64_t index, tutti_tensor **outputs, int64_t count,
                               uint8_t *has_element, tutti_error **err) {
  (void)user, (void)count;
  *has_element = index < 3;
  return *has_element ? give(100 * pass + index, &outputs[0], err) : TUTTI_OK;
}

static void passes(struct recipe *recipe) {
  tutti_pipeline_declare(recipe->pipeline, "value", TUTTI_ROLE_FEATURE, TUTTI_DTYPE_I64, NULL, 0);
  tutti_pipeline_add_generator(recipe->pipeline, three_of_a_pass, NULL, NULL);
  tutti_pipeline_repeat(recipe->pipeline, &(tutti_pipeline_repeat_attrs){.has_count = 1, .count = 2});
}

/* --- files -------------------------------------------------------------------------------------------------------- */

static void lines(struct recipe *recipe) {
  const char *path = path_of(recipe, "lines.txt");
  tutti_source_text_lines(recipe->pipeline, &path, 1, NULL);
}

static void lines_by_length(struct recipe *recipe) {
  lines(recipe);
  tutti_pipeline_bucket_by_length(recipe->pipeline, "text", (const int64_t[]){2, 4}, 2, (const int64_t[]){2}, 1, NULL);
}

static void lines_in_a_cache(struct recipe *recipe) {
  lines(recipe);
  tutti_pipeline_cache(recipe->pipeline, &(tutti_pipeline_cache_attrs){.path = path_of(recipe, "lines.elements")});
}

static void lines_in_a_snapshot(struct recipe *recipe) {
  lines(recipe);
  tutti_pipeline_snapshot(recipe->pipeline, path_of(recipe, "snapshots"), NULL);
}

static void files_of_the_snapshot(struct recipe *recipe) {
  const char *path = path_of(recipe, "snapshots/*");
  tutti_source_element_files(recipe->pipeline, &path, 1);
}

static void text_ops(struct recipe *recipe) {
  lines(recipe);
  tutti_pipeline_map_graph(recipe->pipeline, scenario_text_ops, NULL, 2);
}

static void table(struct recipe *recipe) {
  const char *path = path_of(recipe, "people.csv");
  tutti_source_csv_attrs attrs = {
      .columns = (const char *const[]){"name: bytes", "age: i64 = -1", "weight: f32 = 0.25"},
      .columns_count = 3,
      .labels = (const char *const[]){"age"},
      .labels_count = 1,
      .missing = (const char *const[]){"NA"},
      .missing_count = 1};
  tutti_source_csv(recipe->pipeline, &path, 1, &attrs);
}

static void examples(struct recipe *recipe) {
  const char *path = path_of(recipe, "examples.tfrecord");
  const char *const features[] = {"id: i64", "box: f32[2] = 0.5", "words: bytes[?]"};
  tutti_source_tfrecord(recipe->pipeline, &path, 1, NULL);
  tutti_pipeline_parse_example(recipe->pipeline, features, 3, NULL);
}

static void sequences(struct recipe *recipe) {
  const char *path = path_of(recipe, "sequences.tfrecord");
  const char *const features[] = {"frames: f32[2]", "tags: bytes[?]"};
  tutti_pipeline_parse_sequence_example_attrs attrs = {.context = (const char *const[]){"id: i64"}, .context_count = 1};
  tutti_source_tfrecord(recipe->pipeline, &path, 1, NULL);
  tutti_pipeline_parse_sequence_example(recipe->pipeline, features, 2, &attrs);
}

static int32_t augment(tutti_graph *graph, void *user, tutti_error **err) {
  (void)user, (void)err;
  tutti_resize_attrs area = {.method = TUTTI_RESIZE_METHOD_AREA};
  tutti_random_flip_attrs keyed = {.key = 7};
  tutti_value pixels = tutti_decode_png(graph, tutti_graph_get_feature(graph, "image"), NULL);
  pixels = tutti_resize(graph, pixels, (const int64_t[]){2, 3}, &area);
  tutti_graph_set_output(graph, "image", tutti_random_flip(graph, pixels, &keyed));
  return TUTTI_OK;
}

static void images(struct recipe *recipe) {
  const char *path = path_of(recipe, "images.tfrecord");
  const char *const features[] = {"id: i64", "image: bytes"};
  tutti_source_tfrecord(recipe->pipeline, &path, 1, NULL);
  tutti_pipeline_parse_example(recipe->pipeline, features, 2, NULL);
  tutti_pipeline_map_graph(recipe->pipeline, augment, NULL, 2);
}

/* Of each example the components that are asked for. */
static void files_of_images(struct recipe *recipe, const char *const *features, int64_t count) {
  const char *path = path_of(recipe, "images.tfrecord");
  tutti_source_tfrecord(recipe->pipeline, &path, 1, NULL);
  tutti_pipeline_parse_example(recipe->pipeline, features, count, NULL);
}

static void image_ops(struct recipe *recipe) {
  files_of_images(recipe, (const char *const[]){"image: bytes", "photo: bytes"}, 2);
  tutti_pipeline_map_graph(recipe->pipeline, scenario_image_ops, NULL, 2);
}

static void image_mixes(struct recipe *recipe) {
  files_of_images(recipe, (const char *const[]){"id: i64", "photo: bytes"}, 2);
  tutti_pipeline_map_graph(recipe->pipeline, scenario_plain_images, NULL, 2);
  tutti_pipeline_batch(recipe->pipeline, 2, NULL);
  tutti_pipeline_map_graph(recipe->pipeline, scenario_mixes, NULL, 1);
}

static const struct {
  const char *name;
  void (*write)(struct recipe *recipe);
} recipes[] = {
    {"turns", turns},
    {"sums", sums_by_function},
    {"sums_graph", sums_by_graph},
    {"below", below},
    {"odd", odd},
    {"pairs", pairs},
    {"passes", passes},
    {"sample", sample},
    {"buckets", lines_by_length},
    {"cached", lines_in_a_cache},
    {"snapshot", lines_in_a_snapshot},
    {"snapshot_files", files_of_the_snapshot},
    {"csv", table},
    {"examples", examples},
    {"sequences", sequences},
    {"images", images},
    {"text_ops", text_ops},
    {"image_ops", image_ops},
    {"image_mixes", image_mixes},
};

int32_t scenario_pipeline(tutti_context *context, const char *name, const char *folder, tutti_dataset **out,
                          tutti_error **err) {
  struct recipe recipe = {.context = context, .folder = folder};
  int32_t code = tutti_pipeline_create(context, &recipe.pipeline, err);
  if (code != TUTTI_OK) return code;
  for (size_t i = 0; i < sizeof recipes / sizeof *recipes; i++) {
    if (strcmp(recipes[i].name, name) == 0) recipes[i].write(&recipe);
  }
  code = tutti_pipeline_build(recipe.pipeline, out, err);
  tutti_pipeline_unref(recipe.pipeline);
  return code;
}

/* --- elements ----------------------------------------------------------------------------------------------------- */

static void print_value(const tutti_tensor *tensor, int64_t index) {
  const void *data = tutti_tensor_get_data(tensor);
  switch (tutti_tensor_get_dtype(tensor)) {
    case TUTTI_DTYPE_I64:
      printf(" %" PRId64, ((const int64_t *)data)[index]);
      break;
    case TUTTI_DTYPE_U8:
      printf(" %d", ((const uint8_t *)data)[index]);
      break;
    case TUTTI_DTYPE_F32:
      printf(" %.5f", (double)((const float *)data)[index]);
      break;
    default:
      printf(" \"%.*s\"", (int)tutti_tensor_get_element_size(tensor, index),
             (const char *)tutti_tensor_get_element_data(tensor, index));
  }
}

static void print_component(const char *name, const tutti_tensor *tensor) {
  int64_t rank = tutti_tensor_get_rank(tensor);
  printf("%s", name);
  for (int64_t i = 0; i < rank; i++)
    printf(i == 0 ? " [%" PRId64 : " %" PRId64, tutti_tensor_get_dim(tensor, i));
  if (rank > 0) printf("]");
  for (int64_t i = 0; i < tutti_tensor_get_element_count(tensor); i++)
    print_value(tensor, i);
}

int32_t scenario_read(const tutti_dataset *dataset, int64_t seed, tutti_error **err) {
  tutti_iterator *iterator = NULL;
  uint8_t has_element = 1;
  int32_t code = tutti_iterator_create(dataset, seed, &iterator, err);
  while (code == TUTTI_OK) {
    code = tutti_iterator_next(iterator, NULL, &has_element, err);
    if (code != TUTTI_OK || !has_element) break;
    for (int64_t i = 0; i < tutti_dataset_get_component_count(dataset); i++) {
      printf(i == 0 ? "= " : " | ");
      print_component(tutti_dataset_get_component_name(dataset, i), tutti_iterator_get_component(iterator, i));
    }
    printf("\n");
  }
  tutti_iterator_unref(iterator);
  return code;
}
