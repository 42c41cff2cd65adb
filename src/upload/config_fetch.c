/* SPDX-License-Identifier: Apache-2.0 */
#include "upload/config_fetch.h"

#include "base/directory.h"
#include "base/remote_config.h"
#include "format/json.h"
#include "upload/http_client.h"
#include "upload/upload.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

/* The local copy and its ETag. */
struct copy {
    int dir_fd;
    char file[REMOTE_CONFIG_NAME_MAX + 8], etag_file[REMOTE_CONFIG_NAME_MAX + 8];
    char etag[128]; /* "": none */
};

static gpufl_status copy_open(struct copy *copy, const struct config_fetch *fetch, struct problem *problem)
{
    char home[PATH_MAX];
    const char *dir = fetch->dir && *fetch->dir ? fetch->dir : home;
    if (dir == home && !remote_config_home(home, sizeof home))
        return problem_set(problem, GPUFL_E_INVALID, "no home directory to store remote configurations in");
    gpufl_status status = directory_make(dir, problem);
    if (status)
        return status;
    copy->dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (copy->dir_fd < 0)
        return problem_set(problem, GPUFL_E_IO, "cannot open %.300s: %s", dir, strerror(errno));
    snprintf(copy->file, sizeof copy->file, "%.64s.json", fetch->name);
    snprintf(copy->etag_file, sizeof copy->etag_file, "%.64s.etag", fetch->name);
    struct bytes etag = {0};
    if (faccessat(copy->dir_fd, copy->file, R_OK, 0) == 0 &&
        file_load(copy->dir_fd, copy->etag_file, sizeof copy->etag - 1, &etag) == GPUFL_OK) {
        const char *text = bytes_text(&etag);
        for (size_t i = 0; text[i] > ' ' && text[i] <= '~' && i + 1 < sizeof copy->etag; i++)
            copy->etag[i] = text[i];
    }
    bytes_free(&etag);
    return GPUFL_OK;
}

static gpufl_status content_check(const struct http_answer *answer, const char *name, struct problem *problem)
{
    struct json_document document;
    struct json_error error;
    if (json_parse(&document, answer->text.data, answer->text.size, &error))
        return problem_set(problem, GPUFL_E_INVALID, "remote configuration '%s': line %u, column %u: %s", name,
                           error.line, error.column, error.text);
    gpufl_status status = GPUFL_OK;
    if (document.root->kind != JSON_OBJECT)
        status = problem_set(problem, GPUFL_E_INVALID, "remote configuration '%s' is not an object of options", name);
    for (const struct json_value *member = document.root->child; member && !status; member = member->next)
        if (!remote_config_may_set(member->key))
            status = problem_set(
                problem, GPUFL_E_INVALID,
                "remote configuration '%s' sets '%.60s', which a server must not set; the configuration is not used",
                name, member->key);
    json_free(&document);
    return status;
}

static gpufl_status copy_replace(const struct copy *copy, const struct http_answer *answer, struct problem *problem)
{
    /* Removing the etag first means that an interruption causes a new fetch. */
    unlinkat(copy->dir_fd, copy->etag_file, 0);
    gpufl_status status = file_replace(copy->dir_fd, copy->file, answer->text.data, answer->text.size);
    if (!status && answer->etag[0])
        status = file_replace(copy->dir_fd, copy->etag_file, answer->etag, strlen(answer->etag));
    if (status)
        problem_set(problem, status, "cannot write %s: %s", copy->file, strerror(errno));
    return status;
}

static gpufl_status answer_take(const struct copy *copy, const struct http_client *client, const char *name,
                                const struct http_answer *answer, bool *is_new, struct problem *problem)
{
    char text[160];
    if (answer->status == 304 && copy->etag[0])
        return GPUFL_OK;
    if (answer->status == 200 && answer->text.size >= REMOTE_CONFIG_BYTES_MAX)
        return problem_set(problem, GPUFL_E_INVALID, "remote configuration '%s' is larger than 64 KiB", name);
    if (answer->status == 200) {
        gpufl_status status = content_check(answer, name, problem);
        if (!status)
            status = copy_replace(copy, answer, problem);
        *is_new = status == GPUFL_OK;
        return status;
    }
    http_answer_explain(client, answer, text, sizeof text);
    if (answer->status == 404)
        return problem_set(problem, GPUFL_E_NOT_FOUND, "the server has no configuration '%s'", name);
    if (!answer->status)
        return problem_set(problem, GPUFL_E_IO, "%.160s did not answer: %s", http_client_address(client),
                           answer->reason);
    return problem_set(problem, answer->status == 401 || answer->status == 403 ? GPUFL_E_PERMISSION : GPUFL_E_IO,
                       "%.160s answered HTTP %d for configuration '%s'%s%s", http_client_address(client),
                       answer->status, name, *text ? ": " : "", text);
}

gpufl_status gpufl_config_fetch(const struct config_fetch *fetch, bool *is_new, struct problem *problem)
{
    bool was_new = false;
    if (fetch->struct_size != sizeof *fetch)
        return problem_set(problem, GPUFL_E_VERSION, "gpufl and libgpufl-upload.so have different versions");
    if (!fetch->name || !remote_config_name_is_valid(fetch->name))
        return problem_set(
            problem, GPUFL_E_INVALID,
            "invalid configuration name '%.80s': use letters, digits, '.', '_' and '-', at most %d characters",
            fetch->name ? fetch->name : "", REMOTE_CONFIG_NAME_MAX);
    struct copy copy = {.dir_fd = -1};
    struct http_client *client = NULL;
    struct http_answer answer = {0};
    const struct http_server server = {.url = fetch->server_url ? fetch->server_url : "",
                                       .api_path = fetch->api_path && *fetch->api_path ? fetch->api_path
                                                                                       : UPLOAD_API_PATH_DEFAULT,
                                       .api_key = fetch->api_key,
                                       .ca_file = fetch->ca_file};
    gpufl_status status = http_client_open(&client, &server, problem);
    if (!status)
        status = copy_open(&copy, fetch, problem);
    if (!status) {
        char path[REMOTE_CONFIG_NAME_MAX + 16], if_none_match[160];
        const char *headers[] = {"Accept: application/json", copy.etag[0] ? if_none_match : NULL, NULL};
        snprintf(path, sizeof path, "/configs/%.64s", fetch->name);
        snprintf(if_none_match, sizeof if_none_match, "If-None-Match: %s", copy.etag);
        const struct http_request request = {.path = path, .headers = headers, .timeout_ms = fetch->timeout_ms};
        status = http_get(client, &request, &answer);
        if (status)
            problem_set(problem, status, "no memory");
        else
            status = answer_take(&copy, client, fetch->name, &answer, &was_new, problem);
    }
    if (is_new)
        *is_new = was_new;
    if (copy.dir_fd >= 0)
        close(copy.dir_fd);
    http_answer_free(&answer);
    http_client_close(client);
    return status;
}
