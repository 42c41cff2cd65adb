/* SPDX-License-Identifier: Apache-2.0 */
/* Reading: the recorded H200 session (sealed segments) loaded into the session
 * model again and again, on one core. The floor is reading and decoding its
 * lines without keeping anything. */
#include "analysis/session.h"
#include "base/clock.h"
#include "logfile/reader.h"

#include <stdio.h>

enum { rounds = 20 };

static bool ignore_line(void *user, const struct log_line *line)
{
    (void)user, (void)line;
    return true;
}

int main(int argc, char **argv)
{
    const char *path = argc > 1 ? argv[1] : "examples/recorded/h200-training";
    struct problem problem = {""};
    struct log_summary summary = {0};
    uint64_t kernels = 0;
    int64_t read_ns = 0, load_ns = 0;
    for (int i = 0; i < rounds; i++) {
        int64_t start_ns = clock_thread_cpu_ns();
        struct session_model *model;
        if (log_read(path, ignore_line, NULL, NULL, &summary, &problem) != GPUFL_OK)
            goto fail;
        int64_t middle_ns = clock_thread_cpu_ns();
        if (session_load(&model, path, &problem) != GPUFL_OK)
            goto fail;
        load_ns += clock_thread_cpu_ns() - middle_ns;
        read_ns += middle_ns - start_ns;
        kernels += model->kernels.count;
        session_free(model);
    }
    double rate = (double)kernels * 1e9 / (double)load_ns, floor = (double)kernels * 1e9 / (double)read_ns;
    printf("reading a sealed session           %6.2f M kernels/s/core   (budget 5; lines alone %.2f M/s: %.2f of it)\n",
           rate / 1e6, floor / 1e6, rate / floor);
    return 0;
fail:
    fprintf(stderr, "bench_session: %s\n", problem.text);
    return 1;
}
