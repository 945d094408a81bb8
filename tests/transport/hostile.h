/* SPDX-License-Identifier: Apache-2.0 */
/* A peer that writes whatever it likes into the shared memory of a channel: it must not get further than an error. */
#ifndef CST_TESTS_HOSTILE_H
#define CST_TESTS_HOSTILE_H
#include <stddef.h>
#include <stdint.h>

/* Plays `bytes` of script against an honest rank that sends and receives; aborts if a promise is broken. */
void hostile_channel(const uint8_t *script, size_t bytes);
#endif
