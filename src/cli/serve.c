/* SPDX-License-Identifier: Apache-2.0 */
#include "base/server_library.h"
#include "cli/command.h"

#include <string.h>

static const char module_mark[] = "an address in this program";

struct serve_action {
    const char *first, *second; /* words of the command line; "": none */
    enum server_action action;
    const char *operand; /* what follows them; NULL: nothing */
};
static const struct serve_action actions[] = {
    {"", "", SERVER_RUN, NULL},
    {"keys", "create", SERVER_KEYS_CREATE, NULL},
    {"keys", "list", SERVER_KEYS_LIST, NULL},
    {"keys", "rotate", SERVER_KEYS_ROTATE, "KEY"},
    {"keys", "revoke", SERVER_KEYS_REVOKE, "KEY"},
    {"backup", "", SERVER_BACKUP, "FILE"},
    {"check", "", SERVER_CHECK, NULL},
    {"audit", "", SERVER_AUDIT, NULL},
};

/* Fills action and operand; -1: an error was printed. */
static int action_find(struct server_command *command, const struct arguments *arguments)
{
    const char *words[3] = {"", "", ""};
    for (int i = 0; i < arguments->operand_count && i < 3; i++)
        words[i] = arguments->operands[i];
    for (size_t i = 0; i < sizeof actions / sizeof *actions; i++) {
        const struct serve_action *action = &actions[i];
        int used = !*action->first ? 0 : !*action->second ? 1 : 2;
        if (strcmp(action->first, words[0]) != 0 || (used == 2 && strcmp(action->second, words[1]) != 0))
            continue;
        int wanted = used + (action->operand != NULL);
        if (arguments->operand_count < wanted)
            command_error("serve", "%s is missing\n  usage: gpufl serve [OPTION...] %s%s%s %s", action->operand,
                          action->first, used == 2 ? " " : "", action->second, action->operand);
        else if (arguments->operand_count > wanted)
            command_error("serve", "'%s' is one too many", arguments->operands[wanted]);
        command->action = action->action;
        command->operand = action->operand ? words[used] : NULL;
        return arguments->operand_count == wanted ? 0 : -1;
    }
    command_error("serve",
                  "no action '%s%s%s'; choose keys create, keys list, keys rotate KEY, keys revoke KEY, "
                  "backup FILE, check or audit",
                  words[0], *words[1] ? " " : "", words[1]);
    return -1;
}

int command_serve(int argc, char **argv)
{
    struct arguments arguments;
    int code = command_parse("serve", argc, argv, &arguments);
    if (code >= 0)
        return code;
    struct problem problem = {""};
    struct server_command command = {
        .listen = arguments_text(&arguments, "listen", NULL),
        .data = arguments_text(&arguments, "data", NULL),
        .store = arguments_text(&arguments, "store", NULL),
        .tls_cert = arguments_text(&arguments, "tls-cert", NULL),
        .tls_key = arguments_text(&arguments, "tls-key", NULL),
        .config = arguments_text(&arguments, "config", NULL),
        .allow_hosts = arguments_text(&arguments, "allow-host", NULL),
        .cors_origins = arguments_text(&arguments, "cors-origin", NULL),
        .admin_key_file = arguments_text(&arguments, "admin-key-file", NULL),
        .retention_days = arguments_number(&arguments, "retention-days", -1),
        .retention_bytes = arguments_number(&arguments, "retention-bytes", -1),
        .is_verbose = arguments_has(&arguments, "verbose"),
        .is_json = arguments_has(&arguments, "json"),
        .key_name = arguments_text(&arguments, "name", NULL),
        .key_scope = arguments_text(&arguments, "scope", NULL),
        .expires_days = arguments_number(&arguments, "expires-days", -1),
        .grace_hours = arguments_number(&arguments, "grace-hours", -1),
        .rate_per_s = arguments_number(&arguments, "rate", -1),
        .limit = arguments_number(&arguments, "limit", -1),
        .quota_bytes = arguments_number(&arguments, "quota-bytes", -1),
    };
    if (action_find(&command, &arguments))
        return EXIT_USAGE;
    server_main_fn run = server_library_find(module_mark, &problem);
    if (!run) {
        command_error("serve", "%s", problem.text);
        return EXIT_ENVIRONMENT;
    }
    return run(&command);
}
