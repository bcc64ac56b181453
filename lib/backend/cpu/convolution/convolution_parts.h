// SPDX-License-Identifier: Apache-2.0
//
// A convolution for several threads, put together from convolutions of one thread each: nobody's thread pool but the
// team's (team.h) is used, and the results repeat for a given number of threads.
//
//   forward           by images; with fewer images than threads, by lines of row-major images and by blocks of output
//                     channels of blocked ones. Bitwise what one thread computes.
//   input_gradient    by images; the same.
//   kernel_gradient   by images: partial gradients, added up in order.
//
// What is too small, or cannot be cut, stays whole. With request.image_parts a convolution is cut into just so many
// parts of images, whatever the threads: a stage (image_stage.h). Immutable once made.
#ifndef TUTTI_BACKEND_CPU_CONVOLUTION_CONVOLUTION_PARTS_H_
#define TUTTI_BACKEND_CPU_CONVOLUTION_CONVOLUTION_PARTS_H_

#include <functional>
#include <memory>

#include "backend/cpu/dnnl/dnnl_convolution.h"
#include "base/status.h"

namespace tutti::impl::backend::cpu {

/// Makes a plan for one thread.
using ConvolutionMaker =
    std::function<base::Result<std::shared_ptr<const ConvolutionPlan>>(const ConvolutionRequest &)>;

/// A plan for request.threads threads; UNIMPLEMENTED where image_parts are asked for and cannot be had.
/// `transforms_kernel`: each part works on the whole kernel first, so there should be no more than needed. Scratch is
/// needed for each thread, and for all but one partial gradient.
base::Result<std::shared_ptr<const ConvolutionPlan>> make_convolution_parts(const ConvolutionRequest &request,
                                                                            bool transforms_kernel,
                                                                            const ConvolutionMaker &make_one);

}  // namespace tutti::impl::backend::cpu

#endif  // TUTTI_BACKEND_CPU_CONVOLUTION_CONVOLUTION_PARTS_H_
