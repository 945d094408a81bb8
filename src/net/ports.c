/* SPDX-License-Identifier: Apache-2.0 */
#include "net/ports.h"

#include "base/env.h"
#include "base/error.h"

#include <string.h>

int cst_ports_parse(const char *text, cst_ports *out)
{
    char low_text[8];
    const char *dash = strchr(text, '-');
    size_t n = dash ? (size_t)(dash - text) : strlen(text);
    long low, high;
    if (n == 0 || n >= sizeof low_text)
        return -1;
    memcpy(low_text, text, n);
    low_text[n] = 0;
    if (cst_parse_long(low_text, 1, 65535, &low))
        return -1;
    high = low;
    if (dash && cst_parse_long(dash + 1, low, 65535, &high))
        return -1;
    *out = (cst_ports){(uint16_t)low, (uint16_t)high};
    return 0;
}

coset_status cst_ports_env(cst_ports *out, coset_error *why)
{
    const char *text = cst_env("COSET_PORT_RANGE");
    *out = (cst_ports){0, 0};
    if (text && cst_ports_parse(text, out))
        return cst_fail(why, COSET_ERR_ARGUMENT, -1, "COSET_PORT_RANGE=%.60s: expected LOW-HIGH, such as 40000-40100",
                        text);
    return COSET_OK;
}
