/* SPDX-License-Identifier: Apache-2.0 */
/* Gives each file of a corpus folder to a fuzz target once, and then every shorter beginning of the small ones. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { LARGEST_INPUT = 1 << 20, MAX_PREFIXES = 512 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void replay_copy(const uint8_t *data, size_t size)
{
    /* an own allocation of exactly this size, so that a sanitizer sees the first byte read beyond it */
    uint8_t *copy = malloc(size ? size : 1);
    if (!copy)
        abort();
    for (size_t i = 0; i < size; i++)
        copy[i] = data[i];
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
}

static int replay_file(const char *path)
{
    static uint8_t data[LARGEST_INPUT];
    FILE *f = fopen(path, "rb");
    if (!f) {
        perror(path);
        return -1;
    }
    size_t size = fread(data, 1, sizeof data, f);
    fclose(f);
    replay_copy(data, size);
    for (size_t n = 0; n < size && size <= MAX_PREFIXES; n++)
        replay_copy(data, n);
    return 0;
}

int main(int argc, char **argv)
{
    int files = 0, bad = 0;
    for (int i = 1; i < argc; i++) {
        DIR *folder = opendir(argv[i]);
        for (struct dirent *e; folder && (e = readdir(folder));) {
            char path[4096];
            snprintf(path, sizeof path, "%s/%s", argv[i], e->d_name);
            if (e->d_name[0] != '.') {
                bad |= replay_file(path);
                files++;
            }
        }
        if (folder)
            closedir(folder);
    }
    replay_copy(NULL, 0);
    printf("%d inputs replayed\n", files);
    return bad ? 1 : 0;
}
