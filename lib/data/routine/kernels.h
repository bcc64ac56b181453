// SPDX-License-Identifier: Apache-2.0
//
// The kernel factories of the Routine, by file. kernel_list.cc says which op takes which.
#ifndef TUTTI_DATA_ROUTINE_KERNELS_H_
#define TUTTI_DATA_ROUTINE_KERNELS_H_

#include "data/graph/routine_kernel.h"

namespace tutti::impl::data {

// decode_image.cc
base::Result<RoutineKernel> make_decode_jpeg(const RoutineNode &node);
base::Result<RoutineKernel> make_decode_png(const RoutineNode &node);
base::Result<RoutineKernel> make_decode_image(const RoutineNode &node);
base::Result<RoutineKernel> make_image_size(const RoutineNode &node);

// resize.cc
base::Result<RoutineKernel> make_resize(const RoutineNode &node);

// geometry.cc
base::Result<RoutineKernel> make_crop(const RoutineNode &node);
base::Result<RoutineWindow> make_crop_window(const RoutineNode &node);
base::Result<RoutineKernel> make_pad_image(const RoutineNode &node);
base::Result<RoutineKernel> make_flip(const RoutineNode &node);
base::Result<RoutineKernel> make_rotate90(const RoutineNode &node);
base::Result<RoutineKernel> make_rotate(const RoutineNode &node);
base::Result<RoutineKernel> make_random_rotate(const RoutineNode &node);
base::Result<RoutineKernel> make_random_crop(const RoutineNode &node);
base::Result<RoutineWindow> make_random_crop_part(const RoutineNode &node);
base::Result<RoutineKernel> make_random_flip(const RoutineNode &node);
base::Result<RoutineKernel> make_random_cutout(const RoutineNode &node);

// random_window.cc
base::Result<RoutineKernel> make_random_resized_crop(const RoutineNode &node);
base::Result<RoutineWindow> make_random_resized_crop_window(const RoutineNode &node);
base::Result<RoutineKernel> make_random_crop_window(const RoutineNode &node);

// adjust.cc
base::Result<RoutineKernel> make_convert_image_dtype(const RoutineNode &node);
base::Result<RoutineKernel> make_normalize_image(const RoutineNode &node);
base::Result<RoutineKernel> make_adjust_brightness(const RoutineNode &node);
base::Result<RoutineKernel> make_adjust_contrast(const RoutineNode &node);
base::Result<RoutineKernel> make_adjust_saturation(const RoutineNode &node);
base::Result<RoutineKernel> make_adjust_hue(const RoutineNode &node);
base::Result<RoutineKernel> make_random_color_jitter(const RoutineNode &node);

// mix_rows.cc
base::Result<RoutineKernel> make_mixup(const RoutineNode &node);
base::Result<RoutineKernel> make_cutmix(const RoutineNode &node);

// texts.cc
base::Result<RoutineKernel> make_bytes_length(const RoutineNode &node);
base::Result<RoutineKernel> make_bytes_substring(const RoutineNode &node);
base::Result<RoutineKernel> make_bytes_lower(const RoutineNode &node);
base::Result<RoutineKernel> make_bytes_split(const RoutineNode &node);
base::Result<RoutineKernel> make_bytes_tokenize(const RoutineNode &node);
base::Result<RoutineKernel> make_bytes_join(const RoutineNode &node);

// text_values.cc
base::Result<RoutineKernel> make_bytes_to_number(const RoutineNode &node);
base::Result<RoutineKernel> make_bytes_to_values(const RoutineNode &node);
base::Result<RoutineKernel> make_bytes_hash_bucket(const RoutineNode &node);
base::Result<RoutineKernel> make_lookup(const RoutineNode &node);
base::Result<RoutineKernel> make_compare_texts(const RoutineNode &node);

// bytes_shapes.cc
base::Result<RoutineKernel> make_view(const RoutineNode &node);

}  // namespace tutti::impl::data

#endif  // TUTTI_DATA_ROUTINE_KERNELS_H_
