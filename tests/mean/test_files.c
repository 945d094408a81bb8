/* SPDX-License-Identifier: Apache-2.0 */
/* The readers of .npy and .safetensors: what the specifications allow, and hostile bytes. */
#include "../../tools/mean/vectors.h"
#include "unit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A .npy file of version 1 with this dictionary and n bytes of data; returns its size. */
static size_t npy(unsigned char *out, int version, const char *dictionary, const void *data, size_t n)
{
    size_t length = strlen(dictionary), at = 0;
    memcpy(out, "\x93NUMPY", 6);
    out[6] = (unsigned char)version;
    out[7] = 0;
    for (at = 8; at < (version > 1 ? 12u : 10u); at++)
        out[at] = (unsigned char)(length >> (8 * (at - 8)));
    memcpy(out + at, dictionary, length);
    memcpy(out + at + length, data, n);
    return at + length + n;
}

static size_t safetensors(unsigned char *out, const char *json, const void *data, size_t n)
{
    size_t length = strlen(json);
    for (int i = 0; i < 8; i++)
        out[i] = (unsigned char)(length >> (8 * i));
    memcpy(out + 8, json, length);
    memcpy(out + 8 + length, data, n);
    return 8 + length + n;
}

typedef int parser(const unsigned char *bytes, size_t size, tool_vector *v, char error[TOOL_ERROR_TEXT]);

/* Parses a copy of exactly `size` bytes, so that a sanitizer sees the first byte read beyond it. */
static int parse(parser *p, const unsigned char *bytes, size_t size, tool_vector *v)
{
    unsigned char *copy = malloc(size ? size : 1);
    char error[TOOL_ERROR_TEXT] = "";
    memcpy(copy, bytes, size);
    *v = (tool_vector){0};
    int result = p(copy, size, v, error);
    free(copy);
    if (result) {
        assert_true(strlen(error) > 0);
        tool_vector_free(v);
    }
    return result;
}

static void npy_headers_that_numpy_writes(void **state)
{
    (void)state;
    const float x[6] = {1, 2, 3, -4, 0.5f, 6};
    const char *good[] = {
        "{'descr': '<f4', 'fortran_order': False, 'shape': (6,), }      \n",
        "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }\n",
        "{\"shape\": (3L, 2L), 'fortran_order':False,'descr':'<f4'}",
    };
    for (int version = 1; version <= 3; version++)
        for (unsigned i = 0; i < sizeof good / sizeof *good; i++) {
            unsigned char bytes[256];
            tool_vector v;
            size_t size = npy(bytes, version, good[i], x, sizeof x);
            assert_int_equal(parse(tool_npy_parse, bytes, size, &v), 0);
            assert_int_equal(v.dtype, COSET_F32);
            assert_int_equal(v.count, 6);
            assert_memory_equal(v.data, x, sizeof x);
            tool_vector_free(&v);
        }
}

static void scalars_and_empty_arrays(void **state)
{
    (void)state;
    const double x = 2.5;
    unsigned char bytes[256];
    tool_vector v;
    size_t size = npy(bytes, 1, "{'descr': '<f8', 'fortran_order': False, 'shape': (), }", &x, sizeof x);
    assert_int_equal(parse(tool_npy_parse, bytes, size, &v), 0);
    assert_int_equal(v.count, 1);
    assert_true(tool_vector_at(v.dtype, v.data, 0) == 2.5);
    tool_vector_free(&v);
    size = npy(bytes, 1, "{'descr': '<f8', 'fortran_order': False, 'shape': (0, 5), }", &x, 0);
    assert_int_equal(parse(tool_npy_parse, bytes, size, &v), 0);
    assert_int_equal(v.count, 0);
    tool_vector_free(&v);
}

static void npy_that_lies_is_refused(void **state)
{
    (void)state;
    const char *bad[] = {
        "",
        "{",
        "{}",
        "{'descr': '>f4', 'fortran_order': False, 'shape': (2,), }",
        "{'descr': '|O', 'fortran_order': False, 'shape': (2,), }",
        "{'descr': '<i8', 'fortran_order': False, 'shape': (1,), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (18446744073709551616,), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': 2, }",
        "{'descr': '<f4', 'fortran_order': False, }",
        "{'descr': '<f4', 'shape': (2,), }",
        "{'descr': '<f4', 'fortran_order': 0, 'shape': (2,), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'x': 1}",
        "{'descr': '<f4444444444444444444444', 'fortran_order': False, 'shape': (2,), }",
    };
    const float x[2] = {1, 2};
    for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++) {
        unsigned char bytes[256];
        tool_vector v;
        size_t size = npy(bytes, 1, bad[i], x, sizeof x);
        assert_int_equal(parse(tool_npy_parse, bytes, size, &v), -1);
    }
}

