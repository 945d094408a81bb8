/* SPDX-License-Identifier: Apache-2.0 */
/* The smallest use of the installed library: header and library agree on the version. */
#include <coset.h>
#include <stdio.h>
#include <string.h>

int main(void)
{
    char expected[32];
    snprintf(expected, sizeof expected, "%d.%d.%d", COSET_VERSION_MAJOR, COSET_VERSION_MINOR, COSET_VERSION_PATCH);
    return strcmp(coset_version(), expected) || coset_dtype_size(COSET_F32) != 4;
}
