/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The wire format stays what it is: jobs of two and three ranks send today the bytes of tests/codec/golden, at every processor level,
 * and one rank that hears the golden bytes of the others gets the golden outputs and state.
 *
 * usage: codec_golden FOLDER [--write]
 */
#include "codec/golden.h"
#include "codec/wire.h"
#include "cpu/cpu.h"
#include "unit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *folder;

/* ---- the jobs ---- */

/* A spread that jumps up and falls again. */
static double jumps(int call, int rank, int span, size_t i, double common, double own)
{
    (void)rank;
    (void)span;
    (void)i;
    return 10 * common + (call == 1 ? 6 : 1) * own;
}

/* Tensor 1: no mean, and once an infinity. Tensor 2: zero, and then not. Tensor 3: alike on all ranks, and then not. */
static double kinds(int call, int rank, int span, size_t i, double common, double own)
{
    if (span == 0)
        return rank == 1 && i == 5 && call == 1 ? (double)INFINITY : own;
    double early = span == 1 ? 0 : common;
    return call < 2 ? early : 3 * common + own;
}

static double wide(int call, int rank, int span, size_t i, double common, double own)
{
    (void)rank;
    (void)i;
    double spread = span == 1 && call == 1 ? 1e5 : 1;
    return 1e9 + 1e8 * common + spread * own;
}

static double steady(int call, int rank, int span, size_t i, double common, double own)
{
    (void)call;
    (void)rank;
    (void)span;
    (void)i;
    return 3 * common + own;
}

static const golden_job jobs[] = {
    {"sketch", NULL, NULL, 0, 0, 0, COSET_F32, 3, 2, {1024, 0, 0}, steady},
    {"z", "lattice:z", NULL, 0, 0, 0, COSET_F32, 3, 2, {60, 0, 0}, jumps},
    {"e8", "lattice:e8", NULL, 0, 0, 0, COSET_F32, 3, 3, {60, 0, 0}, jumps},
    {"kinds", NULL, NULL, 0, 0, 0, COSET_F32, 2, 3, {60, 20, 20}, kinds},
    {"wide", NULL, NULL, 0, 0, 0, COSET_F64, 2, 2, {30, 20, 0}, wide},
    {"homomorphic", NULL, "homomorphic", 0, 0, 0, COSET_F32, 3, 3, {100, 0, 0}, jumps},
    {"star", NULL, "star", 4, 60, 0, COSET_F32, 3, 2, {56, 0, 0}, steady},
    {"robust", NULL, "robust", 4, 0, 1, COSET_F32, 3, 2, {30, 0, 0}, steady},
    {"eden", "eden", NULL, 4, 0, 0, COSET_F32, 3, 2, {100, 20, 0}, steady},
};
enum { JOBS = sizeof jobs / sizeof *jobs };

/* ---- files ---- */

static FILE *file_of(const golden_job *job, const char *mode)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.bin", folder, job->name);
    FILE *f = fopen(path, mode);
    if (!f)
        fail_msg("cannot open %s", path);
    return f;
}

static golden_tape load(const golden_job *job)
{
    enum { MOST = 1 << 20 };
    FILE *f = file_of(job, "rb");
    golden_tape tape = {malloc(MOST), 0};
    assert_non_null(tape.at);
    tape.bytes = fread(tape.at, 1, MOST, f);
    assert_int_equal(fgetc(f), EOF);
    fclose(f);
    return tape;
}

static void store(const golden_job *job)
{
    golden_tape tape = golden_record(job);
    FILE *f = file_of(job, "wb");
    assert_int_equal(fwrite(tape.at, 1, tape.bytes, f), tape.bytes);
    assert_int_equal(fclose(f), 0);
    printf("%s: %zu bytes\n", job->name, tape.bytes);
    free(tape.at);
}

/* ---- facts ---- */

static void all_together_write_the_file(void **state)
{
    (void)state;
    for (int j = 0; j < JOBS; j++) {
        golden_tape want = load(&jobs[j]), got = golden_record(&jobs[j]);
        assert_int_equal(got.bytes, want.bytes);
        assert_memory_equal(got.at, want.at, want.bytes);
        free(want.at);
        free(got.at);
    }
}

static void each_alone_at_every_level(void **state)
{
    (void)state;
    const cst_cpu levels[CST_CPU_COUNT] = {CST_CPU_SCALAR, CST_CPU_AVX2, CST_CPU_AVX512, CST_CPU_NEON};
    const cst_cpu best = cst_cpu_level();
    for (int l = 0; l < CST_CPU_COUNT; l++) {
        if (!cst_cpu_has(levels[l]))
            continue;
        cst_cpu_set_for_test(levels[l]);
        for (int j = 0; j < JOBS; j++) {
            golden_tape tape = load(&jobs[j]);
            for (int r = 0; r < jobs[j].ranks; r++)
                golden_replay(&jobs[j], &tape, r);
            free(tape.at);
        }
        printf("%s: the golden bytes\n", cst_cpu_name(levels[l]));
    }
    cst_cpu_set_for_test(best);
}

