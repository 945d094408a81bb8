/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the reader has answered, remembered in $XDG_STATE_HOME/coset/learn.json (default ~/.local/state):
 *
 *     {"version": 1, "questions": {"ring-volume": {"right": 3, "wrong": 1, "again": false}, ...}}
 *
 * "again": the last answer was wrong, so the question is asked first next time. Entries of questions that this version
 * does not know are kept. The file is replaced as a whole (written beside it, then renamed), so it is never half
 * written; two sessions at once do not lose each other's answers, since each answer is a locked read, change and write.
 * A file that makes no sense is kept as learn.json.bad. Trouble costs one line on standard error and the memory, no more.
 */
#ifndef COSET_LEARN_STATE_H
#define COSET_LEARN_STATE_H
#include <stdbool.h>

typedef struct learn_state learn_state;

typedef struct {
    int right, wrong;
    bool again;
} learn_score;

/* Never NULL: without a usable folder, an empty state that remembers until it is closed. */
learn_state *learn_state_open(void);
void learn_state_close(learn_state *s);
learn_score learn_state_score(const learn_state *s, const char *id);
/* Counts an answer and writes the file. */
void learn_state_record(learn_state *s, const char *id, bool right);
/* Forgets everything and removes the file. Returns 0, or -1 after one line on standard error. */
int learn_state_reset(learn_state *s);
/* The file's path, "" if there is none. */
const char *learn_state_path(const learn_state *s);
#endif
