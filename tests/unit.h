/* SPDX-License-Identifier: Apache-2.0 */
/* What every cmocka program includes, in the order that cmocka asks for. */
#ifndef CST_TESTS_UNIT_H
#define CST_TESTS_UNIT_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#endif
