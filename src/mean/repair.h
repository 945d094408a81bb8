/* SPDX-License-Identifier: Apache-2.0 */
/* What answers to an owner's requests look like: known to who asks and to who answers. */
#ifndef CST_MEAN_REPAIR_H
#define CST_MEAN_REPAIR_H
#include "codec/wire.h"

/* Bytes of the answer to a request whose block has descriptor `desc` in the sender's frame (RESEND: 0, it is declared in
 * that frame's need_up). */
size_t cst_answer_bytes(const cst_request *request, cst_block_desc desc, uint32_t n);
/* Code, class and step of the refinement, by arg quarter-octaves, of a block coded with desc. Code ABSENT: too fine. */
cst_block_desc cst_refinement(cst_block_desc desc, uint8_t arg);
#endif
