/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/demo_recordings.h"

#include "cli/installation.h"
#include "logfile/session_dir.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A whole training run says more on one page than any other recording. */
static const char reported_first[] = "h200-training";

static int compare_names(const struct dirent **left, const struct dirent **right)
{
    bool is_left = !strcmp((*left)->d_name, reported_first), is_right = !strcmp((*right)->d_name, reported_first);
    return is_left != is_right ? is_right - is_left : strcmp((*left)->d_name, (*right)->d_name);
}

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static void add_session(struct demo_recordings *recordings, const char *folder, const char *name)
{
    char path[PATH_MAX];
    struct session_files files;
    int size = snprintf(path, sizeof path, "%s/%s", folder, name);
    if (size < 0 || (size_t)size >= sizeof path || session_files_list(&files, path, NULL) != GPUFL_OK)
        return;
    session_files_free(&files);
    if (recordings->count < DEMO_RECORDINGS_MAX)
        memcpy(recordings->paths[recordings->count++], path, (size_t)size + 1);
    else
        recordings->left_out++;
}

gpufl_status demo_recordings_find(struct demo_recordings *recordings, struct problem *problem)
{
    static const char *const folders[] = {"../../examples/recorded", "../share/gpufl/examples/recorded", NULL};
    char folder[PATH_MAX];
    *recordings = (struct demo_recordings){.count = 0};
    if (!installation_find(folder, folders))
        return problem_set(problem, GPUFL_E_NOT_FOUND, "the recorded sessions are not installed");
    struct dirent **entries = NULL;
    int count = scandir(folder, &entries, is_visible, compare_names);
    if (count < 0)
        return problem_set(problem, GPUFL_E_IO, "%s: %s", folder, strerror(errno));
    for (int i = 0; i < count; i++) {
        add_session(recordings, folder, entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
    return recordings->count ? GPUFL_OK : problem_set(problem, GPUFL_E_NOT_FOUND, "there is no session in %s", folder);
}
