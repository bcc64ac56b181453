// SPDX-License-Identifier: Apache-2.0
//
// Functions that StableHLO lacks, of f32 and f64 values, built from its operations.
#ifndef TUTTI_BACKEND_PJRT_EMIT_SPECIAL_FUNCTIONS_H_
#define TUTTI_BACKEND_PJRT_EMIT_SPECIAL_FUNCTIONS_H_

#include <span>

#include "backend/pjrt/emit/program_text.h"

namespace tutti::impl::backend::pjrt {

/// coefficients[0] + x · (coefficients[1] + x · ...).
Value polynomial(ProgramText &text, const Value &x, std::span<const double> coefficients);

/// erf(x), and erfc(x) = 1 − erf(x) without loss where it is small: W. J. Cody, "Rational Chebyshev approximations for
/// the error function", Mathematics of Computation 23 (1969).
Value error_function(ProgramText &text, const Value &x);
Value complementary_error_function(ProgramText &text, const Value &x);

/// tanh(x): the device's own for f32. For f64 it is made of exponentials, so that 1 − tanh²(x) keeps its digits.
Value hyperbolic_tangent(ProgramText &text, const Value &x);

/// The normal distribution function: Φ(x) = erfc(−x / √2) / 2.
Value normal_distribution(ProgramText &text, const Value &x);

/// The quantile function of the standard normal, of f64 in (0, 1): M. J. Wichura, AS 241 (1988), the function that
/// base::normal_quantile computes on the host.
Value normal_quantile(ProgramText &text, const Value &p);

}  // namespace tutti::impl::backend::pjrt

#endif  // TUTTI_BACKEND_PJRT_EMIT_SPECIAL_FUNCTIONS_H_
