/* SPDX-License-Identifier: Apache-2.0 */
#include "app_options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "usage: fake_app [options]   a scripted CUDA program for the look-alike libraries\n"
    "  --threads N            worker threads (1)\n"
    "  --streams N            streams in all, at least one per thread; 0: the default stream (0)\n"
    "  --launches N           kernel launches per thread (100)\n"
    "  --kernel-us N          simulated duration of a kernel (5)\n"
    "  --sync-every N         stream synchronization after every N launches (0: never)\n"
    "  --scopes               gpufl scopes thread_T|scope_N; kernel scope_N is launched only in scope_N\n"
    "  --scopes-per-thread N  distinct scopes of each thread (1)\n"
    "  --nvtx                 NVTX ranges range_T; kernel range_T is launched only in range_T\n"
    "  --copies               copies and memsets after every 50 launches\n"
    "  --graphs               a captured graph, launched after every 100 launches\n"
    "  --graph-nodes N        kernels of that graph (3)\n"
    "  --capture-ms N         capture that graph for N ms (0)\n"
    "  --driver               driver API instead of runtime API\n"
    "  --contexts N           N contexts, threads in turn (implies --driver)\n"
    "  --churn N              after every N launches one more in a separate context (implies --driver)\n"
    "  --gpus N               N GPUs, threads in turn; see FAKE_GPU_COUNT\n"
    "  --run-ms N             launch for N ms instead of counting launches\n"
    "  --until-input-ends     launch until the other end of the standard input, a pipe, is closed\n"
    "  --pause-us N           sleep between launches\n"
    "  --no-sync              do not wait for the GPU before exit\n"
    "  --fork                 afterwards fork a child that exits normally\n"
    "  --fork-first           fork before the first CUDA call; both processes work\n"
    "  --exec                 first run this program without --exec as a child\n"
    "  --take-over            halfway, register for CUPTI's buffers as an ill-mannered second profiler does\n"
    "  --dlopen PATH          load a library first\n"
    "  --exit CODE            exit status (0)\n"
    "  --crash SIGNAL         die of that signal at the end\n";

struct option_row {
    const char *name;
    int *number;
    bool *flag;
};

static bool number_parse(const char *name, const char *text, int *number)
{
    char *end;
    long value = text != NULL ? strtol(text, &end, 10) : -1;
    if (text == NULL || *text == '\0' || *end != '\0' || value < 0 || value > 1000000000) {
        fprintf(stderr, "fake_app: %s wants a number\n", name);
        return false;
    }
    *number = (int)value;
    return true;
}

bool app_options_parse(struct app_options *o, int argc, char **argv)
{
    *o = (struct app_options){.threads = 1,
                              .launches = 100,
                              .kernel_us = 5,
                              .contexts = 1,
                              .gpus = 1,
                              .scopes_per_thread = 1,
                              .graph_nodes = 3};
    const struct option_row rows[] = {{"--threads", &o->threads, NULL},
                                      {"--streams", &o->streams, NULL},
                                      {"--launches", &o->launches, NULL},
                                      {"--kernel-us", &o->kernel_us, NULL},
                                      {"--sync-every", &o->sync_every, NULL},
                                      {"--contexts", &o->contexts, NULL},
                                      {"--gpus", &o->gpus, NULL},
                                      {"--scopes-per-thread", &o->scopes_per_thread, NULL},
                                      {"--exit", &o->exit_code, NULL},
                                      {"--crash", &o->crash_signal, NULL},
                                      {"--run-ms", &o->run_ms, NULL},
                                      {"--pause-us", &o->pause_us, NULL},
                                      {"--churn", &o->churn, NULL},
                                      {"--capture-ms", &o->capture_ms, NULL},
                                      {"--graph-nodes", &o->graph_nodes, NULL},
                                      {"--scopes", NULL, &o->has_scopes},
                                      {"--nvtx", NULL, &o->has_nvtx},
                                      {"--copies", NULL, &o->has_copies},
                                      {"--graphs", NULL, &o->has_graphs},
                                      {"--driver", NULL, &o->uses_driver},
                                      {"--fork", NULL, &o->has_fork},
                                      {"--fork-first", NULL, &o->has_fork_first},
                                      {"--exec", NULL, &o->has_exec},
                                      {"--no-sync", NULL, &o->has_no_sync},
                                      {"--take-over", NULL, &o->has_take_over},
                                      {"--until-input-ends", NULL, &o->until_input_ends}};
    for (int i = 1; i < argc; i++) {
        const struct option_row *found = NULL;
        for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++)
            if (strcmp(argv[i], rows[r].name) == 0)
                found = &rows[r];
        if (strcmp(argv[i], "--dlopen") == 0 && i + 1 < argc) {
            o->library = argv[++i];
        } else if (found == NULL) {
            fprintf(stderr, "fake_app: unknown option %s\n%s", argv[i], help);
            return false;
        } else if (found->flag != NULL) {
            *found->flag = true;
        } else {
            i++;
            if (!number_parse(found->name, i < argc ? argv[i] : NULL, found->number))
                return false;
        }
    }
    o->uses_driver = o->uses_driver || o->contexts > 1 || o->churn > 0;
    if (o->threads < 1 || o->threads > 256 || o->gpus < 1 || o->contexts < 1 || o->contexts > 64 ||
        o->scopes_per_thread < 1 || o->scopes_per_thread > 1000 || (o->has_graphs && o->uses_driver)) {
        fputs("fake_app: option out of range, or --graphs with the driver API\n", stderr);
        return false;
    }
    return true;
}
