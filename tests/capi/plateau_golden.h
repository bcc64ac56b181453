/* SPDX-License-Identifier: Apache-2.0
 * Made by make_plateau_golden.py. */
#ifndef TUTTI_TESTS_CAPI_PLATEAU_GOLDEN_H_
#define TUTTI_TESTS_CAPI_PLATEAU_GOLDEN_H_

enum { PLATEAU_ROWS = 6, PLATEAU_STEPS = 24, PLATEAU_EVERY = 2 };

static const float plateau_x[] = {-1.25, -0.5, 0.25, 0.75, 1.5, 2.0}, plateau_y[] = {0.5, -1.0, 2.0, 1.25, -0.75, 3.0};
static const double plateau_start[] = {2.0, 0.5, -0.25}, plateau_rates[] = {0.7, 0.35, 0.05};

/* Options of schema train, the learning rate of each step, and w, b and c behind the last one. */
static const struct plateau_case {
  const char *options;
  int at_evaluations;
  double rates[PLATEAU_STEPS], parameters[3];
} plateau_cases[] = {
    {/* steps */ "\"plateau_metric\": \"loss\", \"plateau_every_steps\": 1, \"plateau_patience\": 2, "
                 "\"plateau_factor\": 0.5, \"plateau_threshold\": 0.03, \"plateau_cooldown\": 1",
     0,
     {0.7,   0.7,   0.7,   0.7,   0.35,   0.35,   0.35,   0.35,   0.35,    0.35,    0.35,    0.35,
      0.175, 0.175, 0.175, 0.175, 0.0875, 0.0875, 0.0875, 0.0875, 0.04375, 0.04375, 0.04375, 0.04375},
     {0.49809241066931753, 0.5920422176731613, 0.029299050770248074}},
    {/* minimum */ "\"plateau_metric\": \"loss\", \"plateau_every_steps\": 1, \"plateau_patience\": 0, "
                   "\"plateau_factor\": 0.3, \"plateau_threshold\": 0.12, \"plateau_minimum_factor\": 0.05",
     0,
     {0.7,
      0.7,
      0.21,
      0.063,
      0.063,
      0.034999999999999996,
      0.034999999999999996,
      0.034999999999999996,
      0.034999999999999996,
      0.034999999999999996,
      0.034999999999999996,
      0.034999999999999996,
      0.034999999999999996,
      0.034999999999999996,
      0.034999999999999996,
      0.034999999999999996,
      0.034999999999999996,
      0.034999999999999996,
      0.034999999999999996,
      0.034999999999999996,
      0.034999999999999996,
      0.034999999999999996,
      0.034999999999999996,
      0.034999999999999996},
     {0.6577836185754459, 0.7476140763040888, -0.11924123966657506}},
    {/* default_threshold */ "\"plateau_metric\": \"loss\", \"plateau_every_steps\": 3, \"plateau_patience\": 1",
     0,
     {0.7,
      0.7,
      0.7,
      0.7,
      0.7,
      0.7,
      0.7,
      0.7,
      0.7,
      0.06999999999999999,
      0.06999999999999999,
      0.06999999999999999,
      0.06999999999999999,
      0.06999999999999999,
      0.06999999999999999,
      0.006999999999999999,
      0.006999999999999999,
      0.006999999999999999,
      0.006999999999999999,
      0.006999999999999999,
      0.006999999999999999,
      0.0007,
      0.0007,
      0.0007},
     {-2.5586120190495567, -0.16113955832591886, -0.270637544504177}},
    {/* evaluations */ "\"plateau_metric\": \"closeness\", \"plateau_higher_is_better\": true, \"plateau_patience\": "
                       "1, \"plateau_factor\": 0.4, \"plateau_threshold\": 0.02, \"plateau_cooldown\": 2",
     1,
     {0.7,
      0.7,
      0.7,
      0.7,
      0.7,
      0.7,
      0.27999999999999997,
      0.27999999999999997,
      0.27999999999999997,
      0.27999999999999997,
      0.27999999999999997,
      0.27999999999999997,
      0.27999999999999997,
      0.27999999999999997,
      0.11199999999999999,
      0.11199999999999999,
      0.11199999999999999,
      0.11199999999999999,
      0.11199999999999999,
      0.11199999999999999,
      0.11199999999999999,
      0.11199999999999999,
      0.0448,
      0.0448},
     {0.4872141459834925, 0.5739648493974299, 0.04365236466310267}},
};

#endif /* TUTTI_TESTS_CAPI_PLATEAU_GOLDEN_H_ */
