// SPDX-License-Identifier: Apache-2.0
//
// A port for a server that a test is about to start, in C and C++.
//
//   snprintf(address, sizeof address, "127.0.0.1:%d", free_port());
#ifndef TUTTI_TESTS_FREE_PORT_H_
#define TUTTI_TESTS_FREE_PORT_H_

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

/// The lowest port that the system gives to those who ask for any.
static inline int first_given_port(void) {
  int first = 0;
  FILE *const range = fopen("/proc/sys/net/ipv4/ip_local_port_range", "r");
  if (range == NULL) return 0;
  if (fscanf(range, "%d", &first) != 1) first = 0;
  fclose(range);
  return first;
}

/// One of the loopback that nobody listens at just now. The system gives it to nobody, such as the connections of
/// another test, before the server has it; another one at each call of a process; 0: there is none. Threads: one.
static inline int free_port(void) {
  enum { lowest = 10000, attempts = 100 };
  const int first = first_given_port();
  static uint32_t number = 0;
  if (number == 0 && getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number) return 0;
  for (int i = 0; i < attempts; ++i) {
    ++number;
    struct sockaddr_in address;
    memset(&address, 0, sizeof address);
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (first > lowest) address.sin_port = htons((uint16_t)(lowest + (int)(number % (uint32_t)(first - lowest))));
    socklen_t length = sizeof address;
    const int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int is_bound = bind(descriptor, (struct sockaddr *)&address, length) == 0 &&
                         getsockname(descriptor, (struct sockaddr *)&address, &length) == 0;
    close(descriptor);
    if (is_bound) return ntohs(address.sin_port);
  }
  return 0;
}

#endif  // TUTTI_TESTS_FREE_PORT_H_
