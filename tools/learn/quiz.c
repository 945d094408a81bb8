/* SPDX-License-Identifier: Apache-2.0 */
#include "learn/quiz.h"

#include "common/random.h"

#include <stdlib.h>
#include <string.h>

uint64_t learn_random(uint64_t *seed)
{
    tool_random r = {*seed};
    uint64_t value = random_next(&r);
    *seed = r.state;
    return value;
}

void learn_shuffle(uint64_t *seed, int *places, int n)
{
    for (int i = 0; i < n; i++)
        places[i] = i;
    for (int i = n - 1; i > 0; i--) {
        int j = (int)(learn_random(seed) % (uint64_t)(i + 1));
        int keep = places[i];
        places[i] = places[j];
        places[j] = keep;
    }
}

/* What a question needs most: 0 = asked again after a mistake, 1 = new, 2 = answered before. */
static int urgency(const learn_state *state, const char *id)
{
    learn_score score = learn_state_score(state, id);
    return score.again ? 0 : score.right + score.wrong == 0 ? 1 : 2;
}

/* The numbers of the questions to ask, in order. Returns how many. */
static int choose(const learn_quiz *quiz, const learn_state *state, int *order)
{
    int all = learn_question_count(), count = 0;
    uint64_t seed = quiz->seed;
    int *places = learn_room(NULL, (size_t)all * sizeof *places);
    learn_shuffle(&seed, places, all);
    for (int i = 0; quiz->answers && i < all; i++)
        places[i] = i; /* for reading: in the order of the lessons */
    for (int level = 0; level <= 2; level++)
        for (int i = 0; i < all; i++) {
            learn_topic topic;
            const learn_question *q = learn_question_at(places[i] + 1, &topic);
            bool wanted = quiz->number ? places[i] + 1 == quiz->number : quiz->topics >> topic & 1;
            if (wanted && (quiz->answers ? 0 : urgency(state, q->id)) == level)
                order[count++] = places[i] + 1;
        }
    free(places);
    return quiz->limit && quiz->limit < count ? quiz->limit : count;
}

static void print_progress(const learn_quiz *quiz, const learn_state *state)
{
    int all = 0, known = 0, again = 0;
    for (int number = 1; number <= learn_question_count(); number++) {
        learn_topic topic;
        const learn_question *q = learn_question_at(number, &topic);
        if (!(quiz->topics >> topic & 1))
            continue;
        learn_score score = learn_state_score(state, q->id);
        all++;
        again += score.again;
        known += score.right > 0 && !score.again;
    }
    fprintf(quiz->out, "So far %d of %d known, %d to repeat, %d new.\n", known, all, again, all - known - again);
}

typedef struct {
    const learn_question *question;
    learn_posed posed;
    int place[LEARN_OPTIONS]; /* option shown as a), b), ... */
} session_question;

/* Numbers and order depend on the seed and the question alone, so a question looks the same when asked by its number. */
static void prepare(const learn_quiz *quiz, int number, session_question *s, learn_topic *topic)
{
    uint64_t seed = quiz->seed + (uint64_t)number * 0x2545f4914f6cdd1du;
    s->question = learn_question_at(number, topic);
    learn_pose(s->question, (int)(learn_random(&seed) % (uint64_t)learn_variants(s->question)), &s->posed);
    learn_shuffle(&seed, s->place, LEARN_OPTIONS);
}

static void print_question(const learn_quiz *quiz, const session_question *s, int number, learn_topic topic)
{
    FILE *out = quiz->out;
    learn_look_on(out, quiz->style, LEARN_BOLD);
    fprintf(out, "Question %d", number);
    learn_look_on(out, quiz->style, LEARN_PLAIN);
    learn_look_on(out, quiz->style, LEARN_DIM);
    fprintf(out, "  (%s)\n", learn_lessons[topic].title);
    learn_look_on(out, quiz->style, LEARN_PLAIN);
    learn_wrap(out, quiz->style, "", s->posed.text);
    fputc('\n', out);
}

static void print_options(const learn_quiz *quiz, const session_question *s)
{
    for (int i = 0; i < LEARN_OPTIONS; i++) {
        char first[] = "  a) ";
        first[2] = (char)('a' + i);
        learn_wrap(quiz->out, quiz->style, first, s->posed.option[s->place[i]]);
    }
    fputc('\n', quiz->out);
}

