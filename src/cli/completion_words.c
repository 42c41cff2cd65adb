/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/completion_words.h"

#include "base/server_library.h"
#include "cli/metrics.h"
#include "driver/metric_sets.h"
#include "format/json.h"
#include "logfile/session_scan.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { TIME_LIMIT_S = 3 }; /* a driver that does not answer must not block the shell */

struct request {
    const char *word; /* without the shell's quotes */
    size_t kept;      /* bytes of word up to its last comma: earlier items of a list */
    char **line;
    int line_count;
};

const char *completion_words_of_option(const struct option_info *option)
{
    return option->kind == OPTION_CHIP         ? "chips"
           : option->kind == OPTION_METRICS    ? "metrics"
           : option->kind == OPTION_PM_METRICS ? "pm-metrics"
                                               : NULL;
}

const char *completion_words_of_operand(const struct command *command)
{
    return command->run == command_metrics                                ? "metric-operands"
           : command->run == command_serve                                ? "serve-operands"
           : command->operand && strcmp(command->operand, "SESSION") == 0 ? "sessions"
                                                                          : NULL;
}

static bool line_has(const struct request *request, const char *word)
{
    for (int i = 0; i < request->line_count; i++)
        if (strcmp(request->line[i], word) == 0)
            return true;
    return false;
}

static const char *value_of(const struct request *request, const char *option)
{
    const char *value = NULL;
    for (int i = 0; i + 1 < request->line_count; i++)
        if (strcmp(request->line[i], option) == 0)
            value = request->line[i + 1];
    return value;
}

/* bash passes the word as it was typed. */
static void unquote(struct bytes *out, const char *typed)
{
    for (; *typed; typed++) {
        if (*typed == '\\' && typed[1])
            bytes_append_char(out, *++typed);
        else if (*typed != '\'' && *typed != '"')
            bytes_append_char(out, *typed);
    }
}

static bool starts(const struct request *request, const char *candidate)
{
    const char *wanted = request->word + request->kept;
    return strncmp(candidate, wanted, strlen(wanted)) == 0;
}

/* A candidate is one line, so names with line ends and other control characters are left out. */
static void offer(const struct request *request, const char *candidate)
{
    bool is_line = *candidate;
    for (const char *c = candidate; *c; c++)
        is_line = is_line && (unsigned char)*c >= ' ' && *c != 0x7f;
    if (is_line && starts(request, candidate))
        printf("%.*s%s\n", (int)request->kept, request->word, candidate);
}

static void offer_sessions(const struct request *request)
{
    struct session_scan scan;
    struct problem ignored;
    if (session_scan_find_here(&scan, &ignored) != GPUFL_OK)
        return;
    session_scan_name(&scan);
    if (scan.count)
        offer(request, "latest");
    if (scan.count > 1)
        offer(request, "latest~1");
    for (size_t i = 0; i < scan.count; i++)
        offer(request, scan.items[i].name);
    session_scan_free(&scan);
}

static void offer_chips(const struct request *request)
{
    struct cupti *cupti = NULL;
    struct name_list chips = {0};
    struct problem ignored;
    if (cupti_load(&cupti, &ignored) != GPUFL_OK || profiler_host_chips(cupti, &chips, &ignored) != GPUFL_OK)
        return;
    for (size_t i = 0; i < chips.count; i++)
        offer(request, chips.names[i]);
    name_list_free(&chips);
}

static void offer_suffixes(const struct request *request, struct profiler_host *host, const char *metric,
                           enum metric_type type)
{
    struct name_list suffixes = {0};
    struct problem ignored;
    if (profiler_host_sub_metrics(host, metric, type, &suffixes, &ignored) != GPUFL_OK)
        return;
    for (size_t i = 0; i < suffixes.count; i++) {
        struct bytes name = {0};
        bytes_append_format(&name, "%s%s", metric, suffixes.names[i]);
        offer(request, bytes_text(&name));
        bytes_free(&name);
    }
    name_list_free(&suffixes);
}

/* All base names that fit. Suffixes only after a whole base name: all full names would be tens of thousands. */
static void offer_names(const struct request *request, struct profiler_host *host)
{
    const char *wanted = request->word + request->kept;
    size_t base_size = strcspn(wanted, ".");
    for (int type = METRIC_COUNTER; type <= METRIC_THROUGHPUT; type++) {
        struct name_list names = {0};
        struct problem ignored;
        if (profiler_host_base_metrics(host, (enum metric_type)type, &names, &ignored) != GPUFL_OK)
            continue;
        for (size_t i = 0; i < names.count; i++) {
            offer(request, names.names[i]);
            if (strlen(names.names[i]) == base_size && strncmp(names.names[i], wanted, base_size) == 0)
                offer_suffixes(request, host, names.names[i], (enum metric_type)type);
        }
        name_list_free(&names);
    }
}

static void offer_metrics(const struct request *request, enum profiler_kind kind, bool takes_sets)
{
    struct cupti *cupti = NULL;
    struct profiler_host *host = NULL;
    struct problem ignored;
    char own[PROFILER_CHIP_NAME_BYTES];
    const char *chip = value_of(request, "--chip");
    for (size_t i = 0; takes_sets && i < metric_set_count; i++)
        if (metric_sets[i].kind == kind)
            offer(request, metric_sets[i].name);
    if (cupti_load(&cupti, &ignored) != GPUFL_OK)
        return;
    if (!chip && metrics_own_chip(own, &ignored) == GPUFL_OK)
        chip = own;
    if (chip && profiler_host_open(&host, cupti, chip, kind, NULL, 0, &ignored) == GPUFL_OK)
        offer_names(request, host);
    profiler_host_close(host);
}

