/* SPDX-License-Identifier: Apache-2.0 */
/* Options, creation, and what is common to the calls of all protocols (include/coset_mean.h). */
#include "base/alloc.h"
#include "base/error.h"
#include "codec/codec.h"
#include "codec/portable.h"
#include "cpu/cpu.h"
#include "cpu/fpmode.h"
#include "kernels/flush.h"
#include "mean/internal.h"
#include "mean/public.h"
#include "mean/saved.h"

#include <math.h>
#include <stdlib.h>

/* ---- creation ---- */

static const cst_protocol *const protocols[] = {&cst_sharded_star, &cst_star,      &cst_tree,
                                                &cst_robust,       &cst_sublinear, &cst_homomorphic};

static const cst_protocol *protocol_named(const char *name)
{
    for (size_t i = 0; i < sizeof protocols / sizeof *protocols; i++)
        if (strcmp(protocols[i]->name, name) == 0)
            return protocols[i];
    return NULL;
}

static bool number_in(double x, double low, double high)
{
    return x >= low && x <= high; /* false for NaN */
}

static coset_status check_numbers(const coset_mean_options *o, coset_error *why)
{
    if (o->error_budget != 0 && !number_in(o->error_budget, 1e-6, 1e3))
        return cst_fail(why, COSET_ERR_ARGUMENT, -1,
                        "error_budget %g: 0.05 is 5 %% of the sampling variance; 1e-6 to 1000", o->error_budget);
    if (o->bits != 0 && !number_in(o->bits, 0.25, 32))
        return cst_fail(why, COSET_ERR_ARGUMENT, -1, "bits %g: bits per coordinate and phase, 0.25 to 32", o->bits);
    if (!number_in(o->y, 0, 1e300) || !number_in(o->sigma, 0, 1e300) || !number_in(o->link_gbps, 0, 1e9))
        return cst_fail(why, COSET_ERR_ARGUMENT, -1, "y, sigma and link_gbps must not be negative");
    if (o->objective < COSET_OBJECTIVE_DEFAULT || o->objective > COSET_OBJECTIVE_TIME)
        return cst_fail(why, COSET_ERR_ARGUMENT, -1, "objective %d is none", o->objective);
    return COSET_OK;
}

/* "lattice", "lattice:z", ... into the planner's options. */
static coset_status choose_codec(coset_mean *mean, const char *codec, coset_error *why)
{
    static const struct {
        const char *name;
        unsigned may;
        bool exact;
    } codecs[] = {
        {"lattice", CST_MAY_ALL, false},   {"lattice:z", CST_MAY_Z, false},
        {"lattice:e8", CST_MAY_E8, false}, {"lattice:entropy", CST_MAY_ENTROPY, false},
        {"none", CST_MAY_ALL, true},
    };
    for (size_t i = 0; i < sizeof codecs / sizeof *codecs; i++)
        if (strcmp(codec, codecs[i].name) == 0) {
            mean->plan.rules.may = codecs[i].may;
            mean->plan.exact = codecs[i].exact;
            return COSET_OK;
        }
    return cst_fail(why, COSET_ERR_ARGUMENT, -1,
                    "codec \"%s\": there are lattice, lattice:z, lattice:e8, "
                    "lattice:entropy, none, eden, qsgd, suresh, terngrad, natural, correlated",
                    codec);
}

/*
 * The objective "time": seconds per byte of f32 that one core needs for a whole call (rotation, codes of both phases, all
 * else), AVX2, data in DRAM, two ranks (docs/performance.md). Constants, since all ranks must choose alike.
 */
static const struct {
    double z, e8_or_entropy;
} codec_cost = {0.72e-9, 0.89e-9};
static const double usual_bits = 8.5; /* of both phases, at the default budget */

double cst_mean_breakeven_gbps(int size)
{
    double saved_bytes = (2 - usual_bits / 32) * (size - 1.0) / size; /* sent less, per byte of the vector */
    return saved_bytes / codec_cost.z * 1e-9;
}