/* What occurs in frames with a full header. */
typedef struct {
    unsigned kinds[CST_FRAME_COLOURS + 1], codes[2][CST_CODE_COUNT], asks[CST_ASK_REFINE + 1];
    unsigned same, digits, whole; /* EXACT of class 1, PLAIN of up to 16 bits, PLAIN of more */
} seen;

static void look(seen *s, const uint8_t *frame, size_t bytes)
{
    cst_frame_header h;
    coset_error why = COSET_ERROR_INIT;
    if (bytes < CST_FRAME_HEADER || memcmp(frame, "CSTF", 4) != 0)
        return;
    if (cst_frame_open(frame, bytes, &h, &why))
        fail_msg("%s", why.text);
    s->kinds[h.kind]++;
    if (h.kind != CST_FRAME_UP && h.kind != CST_FRAME_DOWN)
        return;
    for (uint32_t i = 0; i < h.blocks; i++) {
        cst_block_desc d;
        cst_reader r = cst_reader_of(frame + CST_FRAME_HEADER + 4 * (size_t)i, 4);
        assert_true(cst_desc_unpack(cst_get32(&r), &d));
        s->codes[h.kind == CST_FRAME_DOWN][d.code]++;
        s->same += d.code == CST_CODE_EXACT && d.class == CST_CLASS_SAME;
        s->digits += d.code == CST_CODE_PLAIN && d.class <= 16;
        s->whole += d.code == CST_CODE_PLAIN && d.class > 16;
    }
    for (uint32_t i = 0; i < h.requests; i++) {
        cst_request ask;
        assert_true(cst_request_read(frame + h.payload - (size_t)CST_REQUEST_BYTES * (h.requests - i), &ask));
        s->asks[ask.ask]++;
    }
}

static void look_through(seen *s, const golden_tape *tape)
{
    golden_part part;
    for (size_t at = 0; golden_next(tape, &at, &part);)
        for (int u = 0; u < part.entries; u++) {
            const uint8_t *bytes = part.entry[u].at;
            size_t n = part.entry[u].bytes,
                   each = part.kind == COSET_XFER_ALLTOALL ? n / (size_t)(part.entries - 1) : n;
            if (part.kind == COSET_XFER_ROUTE)
                for (size_t i = 8; i < n; i += 8 + each) {
                    cst_reader r = cst_reader_of(bytes + i - 4, 4);
                    each = cst_get32(&r);
                    look(s, bytes + i, each);
                }
            else
                for (size_t i = 0; each && i < n; i += each)
                    look(s, bytes + i, each);
        }
}

static void print(const char *name, const seen *s)
{
    printf("%-12s kinds", name);
    for (int i = 0; i <= CST_FRAME_COLOURS; i++)
        printf(" %u", s->kinds[i]);
    for (int d = 0; d < 2; d++) {
        printf(d ? "; down" : "; up");
        for (int i = 0; i < CST_CODE_COUNT; i++)
            printf(" %u", s->codes[d][i]);
    }
    printf("; same %u, digits %u, whole %u; asks", s->same, s->digits, s->whole);
    for (int i = 1; i <= CST_ASK_REFINE; i++)
        printf(" %u", s->asks[i]);
    printf("\n");
}

static void the_files_have_everything(void **state)
{
    (void)state;
    seen all = {0};
    size_t bytes = 0;
    for (int j = 0; j < JOBS; j++) {
        golden_tape tape = load(&jobs[j]);
        seen one = {0};
        look_through(&one, &tape);
        print(jobs[j].name, &one);
        look_through(&all, &tape);
        bytes += tape.bytes;
        free(tape.at);
    }
    print("all", &all);
    assert_true(bytes < 60000);
    for (int kind = CST_FRAME_UP; kind <= CST_FRAME_COLOURS; kind++)
        assert_true(all.kinds[kind] > 0);
    for (int code = 0; code < CST_CODE_COUNT; code++)
        assert_true(all.codes[0][code] > 0);
    for (int code = 0; code < CST_CODE_PLAIN; code++)
        assert_true(code == CST_CODE_WIDE || all.codes[1][code] > 0);
    for (int ask = CST_ASK_DIGITS; ask <= CST_ASK_REFINE; ask++)
        assert_true(all.asks[ask] > 0);
    assert_true(all.same > 0 && all.digits > 0 && all.whole > 0);
}

static void write_all(void **state)
{
    (void)state;
    for (int j = 0; j < JOBS; j++)
        store(&jobs[j]);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: %s FOLDER [--write]\n", argv[0]);
        return 2;
    }
    folder = argv[1];
    bool writing = argc > 2 && strcmp(argv[2], "--write") == 0;
    const struct CMUnitTest writes[] = {cmocka_unit_test(write_all)};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_together_write_the_file),
        cmocka_unit_test(each_alone_at_every_level),
        cmocka_unit_test(the_files_have_everything),
    };
    if (writing && cmocka_run_group_tests(writes, NULL, NULL))
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
