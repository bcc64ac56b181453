/* SPDX-License-Identifier: Apache-2.0
 *
 * What scenarios of loops of one's own do (scenarios.txt says what the lines mean), in C. */
#ifndef TUTTI_TESTS_BINDINGS_SCENARIO_LOOPS_H_
#define TUTTI_TESTS_BINDINGS_SCENARIO_LOOPS_H_

#include "scenario.h"

/* A session whose steps are batches of `sizes` rows, of at most `most`, that come by a feed; prints what each gives. */
int32_t scenario_loop(struct scenario *s, int64_t most, const int64_t *sizes, int count, tutti_error **err);

#endif /* TUTTI_TESTS_BINDINGS_SCENARIO_LOOPS_H_ */