static void other_lengths_are_refused(void **state)
{
    (void)state;
    const float x[2] = {1, 2};
    unsigned char bytes[512];
    tool_vector v;
    size_t size = npy(bytes, 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", x, sizeof x);
    for (size_t n = 0; n < size; n++)
        assert_int_equal(parse(tool_npy_parse, bytes, n, &v), -1);
    for (size_t n = size + 1; n < sizeof bytes; n++) /* nor may anything follow the elements */
        assert_int_equal(parse(tool_npy_parse, bytes, n, &v), -1);
    size = safetensors(bytes, "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", x, sizeof x);
    for (size_t n = 0; n < size; n++)
        assert_int_equal(parse(tool_safetensors_parse, bytes, n, &v), -1);
}

static void safetensors_in_order_of_names(void **state)
{
    (void)state;
    const float x[3] = {1, 2, 3};
    unsigned char bytes[512];
    tool_vector v;
    size_t size = safetensors(bytes,
                              "{\"__metadata__\":{\"by\":\"test\"},"
                              "\"w\":{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[0,8]},"
                              "\"b\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[8,12]}}   ",
                              x, sizeof x);
    assert_int_equal(parse(tool_safetensors_parse, bytes, size, &v), 0);
    assert_int_equal(v.ntensors, 2);
    assert_string_equal(v.tensors[0].name, "b");
    assert_int_equal(v.tensors[1].count, 2);
    const float want[3] = {3, 1, 2};
    assert_memory_equal(v.data, want, sizeof want);
    tool_vector_free(&v);
}

static void mixed_types_are_widened(void **state)
{
    (void)state;
    unsigned char data[8] = {0x80, 0x3f, 0, 0x3c}; /* bf16 1.0, f16 1.0 */
    const float two = 2;
    memcpy(data + 4, &two, 4);
    unsigned char bytes[512];
    tool_vector v;
    size_t size = safetensors(bytes,
                              "{\"a\":{\"dtype\":\"BF16\",\"shape\":[1],\"data_offsets\":[0,2]},"
                              "\"b\":{\"dtype\":\"F16\",\"shape\":[1],\"data_offsets\":[2,4]},"
                              "\"c\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}",
                              data, sizeof data);
    assert_int_equal(parse(tool_safetensors_parse, bytes, size, &v), 0);
    assert_int_equal(v.dtype, COSET_F32);
    const float want[3] = {1, 1, 2};
    assert_memory_equal(v.data, want, sizeof want);
    tool_vector_free(&v);
}

static void safetensors_that_lie_are_refused(void **state)
{
    (void)state;
    const char *bad[] = {
        "",
        "[]",
        "{",
        "nonsense",
        "{\"a\":1}",
        "{\"a\":{}}",
        "{\"a\":{\"dtype\":\"I64\",\"shape\":[1],\"data_offsets\":[0,8]}}",
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,12]}}",
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[4,12]}}",
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,0]}}",
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[-2],\"data_offsets\":[0,8]}}",
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[1.5],\"data_offsets\":[0,8]}}",
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[4611686018427387904,4],\"data_offsets\":[0,8]}}",
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[1e300],\"data_offsets\":[0,8]}}",
        "{\"a\":{\"dtype\":\"F32\",\"shape\":\"2\",\"data_offsets\":[0,8]}}",
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}",
    };
    const float x[2] = {1, 2};
    for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++) {
        unsigned char bytes[512];
        tool_vector v;
        size_t size = safetensors(bytes, bad[i], x, sizeof x);
        assert_int_equal(parse(tool_safetensors_parse, bytes, size, &v), -1);
    }
    unsigned char huge[16];
    memset(huge, 0xff, sizeof huge);
    tool_vector v;
    assert_int_equal(parse(tool_safetensors_parse, huge, sizeof huge, &v), -1);
}

static void what_is_written_is_read(void **state)
{
    (void)state;
    char path[] = "/tmp/coset_files_XXXXXX.npy", error[TOOL_ERROR_TEXT];
    int fd = mkstemps(path, 4);
    assert_true(fd >= 0);
    close(fd);
    const double x[3] = {1, -2.5, INFINITY};
    assert_int_equal(tool_npy_write(path, COSET_F64, x, 3, error), 0);
    tool_vector v;
    assert_int_equal(tool_vector_read(path, &v, error), 0);
    assert_int_equal(v.dtype, COSET_F64);
    assert_memory_equal(v.data, x, sizeof x);
    tool_vector_free(&v);
    unlink(path);
    assert_int_equal(tool_vector_read(path, &v, error), -1);
    assert_int_equal(tool_vector_read("vector.txt", &v, error), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(npy_headers_that_numpy_writes),    cmocka_unit_test(scalars_and_empty_arrays),
        cmocka_unit_test(npy_that_lies_is_refused),         cmocka_unit_test(other_lengths_are_refused),
        cmocka_unit_test(safetensors_in_order_of_names),    cmocka_unit_test(mixed_types_are_widened),
        cmocka_unit_test(safetensors_that_lie_are_refused), cmocka_unit_test(what_is_written_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
