/* SPDX-License-Identifier: Apache-2.0 */
/* The README's program: start it as `coset run -n 4 -- ./example_mean`. */
#include <coset.h>
#include <stdio.h>

int main(void)
{
    enum { COUNT = 1 << 20 };
    coset_comm *comm;
    coset_error why = COSET_ERROR_INIT;
    if (coset_comm_create_env(NULL, &comm, &why)) {
        fprintf(stderr, "%s\n", why.text);
        return 1;
    }
    float *v;
    if (coset_alloc(comm, COUNT * sizeof *v, (void **)&v)) /* any memory will do; this kind needs no copies */
        return 1;
    for (size_t i = 0; i < COUNT; i++)
        v[i] = (float)coset_comm_rank(comm);
    coset_status status = coset_allreduce(v, v, COUNT, COSET_F32, COSET_AVG, comm);
    printf("rank %d of %d: %g, %s\n", coset_comm_rank(comm), coset_comm_size(comm), (double)v[0],
           coset_strerror(status));
    coset_comm_destroy(comm);
    return status != COSET_OK;
}
