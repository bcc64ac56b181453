// SPDX-License-Identifier: Apache-2.0
//
// Every op with a routine kernel, sorted: ops in routine form alone, then, for dtype bytes, some that also have a
// program form. What is not here is refused when a map is planned. Then those that read only a part of their image.
#include <algorithm>
#include <iterator>

#include "data/routine/kernels.h"

namespace tutti::impl::data {
namespace {

struct KernelEntry {
  std::string_view op;
  RoutineKernelFactory factory;
};

constexpr KernelEntry kKernels[] = {
    {"adjust_brightness", make_adjust_brightness},
    {"adjust_contrast", make_adjust_contrast},
    {"adjust_hue", make_adjust_hue},
    {"adjust_saturation", make_adjust_saturation},
    {"bytes_hash_bucket", make_bytes_hash_bucket},
    {"bytes_join", make_bytes_join},
    {"bytes_length", make_bytes_length},
    {"bytes_lower", make_bytes_lower},
    {"bytes_split", make_bytes_split},
    {"bytes_substring", make_bytes_substring},
    {"bytes_to_number", make_bytes_to_number},
    {"bytes_to_values", make_bytes_to_values},
    {"bytes_tokenize", make_bytes_tokenize},
    {"convert_image_dtype", make_convert_image_dtype},
    {"crop", make_crop},
    {"cutmix", make_cutmix},
    {"decode_image", make_decode_image},
    {"decode_jpeg", make_decode_jpeg},
    {"decode_png", make_decode_png},
    {"equal", make_compare_texts},
    {"flip", make_flip},
    {"identity", make_view},
    {"image_size", make_image_size},
    {"lookup", make_lookup},
    {"mixup", make_mixup},
    {"normalize_image", make_normalize_image},
    {"not_equal", make_compare_texts},
    {"pad_image", make_pad_image},
    {"random_color_jitter", make_random_color_jitter},
    {"random_crop", make_random_crop},
    {"random_crop_window", make_random_crop_window},
    {"random_cutout", make_random_cutout},
    {"random_flip", make_random_flip},
    {"random_resized_crop", make_random_resized_crop},
    {"random_rotate", make_random_rotate},
    {"reshape", make_view},
    {"resize", make_resize},
    {"rotate", make_rotate},
    {"rotate90", make_rotate90},
    {"stop_gradient", make_view},
};
static_assert(std::is_sorted(std::begin(kKernels), std::end(kKernels),
                             [](const KernelEntry &a, const KernelEntry &b) { return a.op < b.op; }),
              "kernels are found by their names' order");

struct WindowEntry {
  std::string_view op;
  RoutineWindowFactory factory;
};

constexpr WindowEntry kWindows[] = {
    {"crop", make_crop_window},
    {"random_crop", make_random_crop_part},
    {"random_resized_crop", make_random_resized_crop_window},
};

}  // namespace

RoutineKernelFactory find_routine_kernel(std::string_view op) {
  const auto *const found =
      std::lower_bound(std::begin(kKernels), std::end(kKernels), op,
                       [](const KernelEntry &entry, std::string_view name) { return entry.op < name; });
  return found != std::end(kKernels) && found->op == op ? found->factory : nullptr;
}

RoutineWindowFactory find_routine_window(std::string_view op) {
  const auto *const found =
      std::find_if(std::begin(kWindows), std::end(kWindows), [&](const WindowEntry &entry) { return entry.op == op; });
  return found != std::end(kWindows) ? found->factory : nullptr;
}

}  // namespace tutti::impl::data
