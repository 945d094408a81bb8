/* SPDX-License-Identifier: Apache-2.0 */
#include "learn/plane.h"

#include <math.h>
#include <string.h>

/* Cells of the drawing per lattice step: a character is about twice as high as it is wide. */
enum { COLUMNS = 5, ROWS = 2, MARGIN = 3, LINE = COLUMNS * LEARN_PLANE_WIDTH + MARGIN };

const learn_vector learn_sender = {5.3, 3.6};
const learn_vector learn_near = {6.4, 4.5};
const learn_vector learn_far = {7.8, 4.5};

int learn_round(double value)
{
    return (int)floor(value + 0.5);
}

learn_point learn_nearest(learn_vector v, double step)
{
    return (learn_point){learn_round(v.x / step), learn_round(v.y / step)};
}

int learn_colour(int k, int q)
{
    return ((k % q) + q) % q;
}

int learn_decode1(int colour, double own, double step, int q)
{
    return colour + q * learn_round((own / step - colour) / q);
}

learn_point learn_decode(learn_point colour, learn_vector own, double step, int q)
{
    return (learn_point){learn_decode1(colour.k1, own.x, step, q), learn_decode1(colour.k2, own.y, step, q)};
}

double learn_reach(double step, int q)
{
    return step * (q - 1) / 2;
}

double learn_step(double distance, int q)
{
    return 2 * distance / (q - 1);
}

double learn_error(double step)
{
    return step * step / 12;
}

double learn_dithered(double x, double theta, double step)
{
    return step * learn_round((x + theta) / step) - theta;
}

double learn_bits(int q)
{
    return log2(q);
}

int learn_checksum(learn_point k)
{
    return learn_colour(LEARN_KEY1 * k.k1 + LEARN_KEY2 * k.k2, LEARN_PRIME);
}

char learn_letter(learn_point k, int q)
{
    return (char)('A' + learn_colour(k.k1, q) + q * learn_colour(k.k2, q));
}

static int column(double x)
{
    return MARGIN + (int)lround(COLUMNS * x);
}

static int row(double y)
{
    return ROWS * (LEARN_PLANE_HEIGHT - 1) - (int)lround(ROWS * y);
}

static void put_point(char *line, learn_point k, const learn_view *view)
{
    int in_class = view->class && learn_letter(k, LEARN_Q) == learn_letter(*view->class, LEARN_Q);
    int at = column(k.k1);
    line[at] = view->letters || in_class ? learn_letter(k, LEARN_Q) : '.';
    if (view->sent && k.k1 == view->sent->k1 && k.k2 == view->sent->k2) {
        line[at - 1] = '[';
        line[at + 1] = ']';
    } else if (view->found && k.k1 == view->found->k1 && k.k2 == view->found->k2) {
        line[at - 1] = '<';
        line[at + 1] = '>';
    }
}

void learn_plane_draw(FILE *out, const learn_view *view)
{
    enum { LINES = ROWS * (LEARN_PLANE_HEIGHT - 1) + 1 };
    char page[LINES][LINE + 1];
    memset(page, ' ', sizeof page);
    for (int k2 = 0; k2 < LEARN_PLANE_HEIGHT; k2++)
        for (int k1 = 0; k1 < LEARN_PLANE_WIDTH; k1++)
            put_point(page[row(k2)], (learn_point){k1, k2}, view);
    if (view->sender)
        page[row(view->sender->y)][column(view->sender->x)] = 'x';
    if (view->receiver)
        page[row(view->receiver->y)][column(view->receiver->x)] = 'v';
    for (int i = 0; i < LINES; i++) {
        int end = LINE;
        while (end > 0 && page[i][end - 1] == ' ')
            end--;
        fprintf(out, "%.*s\n", end, page[i]);
    }
}
