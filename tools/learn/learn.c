/* SPDX-License-Identifier: Apache-2.0 */
/* coset learn: ring all-reduce, DDP and lattice codes explained step by step, with practice questions. */
#include "command.h"
#include "common/options.h"
#include "learn/figures.h"
#include "learn/html.h"
#include "learn/quiz.h"
#include "learn/viewer.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

enum { ALL_TOPICS = (1 << LEARN_TOPICS) - 1, QUIZ_LENGTH = 10, MAX_QUESTIONS = 1000 };

typedef struct {
    int ranks, seed, count;
    size_t size;
    bool list, answers, reset;
    const char *html;
    /* from the words */
    unsigned topics;
    bool quiz;
    int number;
} learn_options;

static const char about[] =
    "Explains ring all-reduce, its costs, data-parallel training and lattice codes step by step, and asks practice "
    "questions about them.\v"
    "TOPIC is ring, cost, ddp or lattice; none means all.\n"
    "  coset learn                   the lessons, page by page\n"
    "  coset learn ring --ranks 6    one lesson, with 6 ranks\n"
    "  coset learn quiz ddp          questions on one topic, your mistakes first\n"
    "  coset learn 17                question 17\n"
    "Mistakes are remembered in $XDG_STATE_HOME/coset/learn.json (default ~/.local/state).";

static void take_word(const char *name, learn_options *o, const char *word)
{
    for (unsigned t = 0; t < LEARN_TOPICS; t++)
        if (!strcmp(word, learn_lessons[t].word)) {
            o->topics |= 1u << t;
            return;
        }
    if (!strcmp(word, "quiz")) {
        o->quiz = true;
        return;
    }
    char *end;
    long number = strtol(word, &end, 10);
    if (end == word || *end)
        tool_bad_input(name, "'%s' is no topic (ring, cost, ddp, lattice), not `quiz` and no question's number", word);
    if (number < 1 || number > learn_question_count())
        tool_bad_input(name, "there is no question %s; `%s --list` shows 1 to %d", word, name, learn_question_count());
    if (o->number)
        tool_bad_input(name, "one question at a time: %d or %s", o->number, word);
    o->number = (int)number;
}

/* Words and options in any order: the option parser stops at each word and is started again behind it. */
static void parse(int argc, char **argv, learn_options *o)
{
    const tool_option options[] = {
        TOOL_INT("ranks", 'n', "N", "ranks of the ring in lesson 1 (2 to 16, default 4)", &o->ranks, LEARN_MIN_RANKS,
                 LEARN_MAX_RANKS),
        TOOL_SIZE("size", 'b', "SIZE", "bytes of the vector there (default 100M)", &o->size),
        TOOL_INT("seed", 0, "SEED", "the same questions with the same numbers in the same order", &o->seed, 0, INT_MAX),
        TOOL_INT("count", 'c', "K", "ask at most K questions (default 10; 0: all)", &o->count, 0, MAX_QUESTIONS),
        TOOL_FLAG("list", 'l', "list the questions and what you know", &o->list),
        TOOL_FLAG("answers", 0, "print questions with their answers instead of asking", &o->answers),
        TOOL_FLAG("reset", 0, "forget what has been answered", &o->reset),
        TOOL_TEXT("html", 0, "DIR", "write all of it as one page, DIR/index.html", &o->html),
        TOOL_END,
    };
    char *name = argv[0];
    for (int at = 0; at < argc;) {
        argv[at] = name;
        at += tool_options_parse(argc - at, argv + at, options, about, "[TOPIC...] [quiz] [NUMBER]");
        if (at < argc)
            take_word(name, o, argv[at]);
    }
    /* limits keep every number of the lessons exact in a double */
    if (o->size < LEARN_MAX_RANKS * LEARN_ELEMENT || o->size > (size_t)1 << 40)
        tool_bad_input(name, "--size: expected 64 to 1024G");
    if (o->number && (o->topics || o->list))
        tool_bad_input(name, "a question's number goes with no topic and not with --list");
    if (!o->topics)
        o->topics = ALL_TOPICS;
}

static void build(learn_book *b, const learn_options *o)
{
    learn_choice choice = {o->ranks, o->size};
    for (unsigned t = 0; t < LEARN_TOPICS; t++)
        if (o->topics >> t & 1) {
            learn_lesson(b, learn_lessons[t].word, learn_lessons[t].title);
            learn_lessons[t].build(b, &choice);
        }
}

static int write_html(const learn_options *o)
{
    learn_book b = {0};
    learn_options all = *o;
    all.topics = ALL_TOPICS;
    build(&b, &all);
    int failed = learn_html_write(o->html, &b, &(learn_choice){o->ranks, o->size});
    learn_free(&b);
    return failed ? TOOL_FAILED : TOOL_OK;
}

static void walk(const learn_options *o)
{
    learn_style style = learn_output_style();
    learn_book b = {0};
    learn_pages pages;
    build(&b, o);
    learn_layout(&b, style, &pages);
    if (learn_is_terminal())
        learn_show(&pages, style);
    else
        for (size_t i = 0; i < pages.count; i++)
            printf("%s%s", i ? "\n\n" : "", pages.page[i]);
    printf("\nPractice: coset learn quiz (%d questions)\n", learn_question_count());
    learn_pages_free(&pages);
    learn_free(&b);
}

static uint64_t fresh_seed(void)
{
    uint64_t seed = 1;
    if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) < 0)
        seed = 1; /* the same order as last time does no harm */
    return seed;
}

static int practise(const learn_options *o)
{
    learn_state *state = learn_state_open();
    bool steady = o->list || o->answers; /* for reading: the same each time */
    uint64_t seed = o->seed >= 0 ? (uint64_t)o->seed : steady ? 0 : fresh_seed();
    learn_quiz quiz = {learn_output_style(),  seed,  o->topics, o->number, o->count, o->answers,
                       !isatty(STDIN_FILENO), stdin, stdout};
    int status = TOOL_OK;
    if (o->reset) {
        status = learn_state_reset(state) ? TOOL_FAILED : TOOL_OK;
        if (status == TOOL_OK)
            printf("Forgotten: %s\n", learn_state_path(state));
    }
    if (status == TOOL_OK && o->list)
        learn_list(&quiz, state);
    else if (status == TOOL_OK && (o->quiz || o->number || o->answers))
        learn_ask(&quiz, state);
    learn_state_close(state);
    return status;
}

int tool_learn(int argc, char **argv)
{
    learn_options o = {.ranks = 4, .seed = -1, .count = -1, .size = (size_t)100 << 20};
    parse(argc, argv, &o);
    if (o.count < 0)
        o.count = o.answers ? 0 : QUIZ_LENGTH;
    if (o.html)
        return write_html(&o);
    if (o.quiz || o.number || o.list || o.reset || o.answers)
        return practise(&o);
    walk(&o);
    return TOOL_OK;
}
