/* SPDX-License-Identifier: Apache-2.0 */
#include "common/json.h"

#include <errno.h>
#include <string.h>

static int write_text(const char *path, const char *text)
{
    int to_stdout = !strcmp(path, "-");
    FILE *f = to_stdout ? stdout : fopen(path, "we");
    int bad = !f || fprintf(f, "%s\n", text) < 0 || fflush(f);
    if (f && !to_stdout)
        bad |= fclose(f) != 0;
    if (bad)
        fprintf(stderr, "cannot write %s: %s\n", path, strerror(errno));
    return bad ? -1 : 0;
}

int tool_json_write(const char *path, cJSON *json)
{
    char *text = path ? cJSON_Print(json) : NULL;
    int result = 0;
    if (text)
        result = write_text(path, text);
    else if (path) {
        fprintf(stderr, "cannot write %s: out of memory\n", path);
        result = -1;
    }
    cJSON_free(text);
    cJSON_Delete(json);
    return result;
}

FILE *tool_human_stream(const char *json_path)
{
    return json_path && !strcmp(json_path, "-") ? stderr : stdout;
}