/* Plain f32 or codes, and how many bits the quicker code for Z is worth per phase. */
static void choose_by_time(coset_mean *mean, double link_gbps)
{
    bool quick = link_gbps >= cst_mean_breakeven_gbps(mean->size);
    if (!mean->plan.exact && (mean->protocol == &cst_sharded_star || mean->protocol == &cst_plain))
        mean->protocol = quick ? &cst_plain : &cst_sharded_star;
    double per_byte = 1e-9 / link_gbps;
    mean->plan.rules.second_price = (codec_cost.e8_or_entropy - codec_cost.z) * 4 / (per_byte / 8) / 2;
    mean->link_gbps = link_gbps;
    mean->agreement = cst_bytes_hash(&link_gbps, sizeof link_gbps, mean->options);
}

/* What the planner aims at, a little under what is allowed: statistics and steps are known to a few percent. */
static const double budget_used = 0.96;

static uint64_t hash_options(const coset_mean *mean, const coset_mean_options *o, const char *codec)
{
    double numbers[] = {o->error_budget, o->bits, o->y, o->sigma, mean->size, o->objective, o->parameter};
    uint64_t h = cst_bytes_hash(numbers, sizeof numbers, o->seed);
    h = cst_bytes_hash(codec, strlen(codec), h);
    return cst_bytes_hash(mean->protocol->name, strlen(mean->protocol->name), h);
}

static coset_status configure(coset_mean *mean, const coset_mean_options *o, coset_error *why)
{
    const char *name = o->protocol ? o->protocol : "sharded-star", *codec = o->codec ? o->codec : "lattice";
    mean->protocol = protocol_named(name);
    if (!mean->protocol)
        return cst_fail(why, COSET_ERR_ARGUMENT, -1,
                        "protocol \"%s\": there are sharded-star, star, tree, robust, sublinear and homomorphic", name);
    coset_status status = check_numbers(o, why);
    if (!status && cst_codec_known(codec)) {
        if (mean->protocol != &cst_sharded_star)
            return cst_fail(why, COSET_ERR_ARGUMENT, -1, "codec \"%s\" goes with the protocol sharded-star", codec);
        mean->protocol = &cst_codec_star;
    } else if (!status) {
        status = choose_codec(mean, codec, why);
    }
    if (status)
        return status;
    double budget = o->error_budget > 0 ? o->error_budget : 0.05;
    mean->plan.rules.ranks = mean->size;
    mean->plan.beta = budget_used * budget;
    mean->plan.bits = 2 * o->bits;
    mean->seed = o->seed;
    mean->options = mean->agreement = hash_options(mean, o, codec);
    if (o->objective == COSET_OBJECTIVE_TIME && !(o->link_gbps > 0))
        return cst_fail(why, COSET_ERR_ARGUMENT, -1, "objective time needs link_gbps, what the link carries each way");
    if (o->objective == COSET_OBJECTIVE_TIME)
        choose_by_time(mean, o->link_gbps);
    if (mean->plan.exact && mean->protocol == &cst_sharded_star)
        mean->protocol = &cst_plain;
    return mean->protocol->configure ? mean->protocol->configure(mean, o, why) : COSET_OK;
}

/* Protocols and codecs that work on blocks and need nothing to be known of the ranks' vectors: where ranks share hosts
 * they may as well have the hosts' means (hosts.h). */
static bool compresses_blocks(const coset_mean *mean, const coset_mean_options *o)
{
    return !mean->plan.exact &&
           (!o->protocol || !strcmp(o->protocol, cst_sharded_star.name) || mean->protocol == &cst_homomorphic);
}

