/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a fuzz target with the files of its seed directory, as libFuzzer does first, in builds without libFuzzer. A
 * target without seeds fails. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file) {
        perror(path);
        return -1;
    }
    size_t capacity = 1 << 20;
    uint8_t *data = malloc(capacity);
    size_t size = data ? fread(data, 1, capacity, file) : 0;
    fclose(file);
    if (!data)
        return -1;
    /* A copy of the exact size, so that sanitizers detect reads past the end. */
    uint8_t *exact = realloc(data, size ? size : 1);
    LLVMFuzzerTestOneInput(exact ? exact : data, size);
    free(exact ? exact : data);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: %s SEED_DIRECTORY\n", argv[0]);
        return 2;
    }
    DIR *dir = opendir(argv[1]);
    if (!dir) {
        perror(argv[1]);
        return 1;
    }
    unsigned count = 0, failures = 0;
    for (struct dirent *entry; (entry = readdir(dir));) {
        char path[4096];
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%s/%s", argv[1], entry->d_name);
        failures += replay_file(path) != 0;
        count++;
    }
    closedir(dir);
    printf("%u seeds replayed\n", count);
    return count && !failures ? 0 : 1;
}
