/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The compressed mean where several ranks share a host: exact inside the hosts, compressed between them, since that is
 * where the bytes cost. As the all-reduce hier (coll/hier.h): each tensor is cut into L shares of whole blocks, L being the
 * number of ranks on a host; share k is summed on every host's k-th rank; the k-th ranks of all hosts make the
 * compressed mean of what they hold, all L groups at once; inside each host the shares are gathered.
 *
 * The vectors that are compressed are the hosts' means. For ranks that differ at random their variance is that of the ranks
 * over L and their number that of the ranks over L, so an error budget, which counts in s^2/n, means the same. Hosts with
 * different numbers of ranks would need weights, and vectors of different weights are not near each other: then all ranks
 * are alike to the codec, as without hosts.
 */
#ifndef CST_MEAN_HOSTS_H
#define CST_MEAN_HOSTS_H
#include <coset_mean.h>
#include <stdbool.h>

/* Are means on this communicator made that way: hosts with several ranks, as many on each, and no all-reduce algorithm or
 * rank order asked for that keeps the ranks' vectors apart? */
bool cst_mean_hosts_possible(const coset_comm *c);

/* One mean, for one communicator at a time, or a saved one; the statistics of the tensors' shares live in it. */
typedef struct cst_mean_hosts cst_mean_hosts;
/* Keeps a copy of the options. NULL: no memory. */
cst_mean_hosts *cst_mean_hosts_create(const coset_mean_options *options);
void cst_mean_hosts_destroy(cst_mean_hosts *h);

/* Bytes of the saved form of the mean between the hosts, written to `out` if that is not NULL; 0: there is none (h NULL,
 * too). Only those ranks can load it that have the same place on their hosts: the others' begin anew, which all of a place
 * do alike. */
size_t cst_mean_hosts_saved(const cst_mean_hosts *h, void *out);
/* Replaces it, none if `bytes` is 0, when the next communicator is seen. link_gbps > 0: the hosts' link from now on. MEMORY,
 * which changes nothing. */
coset_status cst_mean_hosts_load(cst_mean_hosts *h, double link_gbps, const void *saved, size_t bytes);

/* Collective; blocking; the spans have been checked. Errors are told to all ranks. The report counts what this rank sends
 * to and receives from other hosts. */
coset_status cst_mean_hosts_run(cst_mean_hosts *h, const coset_span *spans, size_t nspans, coset_dtype dtype,
                                coset_comm *c, coset_mean_report *report, coset_error *why);
#endif
