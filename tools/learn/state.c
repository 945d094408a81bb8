/* SPDX-License-Identifier: Apache-2.0 */
#include "learn/state.h"

#include "learn/book.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* Many times what all questions need. A larger file is none of ours. */
enum { MAX_FILE = 1 << 20 };

struct learn_state {
    char *folder, *path; /* NULL: nowhere to remember */
    cJSON *questions;
    bool told; /* trouble was reported already */
};

static void complain(learn_state *s, const char *what, const char *why)
{
    if (!s->told)
        fprintf(stderr, "coset learn: %s %s: %s; answers are not remembered\n", what, s->path, why);
    s->told = true;
}

/* The XDG base directory specification: a relative path is to be ignored. */
static char *state_folder(void)
{
    const char *base = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    if (base && *base == '/')
        return learn_format("%s/coset", base);
    if (!home || *home != '/') {
        const struct passwd *user = getpwuid(getuid());
        home = user ? user->pw_dir : NULL;
    }
    return home && *home == '/' ? learn_format("%s/.local/state/coset", home) : NULL;
}

/* mkdir -p; the specification asks for 0700. */
static int make_folders(const char *folder)
{
    char *path = learn_format("%s", folder);
    int failed = 0;
    for (char *slash = strchr(path + 1, '/'); slash && !failed; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        failed = mkdir(path, 0700) && errno != EEXIST;
        *slash = '/';
    }
    failed = failed || (mkdir(path, 0700) && errno != EEXIST);
    free(path);
    return failed ? -1 : 0;
}

/* The file's text, to be freed; NULL with errno (ENOENT: there is none yet). */
static char *read_file(const char *path)
{
    /* O_NONBLOCK: a pipe of that name must not make us wait */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return NULL;
    struct stat info;
    char *text = NULL;
    if (fstat(fd, &info) || !S_ISREG(info.st_mode) || info.st_size > MAX_FILE) {
        errno = EINVAL;
    } else {
        text = learn_room(NULL, (size_t)info.st_size + 1);
        ssize_t length = read(fd, text, (size_t)info.st_size);
        text[length > 0 ? length : 0] = 0;
    }
    int error = errno;
    close(fd);
    errno = error;
    return text;
}

static bool valid_score(const cJSON *score)
{
    const cJSON *right = cJSON_GetObjectItemCaseSensitive(score, "right");
    const cJSON *wrong = cJSON_GetObjectItemCaseSensitive(score, "wrong");
    return cJSON_IsObject(score) && cJSON_IsNumber(right) && right->valuedouble >= 0 && cJSON_IsNumber(wrong) &&
           wrong->valuedouble >= 0 && cJSON_IsBool(cJSON_GetObjectItemCaseSensitive(score, "again"));
}

/* The questions of a file's text; NULL if it is no such file. */
static cJSON *parse(const char *text)
{
    cJSON *file = cJSON_ParseWithOpts(text, NULL, 1);
    cJSON *version = cJSON_GetObjectItemCaseSensitive(file, "version");
    cJSON *questions = cJSON_DetachItemFromObjectCaseSensitive(file, "questions");
    bool valid = cJSON_IsNumber(version) && version->valueint == 1 && cJSON_IsObject(questions);
    cJSON *score;
    cJSON_ArrayForEach(score, questions) valid = valid && valid_score(score);
    cJSON_Delete(file);
    if (!valid) {
        cJSON_Delete(questions);
        return NULL;
    }
    return questions;
}

/* Reads the file again, if it is there and makes sense. */
static void load(learn_state *s)
{
    char *text = read_file(s->path);
    if (!text) {
        if (errno != ENOENT && errno != ENOTDIR)
            complain(s, "cannot read", errno == EINVAL ? "it is no regular file, or too large" : strerror(errno));
        return;
    }
    cJSON *questions = parse(text);
    free(text);
    if (questions) {
        cJSON_Delete(s->questions);
        s->questions = questions;
        return;
    }
    char *bad = learn_format("%s.bad", s->path);
    if (rename(s->path, bad))
        complain(s, "cannot put aside the damaged", strerror(errno));
    else
        fprintf(stderr, "coset learn: %s is damaged: begun anew, the old file is %s\n", s->path, bad);
    free(bad);
}

