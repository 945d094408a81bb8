/* SPDX-License-Identifier: Apache-2.0 */
#include "learn/html.h"

#include "learn/questions.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void print_char(FILE *out, char c)
{
    switch (c) {
    case '<': fputs("&lt;", out); break;
    case '>': fputs("&gt;", out); break;
    case '&': fputs("&amp;", out); break;
    case '"': fputs("&quot;", out); break;
    default: fputc(c, out); break;
    }
}

static void print_raw(FILE *out, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        print_char(out, text[i]);
}

/* Running text: `code`, and a dot for " * ". */
static void print_prose(FILE *out, const char *text)
{
    bool code = false;
    for (; *text; text++) {
        if (*text == '`') {
            fputs(code ? "</code>" : "<code>", out);
            code = !code;
        } else if (!code && !strncmp(text, " * ", 3)) {
            fputs(" &middot; ", out);
            text += 2;
        } else {
            print_char(out, *text);
        }
    }
}

static void print_table(FILE *out, const learn_block *block)
{
    fputs("<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"", out);
    print_raw(out, block->label, strlen(block->label));
    fputs("\"><table><caption>", out);
    print_prose(out, block->label);
    fputs("</caption>", out);
    for (const char *row = block->text; *row; row = strchr(row, '\n') + 1) {
        bool head = row == block->text;
        fputs(head ? "<thead><tr>" : "<tr>", out);
        const char *end = strchr(row, '\n');
        for (const char *cell = row; cell <= end;) {
            size_t length = strcspn(cell, "\t\n");
            bool first = cell == row;
            fputs(head ? "<th scope=\"col\">" : first ? "<th scope=\"row\">" : "<td>", out);
            print_raw(out, cell, length);
            fputs(head || first ? "</th>" : "</td>", out);
            cell += length + 1;
        }
        fputs(head ? "</tr></thead><tbody>" : "</tr>", out);
    }
    fputs("</tbody></table></div>\n", out);
}

static size_t longest_line(const char *text)
{
    size_t longest = 0;
    while (*text) {
        size_t length = strcspn(text, "\n");
        longest = length > longest ? length : longest;
        text += length + (text[length] == '\n');
    }
    return longest;
}

/* --columns lets the style sheet choose a letter size at which the drawing fits. */
static void print_drawing(FILE *out, const learn_block *block)
{
    fprintf(out, "<figure%s%s%s><pre role=\"img\" style=\"--columns:%zu\" aria-label=\"",
            block->id ? " data-figure=\"" : "", block->id ? block->id : "", block->id ? "\"" : "",
            longest_line(block->text));
    print_raw(out, block->label, strlen(block->label));
    fputs("\">", out);
    print_raw(out, block->text, strlen(block->text));
    fputs("</pre></figure>\n", out);
}

static void print_wrapped(FILE *out, const char *before, const char *text, const char *after)
{
    fputs(before, out);
    print_prose(out, text);
    fputs(after, out);
}

static void print_block(FILE *out, const learn_book *b, size_t i)
{
    const learn_block *block = &b->blocks[i];
    bool first = block[-1].kind != LEARN_ITEM, last = i + 1 == b->count || block[1].kind != LEARN_ITEM;
    switch (block->kind) {
    case LEARN_TEXT: print_wrapped(out, "<p>", block->text, "</p>\n"); break;
    case LEARN_KEY: print_wrapped(out, "<p class=\"key\">", block->text, "</p>\n"); break;
    case LEARN_ITEM:
        print_wrapped(out, first ? "<ul><li>" : "<li>", block->text, last ? "</li></ul>\n" : "</li>\n");
        break;
    case LEARN_DRAWING: print_drawing(out, block); break;
    case LEARN_TABLE: print_table(out, block); break;
    case LEARN_LESSON:
    case LEARN_PAGE: break;
    }
}

/* One page of a lesson; returns the index after it. */
static size_t print_page(FILE *out, const learn_book *b, size_t i)
{
    fprintf(out, "<section class=\"page\"><h3>");
    print_raw(out, b->blocks[i].text, strlen(b->blocks[i].text));
    fputs("</h3>\n", out);
    for (i++; i < b->count && b->blocks[i].kind > LEARN_PAGE; i++)
        print_block(out, b, i);
    fputs("</section>\n", out);
    return i;
}

static void print_lessons(FILE *out, const learn_book *b)
{
    const char *figure = NULL;
    bool open = false;
    for (size_t i = 0; i < b->count;) {
        const learn_block *block = &b->blocks[i];
        const char *next = block->kind == LEARN_PAGE ? block->id : NULL;
        /* Pages that are the frames of one figure are kept together: the script puts a moving one in their place. */
        if (figure && (!next || strcmp(next, figure))) {
            fputs("</div>\n", out);
            figure = NULL;
        }
        if (block->kind == LEARN_LESSON) {
            fprintf(out, "%s<section class=\"lesson\" id=\"%s\"><h2>", open ? "</section>\n" : "", block->id);
            print_raw(out, block->text, strlen(block->text));
            fputs("</h2>\n", out);
            open = true;
            i++;
            continue;
        }
        if (next && !figure)
            fprintf(out, "<div data-frames=\"%s\">\n", next);
        figure = next;
        i = print_page(out, b, i);
    }
    fputs(figure ? "</div></section>\n" : "</section>\n", out);
}

static void print_head(FILE *out)
{
    fputs("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
          "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
          "<meta name=\"color-scheme\" content=\"light dark\">\n"
          /* nothing may come from anywhere else */
          "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
          "script-src 'unsafe-inline'; img-src data:\">\n<link rel=\"icon\" href=\"data:,\">\n"
          "<title>Ring all-reduce, DDP and lattice codes, step by step</title>\n<style>\n",
          out);
    fputs(learn_page_css, out);
    fputs("</style>\n</head>\n<body>\n<a class=\"skip\" href=\"#main\">Skip to the lessons</a>\n"
          "<header><p class=\"brand\">Coset</p><h1>How many ranks agree on one mean</h1>\n"
          "<p>Ring all-reduce, data-parallel training and lattice codes, step by step, with practice questions. "
          "The numbers come from the functions that the library runs.</p></header>\n"
          "<nav aria-label=\"Lessons\"><ul>",
          out);
    for (int t = 0; t < LEARN_TOPICS; t++)
        fprintf(out, "<li><a href=\"#%s\">%s</a></li>", learn_lessons[t].word, learn_lessons[t].title);
    fputs("<li><a href=\"#practice\">Practice</a></li></ul></nav>\n<main id=\"main\">\n", out);
}

/* JSON inside a script element: no "</script>", no "<!--". */
static void print_data(FILE *out, const learn_choice *choice)
{
    cJSON *data = learn_html_data(choice);
    char *text = cJSON_PrintUnformatted(data);
    cJSON_Delete(data);
    fputs("<script type=\"application/json\" id=\"data\">", out);
    for (const char *c = text; c && *c; c++)
        fputs(*c == '<' ? "\\u003c" : (char[]){*c, 0}, out);
    fputs("</script>\n", out);
    free(text);
}

void learn_html_print(FILE *out, const learn_book *b, const learn_choice *choice)
{
    print_head(out);
    print_lessons(out, b);
    fputs(
        "<section class=\"lesson\" id=\"practice\"><h2>Practice</h2>\n<noscript><p>The questions need JavaScript here. On a "
        "terminal, <code>coset learn quiz</code> asks them.</p></noscript>\n<div id=\"quiz\"></div></section>\n</main>\n"
        "<footer><p>Made by <code>coset learn --html</code>. Nothing is sent anywhere; your answers stay in this "
        "browser.</p></footer>\n",
        out);
    print_data(out, choice);
    fputs("<script>\n", out);
    fputs(learn_page_js, out);
    fputs("</script>\n</body>\n</html>\n", out);
}

int learn_html_write(const char *folder, const learn_book *b, const learn_choice *choice)
{
    char *path = learn_format("%s/index.html", folder), *fresh = learn_format("%s.XXXXXX", path);
    int fd = mkdir(folder, 0777) && errno != EEXIST ? -1 : mkostemp(fresh, 0), failed = fd < 0, error = errno;
    if (!failed) {
        FILE *out = fdopen(fd, "w");
        mode_t mask = umask(0);
        umask(mask);
        learn_html_print(out, b, choice);
        failed = ferror(out) | fchmod(fd, 0666 & ~mask);
        error = errno;
        if (fclose(out) || failed || rename(fresh, path)) {
            error = failed ? error : errno;
            failed = 1;
            unlink(fresh);
        }
    }
    if (failed)
        fprintf(stderr, "coset learn: cannot write %s: %s\n", path, strerror(error));
    else
        printf("%s\n", path);
    free(path);
    free(fresh);
    return failed ? -1 : 0;
}
