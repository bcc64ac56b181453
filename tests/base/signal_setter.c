/* SPDX-License-Identifier: Apache-2.0
 * A library that takes signals as it is loaded, as some do. */
#include <signal.h>
#include <stddef.h>

static void ignore(int number) { (void)number; }

__attribute__((constructor)) static void take(void) {
  const int numbers[] = {SIGSEGV, SIGUSR2};
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
    signal(numbers[i], ignore);
}

__attribute__((visibility("default"))) int tutti_signal_setter(void) { return 1; }
