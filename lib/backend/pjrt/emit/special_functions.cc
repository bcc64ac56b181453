// SPDX-License-Identifier: Apache-2.0
#include "backend/pjrt/emit/special_functions.h"

#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "base/random/normal_coefficients.h"

namespace tutti::impl::backend::pjrt {

namespace {

// Cody's coefficients: of x² for |x| <= 0.46875, of |x| up to 4, of 1/x² beyond.
constexpr double kErfTop[] = {3.20937758913846947e03, 3.77485237685302021e02, 1.13864154151050156e02,
                              3.16112374387056560e00, 1.85777706184603153e-1};
constexpr double kErfBottom[] = {2.84423683343917062e03, 1.28261652607737228e03, 2.44024637934444173e02,
                                 2.36012909523441209e01, 1.0};
constexpr double kErfcTop[] = {1.23033935479799725e03, 2.05107837782607147e03, 1.71204761263407058e03,
                               8.81952221241769090e02, 2.98635138197400131e02, 6.61191906371416295e01,
                               8.88314979438837594e00, 5.64188496988670089e-1, 2.15311535474403846e-8};
constexpr double kErfcBottom[] = {1.23033935480374942e03, 3.43936767414372164e03, 4.36261909014324716e03,
                                  3.29079923573345963e03, 1.62138957456669019e03, 5.37181101862009858e02,
                                  1.17693950891312499e02, 1.57449261107098347e01, 1.0};
constexpr double kErfcTailTop[] = {6.58749161529837803e-4, 1.60837851487422766e-2, 1.25781726111229246e-1,
                                   3.60344899949804439e-1, 3.05326634961232344e-1, 1.63153871373020978e-2};
constexpr double kErfcTailBottom[] = {2.33520497626869185e-3, 6.05183413124413191e-2, 5.27905102951428412e-1,
                                      1.87295284992346725e00, 2.56852019228982242e00, 1.0};
constexpr double kNear = 0.46875, kFar = 4, kVanished = 27;

Value ratio(ProgramText &text, const Value &x, std::span<const double> top, std::span<const double> bottom) {
  return text.div(polynomial(text, x, top), polynomial(text, x, bottom));
}

/// exp(−y²) of y >= 0, whose square is rounded: the rest of it is put right by a second factor.
Value exp_of_square(ProgramText &text, const Value &y) {
  const Value steps = text.mul(text.unary("floor", text.mul(y, 16)), 1.0 / 16);
  const Value rest = text.mul(text.sub(y, steps), text.add(y, steps));
  const Value first = text.unary("exponential", text.unary("negate", text.mul(steps, steps)));
  return text.mul(first, text.unary("exponential", text.unary("negate", rest)));
}

/// What both functions are made of.
struct ErrorParts {
  Value near;  ///< erf(x) where |x| <= kNear
  Value far;   ///< erfc(|x|) elsewhere
  Value is_near;
};

ErrorParts error_parts(ProgramText &text, const Value &x) {
  const Value distance = text.unary("abs", x);
  ErrorParts parts;
  parts.is_near = text.compare("LE", distance, kNear);
  parts.near = text.mul(x, ratio(text, text.mul(x, x), kErfTop, kErfBottom));
  // Bounded, so that no intermediate number is infinite; not a number stays.
  const Value least = text.binary("maximum", distance, text.like(x, kNear));
  const Value y = text.binary("minimum", least, text.like(x, kVanished));
  const Value middle = ratio(text, y, kErfcTop, kErfcBottom);
  const Value inverse = text.div(text.like(y, 1), text.mul(y, y));
  const Value tail = text.mul(inverse, ratio(text, inverse, kErfcTailTop, kErfcTailBottom));
  const Value limit = text.like(y, std::numbers::inv_sqrtpi);
  const Value far = text.div(text.sub(limit, tail), y);
  parts.far = text.mul(exp_of_square(text, y), text.select(text.compare("LE", y, kFar), middle, far));
  return parts;
}

}  // namespace

Value polynomial(ProgramText &text, const Value &x, std::span<const double> coefficients) {
  Value sum = text.like(x, coefficients.back());
  for (size_t i = coefficients.size() - 1; i-- > 0;)
    sum = text.add(text.mul(sum, x), coefficients[i]);
  return sum;
}

Value error_function(ProgramText &text, const Value &x) {
  const ErrorParts parts = error_parts(text, x);
  const Value magnitude = text.sub(text.like(x, 1), parts.far);
  const Value is_negative = text.compare("LT", x, 0);
  const Value far = text.select(is_negative, text.unary("negate", magnitude), magnitude);
  return text.select(parts.is_near, parts.near, far);
}

Value complementary_error_function(ProgramText &text, const Value &x) {
  const ErrorParts parts = error_parts(text, x);
  const Value is_negative = text.compare("LT", x, 0);
  const Value far = text.select(is_negative, text.sub(text.like(x, 2), parts.far), parts.far);
  return text.select(parts.is_near, text.sub(text.like(x, 1), parts.near), far);
}

Value hyperbolic_tangent(ProgramText &text, const Value &x) {
  if (x.dtype != tensor::DType::f64) return text.unary("tanh", x);
  const Value distance = text.unary("abs", x);
  const Value falling = text.unary("exponential_minus_one", text.mul(distance, -2));
  const Value near = text.unary("negate", text.div(falling, text.add(falling, 2)));
  const Value rising = text.add(text.unary("exponential", text.mul(distance, 2)), 1);
  const Value far = text.sub(text.like(x, 1), text.div(text.like(x, 2), rising));
  const Value magnitude = text.select(text.compare("LT", distance, 0.5), near, far);
  return text.select(text.compare("LT", x, 0), text.unary("negate", magnitude), magnitude);
}

Value normal_distribution(ProgramText &text, const Value &x) {
  return text.mul(complementary_error_function(text, text.mul(x, -std::numbers::sqrt2 / 2)), 0.5);
}

Value normal_quantile(ProgramText &text, const Value &p) {
  using namespace base::normal_coefficients;
  const Value q = text.add(p, -0.5);
  const Value centre_r = text.sub(text.like(q, 0.180625), text.mul(q, q));
  const Value centre = text.mul(q, ratio(text, centre_r, kCentreTop, kCentreBottom));
  const Value tail = text.binary("minimum", p, text.sub(text.like(p, 1), p));
  const Value r = text.unary("sqrt", text.unary("negate", text.unary("log", tail)));
  const Value middle = ratio(text, text.add(r, -1.6), kMiddleTop, kMiddleBottom);
  const Value far = ratio(text, text.add(r, -5), kTailTop, kTailBottom);
  const Value magnitude = text.select(text.compare("LE", r, 5), middle, far);
  const Value outer = text.select(text.compare("LT", q, 0), text.unary("negate", magnitude), magnitude);
  return text.select(text.compare("LE", text.unary("abs", q), 0.425), centre, outer);
}

}  // namespace tutti::impl::backend::pjrt
