/* SPDX-License-Identifier: Apache-2.0 */
#include "faults.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { FAULT_LIMIT = 32, INVALID_PARAMETER = 1, HANGS = -1 };

struct fault {
    char name[64], value[256]; /* of "fail=F@N:R": name F, and below */
    long call_number, result;  /* call_number 0: every call */
    atomic_long calls;
    int is_failure;
};
static struct fault faults[FAULT_LIMIT];
static int fault_count;
static pthread_once_t parsed = PTHREAD_ONCE_INIT;

static void failure_parse(struct fault *fault)
{
    char function[64], number[16];
    long result;
    if (sscanf(fault->value, "%63[^@]@%15[^:]:%ld", function, number, &result) != 3)
        return;
    memcpy(fault->name, function, sizeof fault->name);
    fault->call_number = strcmp(number, "*") == 0 ? 0 : strtol(number, NULL, 10);
    fault->result = result;
    fault->is_failure = 1;
}

static void faults_parse(void)
{
    const char *text = getenv("FAKE_FAULTS");
    while (text != NULL && *text != '\0' && fault_count < FAULT_LIMIT) {
        struct fault *fault = &faults[fault_count];
        text += strspn(text, "; \t");
        if (sscanf(text, "%63[^=; ] = %255[^;]", fault->name, fault->value) == 2) {
            for (size_t n = strlen(fault->value); n > 0 && fault->value[n - 1] == ' '; n--)
                fault->value[n - 1] = '\0';
            if (strcmp(fault->name, "fail") == 0)
                failure_parse(fault);
            fault_count++;
        }
        text = strchr(text, ';');
    }
}

static const struct fault *fault_find(const char *name)
{
    pthread_once(&parsed, faults_parse);
    for (int i = 0; i < fault_count; i++)
        if (!faults[i].is_failure && strcmp(faults[i].name, name) == 0)
            return &faults[i];
    return NULL;
}

int64_t fault_number(const char *name, int64_t absent)
{
    const struct fault *fault = fault_find(name);
    return fault != NULL ? strtoll(fault->value, NULL, 0) : absent;
}

void fault_text(const char *name, char *out, size_t size)
{
    const struct fault *fault = fault_find(name);
    snprintf(out, size, "%s", fault != NULL ? fault->value : "");
}

static int calls_fd = -1;
static pthread_once_t calls_opened = PTHREAD_ONCE_INIT;

static void calls_open(void)
{
    const char *path = getenv("FAKE_CALLS");
    if (path != NULL)
        calls_fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
}

/* A line of the file FAKE_CALLS: the function, behind a '!' where it never returns. */
static void call_note(const char *function, int is_hung)
{
    char line[96];
    pthread_once(&calls_opened, calls_open);
    int size = snprintf(line, sizeof line, "%s%s\n", is_hung ? "!" : "", function);
    if (calls_fd >= 0 && write(calls_fd, line, (size_t)size) != size)
        abort();
}

int fault_result(const char *function)
{
    pthread_once(&parsed, faults_parse);
    call_note(function, 0);
    for (int i = 0; i < fault_count; i++) {
        struct fault *fault = &faults[i];
        if (!fault->is_failure || strcmp(fault->name, function) != 0)
            continue;
        long call = atomic_fetch_add(&fault->calls, 1) + 1;
        if (fault->call_number && fault->call_number != call)
            continue;
        if (fault->result == HANGS)
            call_note(function, 1);
        while (fault->result == HANGS)
            pause();
        return (int)fault->result;
    }
    return 0;
}

int fault_result_sized(const char *function, size_t struct_bytes, size_t expected)
{
    int result = fault_result(function);
    return result == 0 && struct_bytes != expected ? INVALID_PARAMETER : result;
}

static int64_t mono_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int64_t begun_ms;
static void begun_setup(void)
{
    begun_ms = mono_ms();
}

int fault_has_begun(const char *after)
{
    static pthread_once_t asked = PTHREAD_ONCE_INIT;
    pthread_once(&asked, begun_setup);
    int64_t after_ms = fault_number(after, -1);
    return after_ms >= 0 && mono_ms() - begun_ms >= after_ms;
}

int fault_is_switched_on(const char *name)
{
    const struct fault *fault = fault_find(name);
    return fault != NULL && access(fault->value, F_OK) == 0;
}

int fault_gpu_is_lost(void)
{
    return fault_has_begun("lost_gpu_after_ms") || fault_is_switched_on("lost_gpu_while");
}
