/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the small text files in /sys. */
#include "driver/amdgpu_table.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { RETRY_MAX = 16 };

int amd_file_open(const char *path)
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0 && (fstat(fd, &status) || !S_ISREG(status.st_mode))) {
        close(fd);
        fd = -1;
    }
    return fd;
}

long amd_file_read(int fd, char *text, size_t size)
{
    ssize_t got = -1;
    for (int attempt = 0; attempt < RETRY_MAX; attempt++) {
        got = pread(fd, text, size - 1, 0);
        if (got >= 0 || errno != EINTR)
            break;
    }
    text[got > 0 ? got : 0] = '\0';
    return got;
}

bool amd_text_read(const char *directory, const char *name, char *text, size_t size)
{
    char path[AMD_PATH_MAX + 320];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    int fd = amd_file_open(path);
    if (fd < 0)
        return false;
    long got = amd_file_read(fd, text, size);
    close(fd);
    text[strcspn(text, "\r\n")] = '\0';
    size_t length = strlen(text);
    while (length && isspace((unsigned char)text[length - 1]))
        text[--length] = '\0';
    return got > 0;
}

bool amd_number_parse(const char *text, uint64_t *number)
{
    char *end;
    if (!isdigit((unsigned char)*text))
        return false;
    bool is_hex = text[0] == '0' && (text[1] | 0x20) == 'x';
    errno = 0;
    unsigned long long value = strtoull(text, &end, is_hex ? 16 : 10);
    if (errno || end[strspn(end, " \t\r\n")])
        return false;
    *number = value;
    return true;
}

bool amd_number_read(const char *directory, const char *name, uint64_t *number)
{
    char text[64];
    return amd_text_read(directory, name, text, sizeof text) && amd_number_parse(text, number);
}

bool amd_property_find(const char *text, const char *key, uint64_t *number)
{
    size_t key_size = strlen(key);
    for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        if (strncmp(line, key, key_size) != 0 || line[key_size] != ' ')
            continue;
        return sscanf(line + key_size, " %" SCNu64, number) == 1;
    }
    return false;
}

bool amd_dpm_parse(const char *text, uint64_t *mhz)
{
    for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        char marked[64];
        size_t size = strcspn(line, "\n");
        if (size >= sizeof marked)
            continue;
        memcpy(marked, line, size);
        marked[size] = '\0';
        char *colon = strchr(marked, ':');
        if (!strchr(marked, '*') || !colon)
            continue;
        unsigned value = 0;
        char unit[4] = "";
        if (sscanf(colon + 1, " %6u%3c", &value, unit) != 2 || strncasecmp(unit, "mhz", 3) != 0)
            return false;
        *mhz = value;
        return true;
    }
    return false;
}

bool amd_ras_parse(const char *text, uint64_t *corrected, uint64_t *uncorrected)
{
    const char *ue = strstr(text, "ue:"), *ce = strstr(text, "ce:");
    uint64_t ue_count, ce_count;
    if (!ue || !ce || sscanf(ue + 3, " %" SCNu64, &ue_count) != 1 || sscanf(ce + 3, " %" SCNu64, &ce_count) != 1)
        return false;
    return !__builtin_add_overflow(*corrected, ce_count, corrected) &&
           !__builtin_add_overflow(*uncorrected, ue_count, uncorrected);
}
