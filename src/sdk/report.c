/* SPDX-License-Identifier: Apache-2.0 */
/* gpufl_generate_report: the same code as `gpufl report`. */
#include "analysis/report.h"
#include "sdk/session.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static gpufl_status write_all(int fd, const struct bytes *text)
{
    for (size_t done = 0; done < text->size;) {
        ssize_t wrote = write(fd, text->data + done, text->size - done);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote < 0)
            return GPUFL_E_IO;
        done += (size_t)wrote;
    }
    return GPUFL_OK;
}

gpufl_status gpufl_generate_report(const char *path)
{
    struct problem problem = {""};
    const char *dir = gpufl_session_dir();
    if (!*dir && session_is_disabled())
        return session_fail(GPUFL_E_DISABLED, &(struct problem){"gpufl is disabled; there is nothing to report"});
    if (!*dir)
        return session_fail(GPUFL_E_NOT_RUNNING,
                            &(struct problem){"there was no session to report; call gpufl_init first"});
    struct session_model *model;
    gpufl_status status = session_load(&model, dir, &problem);
    if (status != GPUFL_OK)
        return session_fail(status, &problem);
    bool to_file = path && *path;
    const struct report_options options = {.top = 10, .use_color = !to_file && isatty(STDOUT_FILENO), .columns = 100};
    struct bytes text = {0};
    status = report_text(model, &options, &text);
    session_free(model);
    if (status == GPUFL_OK) {
        if (!to_file)
            fflush(stdout); /* what the program printed before must come first */
        int fd = to_file ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : STDOUT_FILENO;
        if (fd < 0)
            status =
                problem_set(&problem, GPUFL_E_IO, "cannot write the report to '%.300s': %s", path, strerror(errno));
        else if ((status = write_all(fd, &text)) != GPUFL_OK)
            problem_set(&problem, status, "cannot write the report to '%.300s': %s", to_file ? path : "standard output",
                        strerror(errno));
        if (to_file && fd >= 0 && close(fd) && status == GPUFL_OK)
            status =
                problem_set(&problem, GPUFL_E_IO, "cannot write the report to '%.300s': %s", path, strerror(errno));
    }
    bytes_free(&text);
    return status == GPUFL_OK ? status : session_fail(status, &problem);
}
