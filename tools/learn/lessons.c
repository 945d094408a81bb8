/* SPDX-License-Identifier: Apache-2.0 */
#include "learn/lessons.h"

const learn_lesson_entry learn_lessons[LEARN_TOPICS] = {
    [LEARN_TOPIC_RING] = {"ring", "Ring all-reduce", learn_lesson_ring},
    [LEARN_TOPIC_COST] = {"cost", "Volume and latency", learn_lesson_cost},
    [LEARN_TOPIC_DDP] = {"ddp", "Data-parallel training", learn_lesson_ddp},
    [LEARN_TOPIC_LATTICE] = {"lattice", "Lattice codes", learn_lesson_lattice},
};
