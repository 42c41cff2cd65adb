/* SPDX-License-Identifier: Apache-2.0 */
#include "base/upload_library.h"

#include "base/sibling_library.h"

#include <string.h>

#define UPLOAD_LIBRARY "libgpufl-upload.so.1"

void *upload_library_symbol(const void *address, const char *name, struct problem *problem)
{
    char reason[300];
    void *found = sibling_library_symbol(UPLOAD_LIBRARY, name, address, reason, sizeof reason);
    if (!found && *GPUFL_UPLOAD_LACKS)
        problem_set(problem, GPUFL_E_UNSUPPORTED, "uploads are unavailable in this build: %s", GPUFL_UPLOAD_LACKS);
    else if (!found)
        problem_set(problem, GPUFL_E_UNSUPPORTED, "uploads require %s next to gpufl, with libcurl: %s", UPLOAD_LIBRARY,
                    reason);
    return found;
}

upload_run_fn upload_library_find(const void *address, struct problem *problem)
{
    void *found = upload_library_symbol(address, "gpufl_upload_run", problem);
    upload_run_fn run = NULL;
    memcpy(&run, &found, sizeof run);
    return run;
}

upload_post_fn upload_library_find_post(const void *address, struct problem *problem)
{
    void *found = upload_library_symbol(address, "gpufl_upload_post", problem);
    upload_post_fn post = NULL;
    memcpy(&post, &found, sizeof post);
    return post;
}

upload_check_fn upload_library_find_check(const void *address, struct problem *problem)
{
    void *found = upload_library_symbol(address, "gpufl_upload_check", problem);
    upload_check_fn check = NULL;
    memcpy(&check, &found, sizeof check);
    return check;
}