/* Writes `text` beside the file and renames it. Returns 0, or -1 with errno. */
static int replace_file(const char *path, const char *text)
{
    char *fresh = learn_format("%s.XXXXXX", path);
    size_t length = strlen(text);
    int fd = mkostemp(fresh, O_CLOEXEC), failed = fd < 0, error = errno;
    if (!failed) {
        failed = write(fd, text, length) != (ssize_t)length || fsync(fd);
        error = errno;
        close(fd);
        if (!failed && rename(fresh, path)) {
            failed = 1;
            error = errno;
        }
        if (failed)
            unlink(fresh);
    }
    free(fresh);
    errno = error;
    return failed ? -1 : 0;
}

static void save(learn_state *s)
{
    cJSON *file = cJSON_CreateObject();
    cJSON_AddNumberToObject(file, "version", 1);
    cJSON_AddItemReferenceToObject(file, "questions", s->questions);
    char *text = cJSON_Print(file);
    cJSON_Delete(file);
    if (!text || replace_file(s->path, text))
        complain(s, "cannot write", strerror(errno));
    free(text);
}

learn_state *learn_state_open(void)
{
    learn_state *s = learn_room(NULL, sizeof *s);
    *s = (learn_state){.folder = state_folder(), .questions = cJSON_CreateObject()};
    if (!s->folder) {
        fputs("coset learn: no home folder (set HOME or XDG_STATE_HOME); answers are not remembered\n", stderr);
        return s;
    }
    s->path = learn_format("%s/learn.json", s->folder);
    load(s);
    return s;
}

void learn_state_close(learn_state *s)
{
    cJSON_Delete(s->questions);
    free(s->folder);
    free(s->path);
    free(s);
}

const char *learn_state_path(const learn_state *s)
{
    return s->path ? s->path : "";
}

static int number(const cJSON *score, const char *name)
{
    double value = cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(score, name));
    return value >= 0 && value < INT_MAX ? (int)value : 0;
}

learn_score learn_state_score(const learn_state *s, const char *id)
{
    const cJSON *score = cJSON_GetObjectItemCaseSensitive(s->questions, id);
    return (learn_score){number(score, "right"), number(score, "wrong"),
                         cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(score, "again"))};
}

static void count(learn_state *s, const char *id, bool right)
{
    learn_score score = learn_state_score(s, id);
    cJSON *fresh = cJSON_CreateObject();
    cJSON_AddNumberToObject(fresh, "right", score.right + right);
    cJSON_AddNumberToObject(fresh, "wrong", score.wrong + !right);
    cJSON_AddBoolToObject(fresh, "again", !right);
    cJSON_DeleteItemFromObjectCaseSensitive(s->questions, id);
    cJSON_AddItemToObject(s->questions, id, fresh);
}

void learn_state_record(learn_state *s, const char *id, bool right)
{
    if (!s->path || s->told) {
        count(s, id, right);
        return;
    }
    int lock = make_folders(s->folder) ? -1 : open(s->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (lock < 0) {
        complain(s, "cannot write", strerror(errno));
        count(s, id, right);
        return;
    }
    flock(lock, LOCK_EX);
    load(s);
    count(s, id, right);
    if (!s->told)
        save(s);
    close(lock);
}

int learn_state_reset(learn_state *s)
{
    cJSON_Delete(s->questions);
    s->questions = cJSON_CreateObject();
    if (s->path && unlink(s->path) && errno != ENOENT && errno != ENOTDIR) {
        fprintf(stderr, "coset learn: cannot remove %s: %s\n", s->path, strerror(errno));
        return -1;
    }
    return 0;
}