coset_status cst_mean_create(int rank, int size, const coset_mean_options *options, coset_mean **out, coset_error *why)
{
    coset_mean_options o = COSET_MEAN_OPTIONS_INIT;
    cst_error_clear(why);
    if (!out || size < 1 || size > 65535 || rank < 0 || rank >= size)
        return cst_fail(why, COSET_ERR_ARGUMENT, -1, "rank %d of %d: needs 0 <= rank < size <= 65535", rank, size);
    if (options && options->struct_size < offsetof(coset_mean_options, codec))
        return cst_fail(why, COSET_ERR_ARGUMENT, -1, "struct_size of the options is not set");
    if (options)
        memcpy(&o, options, options->struct_size < sizeof o ? options->struct_size : sizeof o);
    coset_mean *mean = calloc(1, sizeof *mean);
    if (mean)
        mean->tools = aligned_alloc(64, cst_round_up(sizeof *mean->tools, 64));
    if (!mean || !mean->tools) {
        free(mean);
        return cst_fail(why, COSET_ERR_MEMORY, -1, "no memory");
    }
    mean->rank = rank;
    mean->size = size;
    mean->error = (coset_error)COSET_ERROR_INIT;
    cst_tools_init(mean->tools, cst_cpu_level(), o.seed);
    coset_status status = configure(mean, &o, why);
    if (!status && compresses_blocks(mean, &o) && !(mean->hosts = cst_mean_hosts_create(&o)))
        status = cst_fail(why, COSET_ERR_MEMORY, -1, "no memory");
    if (status) {
        cst_mean_destroy(mean);
        return status;
    }
    *out = mean;
    return COSET_OK;
}

void cst_mean_destroy(coset_mean *mean)
{
    if (!mean)
        return;
    if (mean->protocol && mean->protocol->destroy)
        mean->protocol->destroy(mean);
    cst_mean_hosts_destroy(mean->hosts);
    cst_track_free(&mean->track);
    cst_pool_free(&mean->pool);
    cst_packer_free(&mean->packer);
    free(mean->tools);
    free(mean);
}

coset_status cst_mean_last_error(const coset_mean *mean, coset_error *out)
{
    cst_error_copy(out, &mean->error);
    return mean->error.status;
}

coset_status cst_mean_save(const coset_mean *mean, void *buf, size_t *bytes)
{
    size_t hosts = cst_mean_hosts_saved(mean->hosts, NULL), need = cst_saved_bytes(&mean->track, hosts), room = *bytes;
    *bytes = need;
    if (!buf)
        return COSET_OK;
    if (room < need || mean->open)
        return COSET_ERR_ARGUMENT;
    cst_saved with = {mean->options, mean->calls, mean->link_gbps, NULL, hosts};
    uint8_t *between = hosts ? malloc(hosts) : NULL;
    if (hosts && !between)
        return COSET_ERR_MEMORY;
    cst_mean_hosts_saved(mean->hosts, between);
    with.hosts = between;
    coset_status status = cst_saved_write(&mean->track, &with, buf, need);
    free(between);
    return status;
}

coset_status cst_mean_load(coset_mean *mean, const void *buf, size_t bytes)
{
    cst_error_clear(&mean->error);
    if (mean->open)
        return cst_fail(&mean->error, COSET_ERR_ARGUMENT, -1, "a call is under way");
    cst_saved with = {.agreement = mean->options};
    cst_track loaded = {0};
    coset_status status = cst_saved_read(&loaded, &with, buf, bytes, &mean->error);
    if (!status && (with.link_gbps > 0) != (mean->link_gbps > 0))
        status = cst_fail(&mean->error, COSET_ERR_CORRUPT, -1, "the saved state is damaged");
    if (!status && mean->hosts)
        status = cst_mean_hosts_load(mean->hosts, with.link_gbps, with.hosts, with.hosts_bytes);
    if (status) {
        cst_track_free(&loaded);
        return mean->error.status ? status : cst_fail(&mean->error, status, -1, "no memory for the saved state");
    }
    cst_track_free(&mean->track);
    mean->track = loaded;
    mean->calls = with.calls;
    if (with.link_gbps > 0)
        choose_by_time(mean, with.link_gbps);
    return COSET_OK;
}
