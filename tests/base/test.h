/* SPDX-License-Identifier: Apache-2.0 */
/* cmocka, with the headers that it needs before it. */
#ifndef COSET_TESTS_BASE_TEST_H
#define COSET_TESTS_BASE_TEST_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#endif
