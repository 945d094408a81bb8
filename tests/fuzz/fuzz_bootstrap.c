/* SPDX-License-Identifier: Apache-2.0 */
/* Hostile bytes where a job begins: hellos, answers, frames, failures, unique ids, and what environments say. */
#include "base/hash.h"
#include "bootstrap/frame.h"
#include "bootstrap/id.h"
#include "bootstrap/job.h"
#include "net/hello.h"
#include "net/iface.h"
#include "net/ports.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look_at_id(const uint8_t *data, size_t size)
{
    uint8_t bytes[128] = {0};
    cst_id id;
    memcpy(bytes, data, size < sizeof bytes ? size : sizeof bytes);
    cst_id_read(bytes, &id);
    memcpy(bytes, "cstid1\0\n", 8);
    uint64_t sum = cst_hash64(0, bytes, 120);
    memcpy(bytes + 120, &sum, sizeof sum);
    if (!cst_id_read(bytes, &id))
        return;
    uint8_t again[128];
    cst_id copy;
    cst_id_write(&id, again);
    if (!cst_id_read(again, &copy) || memcmp(&copy, &id, sizeof id))
        abort();
}

static void look_at_frames(const uint8_t *data, size_t size)
{
    cst_frame frame;
    coset_error error = COSET_ERROR_INIT;
    cst_token token = cst_token_from_text("job");
    cst_hello hello;
    cst_hello_check(data, size < CST_HELLO_BYTES ? size : CST_HELLO_BYTES, &token);
    if (size >= CST_FRAME_BYTES)
        cst_frame_read(data, &frame);
    if (size >= CST_HELLO_BYTES)
        cst_hello_read(data, &hello);
    if (size >= CST_FAILURE_BYTES && cst_failure_read(data, &error) && strlen(error.text) >= sizeof error.text)
        abort();
}

static void look_at_texts(const uint8_t *data, size_t size)
{
    char text[600], host[CST_HOST_TEXT];
    uint16_t port;
    cst_addr addr;
    cst_ports ports;
    cst_iface_spec spec;
    size_t n = size < sizeof text - 1 ? size : sizeof text - 1;
    memcpy(text, data, n);
    text[n] = 0;
    if (!cst_hostport_split(text, host, &port) && (strlen(host) >= sizeof host || !port))
        abort();
    if (!cst_slurm_first_host(text, host) && !*host)
        abort();
    if (!cst_ports_parse(text, &ports) && ports.low > ports.high)
        abort();
    cst_addr_parse(text, &addr);
    if (!cst_iface_parse(text, &spec) && cst_addr_parse("10.0.0.1", &addr) == 0)
        cst_iface_match(&spec, "eth0", &addr);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    look_at_id(data, size);
    look_at_frames(data, size);
    look_at_texts(data, size);
    return 0;
}