/* 0..3, -1 to skip, -2 to stop. */
static int read_answer(const learn_quiz *quiz)
{
    char *line = NULL;
    size_t room = 0;
    int answer = -3;
    while (answer == -3) {
        fputs("Your answer (a-d, Enter skips, q stops): ", quiz->out);
        fflush(quiz->out);
        if (getline(&line, &room, quiz->in) < 0) {
            fputc('\n', quiz->out);
            answer = -2;
            break;
        }
        if (quiz->echo)
            fputc('\n', quiz->out);
        char *word = line + strspn(line, " \t");
        word[strcspn(word, " \t\r\n")] = 0;
        bool one = word[0] && !word[1];
        if (!*word)
            answer = -1;
        else if (one && (word[0] | 32) == 'q')
            answer = -2;
        else if (one && (word[0] | 32) >= 'a' && (word[0] | 32) < 'a' + LEARN_OPTIONS)
            answer = (word[0] | 32) - 'a';
        else if (one && word[0] >= '1' && word[0] < '1' + LEARN_OPTIONS)
            answer = word[0] - '1';
        else
            fputs("Type one letter, a to d.\n", quiz->out);
    }
    free(line);
    return answer;
}

static int place_of(const session_question *s, int option)
{
    int i = 0;
    while (s->place[i] != option)
        i++;
    return i;
}

static void print_verdict(const learn_quiz *quiz, const session_question *s, int answer)
{
    FILE *out = quiz->out;
    int option = s->place[answer];
    fputc('\n', out);
    learn_look_on(out, quiz->style, option == 0 ? LEARN_GOOD : LEARN_BAD);
    fputs(option == 0 ? "Right." : "No.", out);
    learn_look_on(out, quiz->style, LEARN_PLAIN);
    fputc('\n', out);
    learn_wrap(out, quiz->style, "  ", s->posed.why[option]);
    if (option != 0) {
        char *answer_line = learn_format("The answer is %c) %s", 'a' + place_of(s, 0), s->posed.option[0]);
        learn_wrap(out, quiz->style, "", answer_line);
        learn_wrap(out, quiz->style, "  ", s->posed.why[0]);
        free(answer_line);
    }
    fputc('\n', out);
}

/* The options with their explanations. */
static void print_answers(const learn_quiz *quiz, const session_question *s)
{
    for (int i = 0; i < LEARN_OPTIONS; i++) {
        int option = s->place[i];
        char *first = learn_format("  %c) ", 'a' + i);
        learn_look_on(quiz->out, quiz->style, option == 0 ? LEARN_GOOD : LEARN_PLAIN);
        learn_wrap(quiz->out, quiz->style, first, s->posed.option[option]);
        learn_look_on(quiz->out, quiz->style, LEARN_PLAIN);
        learn_wrap(quiz->out, quiz->style, option == 0 ? "     Right: " : "     No: ", s->posed.why[option]);
        free(first);
    }
    fputc('\n', quiz->out);
}

/* Returns false to stop; *right and *asked count. */
static bool ask_one(const learn_quiz *quiz, learn_state *state, int number, int *right, int *asked)
{
    session_question s;
    learn_topic topic;
    prepare(quiz, number, &s, &topic);
    print_question(quiz, &s, number, topic);
    int answer = -1;
    if (quiz->answers) {
        print_answers(quiz, &s);
    } else {
        print_options(quiz, &s);
        answer = read_answer(quiz);
        if (answer >= 0) {
            print_verdict(quiz, &s, answer);
            learn_state_record(state, s.question->id, s.place[answer] == 0);
            *right += s.place[answer] == 0;
            ++*asked;
        } else if (answer == -1) {
            fputc('\n', quiz->out);
        }
    }
    learn_posed_free(&s.posed);
    return answer != -2;
}

void learn_ask(const learn_quiz *quiz, learn_state *state)
{
    int *order = learn_room(NULL, (size_t)learn_question_count() * sizeof *order);
    int count = choose(quiz, state, order), right = 0, asked = 0;
    if (!quiz->answers && !quiz->number) {
        print_progress(quiz, state);
        fputc('\n', quiz->out);
    }
    for (int i = 0; i < count; i++)
        if (!ask_one(quiz, state, order[i], &right, &asked))
            break;
    if (!quiz->answers) {
        if (asked > 1)
            fprintf(quiz->out, "%d of %d right. ", right, asked);
        print_progress(quiz, state);
    }
    free(order);
}

void learn_list(const learn_quiz *quiz, const learn_state *state)
{
    learn_topic shown = LEARN_TOPICS;
    for (int number = 1; number <= learn_question_count(); number++) {
        learn_topic topic;
        const learn_question *q = learn_question_at(number, &topic);
        if (!(quiz->topics >> topic & 1))
            continue;
        if (topic != shown)
            fprintf(quiz->out, "%s%s: %s\n", shown == LEARN_TOPICS ? "" : "\n", learn_lessons[topic].word,
                    learn_lessons[topic].title);
        shown = topic;
        learn_score score = learn_state_score(state, q->id);
        const char *mark = score.again ? "again" : score.right ? "known" : "";
        session_question s;
        prepare(quiz, number, &s, &topic);
        char *first = learn_format("%4d  %-5s  ", number, mark);
        learn_wrap(quiz->out, quiz->style, first, s.posed.text);
        free(first);
        learn_posed_free(&s.posed);
    }
    fputc('\n', quiz->out);
    print_progress(quiz, state);
}