static void offer_metric_operands(const struct request *request)
{
    static const char *const actions[] = {"chips", "list", "show", "passes", "sets", NULL};
    enum profiler_kind kind = line_has(request, "--pm") ? PROFILER_PM_SAMPLING : PROFILER_RANGE;
    bool has_passes = line_has(request, "passes");
    if (has_passes || line_has(request, "list") || line_has(request, "show"))
        offer_metrics(request, kind, has_passes);
    else if (!line_has(request, "chips") && !line_has(request, "sets"))
        for (const char *const *action = actions; *action; action++)
            offer(request, *action);
}

/* A server's library creates the data directory that it is given, so it is only asked about one that is there. */
static bool has_server_data(const char *data)
{
    struct bytes path = {0};
    const char *home = getenv("HOME");
    if (data)
        bytes_append_format(&path, "%s/gpufl.db", data);
    else if (home)
        bytes_append_format(&path, "%s/.local/share/gpufl/server/gpufl.db", home);
    bool is_there = path.size && access(bytes_text(&path), R_OK) == 0;
    bytes_free(&path);
    return is_there;
}

static void offer_keys_of(const struct request *request, const char *text, size_t size)
{
    struct json_document document = {0};
    if (json_parse(&document, text, size, NULL) != GPUFL_OK)
        return;
    for (const struct json_value *key = document.root->child; key; key = key->next) {
        char id[24];
        if (json_get_int(key, "revoked_ns", 0))
            continue;
        snprintf(id, sizeof id, "%lld", (long long)json_get_int(key, "id", 0));
        offer(request, id);
        offer(request, json_get_text(key, "name", ""));
    }
    json_free(&document);
}

/* `serve keys list --json` prints to the standard output, which is a file in memory meanwhile. */
static void offer_keys(const struct request *request)
{
    static const char module_mark[] = "an address in this program";
    struct server_command command = {.action = SERVER_KEYS_LIST,
                                     .data = value_of(request, "--data"),
                                     .is_json = true,
                                     .retention_days = -1,
                                     .retention_bytes = -1,
                                     .expires_days = -1,
                                     .grace_hours = -1,
                                     .rate_per_s = -1,
                                     .quota_bytes = -1,
                                     .limit = -1};
    struct problem ignored;
    server_main_fn run = has_server_data(command.data) ? server_library_find(module_mark, &ignored) : NULL;
    int memory = run ? memfd_create("keys", MFD_CLOEXEC) : -1, output = memory >= 0 ? dup(STDOUT_FILENO) : -1;
    if (output >= 0 && dup2(memory, STDOUT_FILENO) >= 0) {
        int code = run(&command);
        fflush(stdout);
        off_t size = lseek(memory, 0, SEEK_END);
        void *text = size > 0 ? mmap(NULL, (size_t)size, PROT_READ, MAP_SHARED, memory, 0) : MAP_FAILED;
        dup2(output, STDOUT_FILENO);
        if (code == EXIT_GOOD && text != MAP_FAILED)
            offer_keys_of(request, text, (size_t)size);
    }
}

static void offer_serve_operands(const struct request *request)
{
    static const char *const actions[] = {"keys", "backup", "check", "audit", NULL};
    static const char *const key_actions[] = {"create", "list", "rotate", "revoke", NULL};
    bool is_key = line_has(request, "keys");
    if (is_key && (line_has(request, "rotate") || line_has(request, "revoke")))
        offer_keys(request);
    else if (!line_has(request, "create") && !line_has(request, "list"))
        for (const char *const *action = is_key ? key_actions : actions; *action; action++)
            offer(request, *action);
}

static void offer_range_metrics(const struct request *request)
{
    offer_metrics(request, PROFILER_RANGE, true);
}

static void offer_pm_metrics(const struct request *request)
{
    offer_metrics(request, PROFILER_PM_SAMPLING, true);
}

static void leave(int number)
{
    (void)number;
    _exit(EXIT_GOOD);
}

int completion_words(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*offer)(const struct request *request);
        bool is_list;
    } kinds[] = {{"sessions", offer_sessions, false},
                 {"chips", offer_chips, false},
                 {"metrics", offer_range_metrics, true},
                 {"pm-metrics", offer_pm_metrics, true},
                 {"metric-operands", offer_metric_operands, false},
                 {"serve-operands", offer_serve_operands, false}};
    struct bytes word = {0};
    struct request request = {.line = argv + 2, .line_count = argc > 2 ? argc - 2 : 0};
    int silence = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (silence >= 0)
        dup2(silence, STDERR_FILENO);
    signal(SIGALRM, leave);
    alarm(TIME_LIMIT_S);
    unquote(&word, argc > 1 ? argv[1] : "");
    request.word = bytes_text(&word);
    for (size_t i = 0; argc > 0 && i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(kinds[i].name, argv[0]) != 0)
            continue;
        const char *comma = kinds[i].is_list ? strrchr(request.word, ',') : NULL;
        request.kept = comma ? (size_t)(comma - request.word) + 1 : 0;
        kinds[i].offer(&request);
    }
    bytes_free(&word);
    return EXIT_GOOD;
}
