/* SPDX-License-Identifier: Apache-2.0 */
/* Completion scripts, from the command table. */
#include "base/environment.h"
#include "cli/command.h"
#include "cli/completion_words.h"

#include <string.h>

static void put_names(const char *separator)
{
    for (const char *const *name = command_names(); *name; name++)
        printf("%s%s", name == command_names() ? "" : separator, *name);
}

/* 'text' for a shell; the table's texts may hold apostrophes. */
static void put_quoted(const char *text)
{
    putchar('\'');
    for (; *text; text++) {
        if (*text == '\'')
            fputs("'\\''", stdout);
        else
            putchar(*text);
    }
    putchar('\'');
}

static bool takes_directory(const struct option_info *option)
{
    return option->value_name && strcmp(option->value_name, "DIR") == 0;
}

static void print_bash(void)
{
    fputs("# bash completion for gpufl: source <(gpufl completion bash)\n"
          "_gpufl_words() {\n"
          "    mapfile -t COMPREPLY < <(command gpufl completion words \"$1\" \"${COMP_WORDS[COMP_CWORD]}\" "
          "\"${COMP_WORDS[@]:1:COMP_CWORD-1}\" 2>/dev/null)\n"
          "}\n"
          "_gpufl() {\n"
          "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} options=\n"
          "    COMPREPLY=()\n"
          "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n        COMPREPLY=($(compgen -W \"",
          stdout);
    put_names(" ");
    fputs("\" -- \"$word\"))\n        return\n    fi\n"
          "    local at\n"
          "    for ((at = 2; at < COMP_CWORD; at++)); do\n"
          "        if [ \"${COMP_WORDS[1]} ${COMP_WORDS[at]}\" = 'trace --' ]; then\n"
          "            COMPREPLY=($(compgen -c -f -- \"$word\"))\n            return\n        fi\n"
          "    done\n"
          "    case \"${COMP_WORDS[1]} $before\" in\n",
          stdout);
    for (const struct command *command = command_table; command->name; command++) {
        for (const struct option_info *option = command->options; option->name; option++) {
            if (completion_words_of_option(option))
                printf("    '%s --%s')\n        _gpufl_words %s\n        return ;;\n", command->name, option->name,
                       completion_words_of_option(option));
            if (option->kind != OPTION_CHOICE)
                continue;
            printf("    '%s --%s')\n        COMPREPLY=($(compgen -W \"", command->name, option->name);
            for (const char *const *choice = option->choices; *choice; choice++)
                printf("%s%s", choice == option->choices ? "" : " ", *choice);
            fputs("\" -- \"$word\"))\n        return ;;\n", stdout);
        }
    }
    fputs("    esac\n    case \"${COMP_WORDS[1]}\" in\n", stdout);
    for (const struct command *command = command_table; command->name; command++) {
        printf("    %s) options=\"--help", command->name);
        for (const struct option_info *option = command->options; option->name; option++)
            printf(" --%s", option->name);
        fputs(strcmp(command->name, "completion") == 0 ? " bash zsh fish\" ;;\n" : "\" ;;\n", stdout);
    }
    fputs("    esac\n    local kind= directory\n    case \"${COMP_WORDS[1]}\" in\n", stdout);
    for (const struct command *command = command_table; command->name; command++)
        if (completion_words_of_operand(command))
            printf("    %s) kind=%s ;;\n", command->name, completion_words_of_operand(command));
    fputs("    esac\n"
          "    if [[ $word == -* || ${COMP_WORDS[1]} == completion ]]; then\n"
          "        COMPREPLY=($(compgen -W \"$options\" -- \"$word\"))\n"
          "    elif [[ $kind && $before != -* ]]; then\n        _gpufl_words $kind\n"
          "        [ \"$kind\" != sessions ] || while IFS= read -r directory; do\n"
          "            COMPREPLY+=(\"$directory\")\n        done < <(compgen -d -- \"$word\")\n"
          "    else\n        mapfile -t COMPREPLY < <(compgen -f -- \"$word\")\n    fi\n"
          "}\n"
          "complete -o filenames -F _gpufl gpufl\n",
          stdout);
}

/* [summary] of an _arguments specification: its own brackets and colons are escaped. */
static void put_zsh_text(const char *text)
{
    for (; *text; text++) {
        if (strchr("[]:\\", *text))
            putchar('\\');
        if (*text == '\'')
            fputs("'\\''", stdout);
        else
            putchar(*text);
    }
}

static void put_zsh_option(const struct option_info *option)
{
    printf(" \\\n        '--%s[", option->name);
    put_zsh_text(option->summary);
    putchar(']');
    if (option->kind == OPTION_CHOICE) {
        printf(":%s:(", option->value_name);
        for (const char *const *choice = option->choices; *choice; choice++)
            printf("%s%s", choice == option->choices ? "" : " ", *choice);
        putchar(')');
    } else if (completion_words_of_option(option)) {
        printf(":%s:_gpufl_words %s", option->value_name, completion_words_of_option(option));
    } else if (takes_directory(option)) {
        fputs(":directory:_files -/", stdout);
    } else if (option->kind == OPTION_TEXT && strcmp(option->value_name, "FILE") == 0) {
        fputs(":file:_files", stdout);
    } else if (option->kind != OPTION_FLAG) {
        printf(":%s: ", option->value_name);
    }
    putchar('\'');
}

static void print_zsh(void)
{
    fputs("#compdef gpufl\n# zsh completion for gpufl: gpufl completion zsh > a directory of $fpath/_gpufl\n"
          "_gpufl_words() { # [OPTION OF COMPADD...] KIND, as _arguments calls it\n    local -a found\n"
          "    found=(${(f)\"$(command gpufl completion words $argv[-1] \"${(Q)PREFIX}\" "
          "\"${(@Q)words[1,CURRENT-1]}\" 2>/dev/null)\"})\n"
          "    compadd \"${(@)argv[1,-2]}\" -a found\n"
          "    [[ $argv[-1] != sessions ]] || _files -/\n}\n"
          "_gpufl_command_after_dashes() {\n    local -i dashes=$words[(i)--]\n"
          "    (( dashes < CURRENT )) || return 1\n"
          "    shift $dashes words\n    (( CURRENT -= dashes ))\n    _normal\n    return 0\n}\n"
          "_gpufl() {\n    local -a subcommands\n    subcommands=(\n",
          stdout);
    for (const struct command *command = command_table; command->name; command++) {
        printf("        '%s:", command->name);
        put_zsh_text(command->summary);
        fputs("'\n", stdout);
    }
    fputs("    )\n    if (( CURRENT == 2 )); then\n        _describe command subcommands\n        return\n    fi\n"
          "    local name=$words[2]\n    shift words\n    (( CURRENT-- ))\n    case $name in\n",
          stdout);
    for (const struct command *command = command_table; command->name; command++) {
        printf("    %s)\n", command->name);
        if (command->stops_at_operand)
            fputs("        _gpufl_command_after_dashes && return\n", stdout);
        fputs("        _arguments '--help[show help]'", stdout);
        for (const struct option_info *option = command->options; option->name; option++)
            put_zsh_option(option);
        if (command->stops_at_operand)
            fputs(" \\\n        '(-)1:command: _command_names -e' '*::arguments: _normal'", stdout);
        else if (strcmp(command->name, "completion") == 0)
            fputs(" \\\n        '1:shell:(bash zsh fish)'", stdout);
        else if (completion_words_of_operand(command))
            printf(" \\\n        '*:%s:_gpufl_words %s'", command->operand, completion_words_of_operand(command));
        else if (command->operand && strcmp(command->operand, "DIR") == 0)
            fputs(" \\\n        '1:directory:_files -/'", stdout);
        fputs(" ;;\n", stdout);
    }
    /* As a file of $fpath it is the body of the function _gpufl, which is called for the first completion; or sourced. */
    fputs(
        "    esac\n}\nif [[ $funcstack[1] == _gpufl ]]; then\n    _gpufl \"$@\"\nelse\n    compdef _gpufl gpufl\nfi\n",
        stdout);
}

static void put_fish_words(const char *kind)
{
    printf("'(command gpufl completion words %s (commandline -ct) (commandline -opc)[2..-1] 2>/dev/null)'", kind);
}

static void print_fish(void)
{
    fputs("# fish completion for gpufl: gpufl completion fish | source\n"
          "function __gpufl_command # is it the first word?\n"
          "    set -l before (commandline -opc)\n"
          "    test \"$before[2]\" = \"$argv[1]\"; and not contains -- -- $before\n"
          "end\n"
          "complete -c gpufl -n '__gpufl_command \"\"' -f\n"
          "complete -c gpufl -n 'not __gpufl_command \"\"' -l help -s h -d 'show help'\n",
          stdout);
    for (const struct command *command = command_table; command->name; command++) {
        printf("complete -c gpufl -n '__gpufl_command \"\"' -a %s -d ", command->name);
        put_quoted(command->summary);
        putchar('\n');
        for (const struct option_info *option = command->options; option->name; option++) {
            printf("complete -c gpufl -n '__gpufl_command %s' -l %s", command->name, option->name);
            if (option->letter)
                printf(" -s %c", option->letter);
            if (option->kind == OPTION_CHOICE) {
                fputs(" -x -a '", stdout);
                for (const char *const *choice = option->choices; *choice; choice++)
                    printf("%s%s", choice == option->choices ? "" : " ", *choice);
                putchar('\'');
            } else if (completion_words_of_option(option)) {
                fputs(" -x -a ", stdout);
                put_fish_words(completion_words_of_option(option));
            } else if (option->kind != OPTION_FLAG) {
                fputs(" -r", stdout);
            }
            fputs(" -d ", stdout);
            put_quoted(option->summary);
            putchar('\n');
        }
        if (completion_words_of_operand(command)) {
            printf("complete -c gpufl -n '__gpufl_command %s' -a ", command->name);
            put_fish_words(completion_words_of_operand(command));
            putchar('\n');
        }
        if (command->stops_at_operand)
            printf("complete -c gpufl -n 'contains -- -- (commandline -opc); and test (commandline -opc)[2] = %s' -x "
                   "-a '(__fish_complete_subcommand --fcs-skip=2)'\n",
                   command->name);
    }
    fputs("complete -c gpufl -n '__gpufl_command completion' -f -a 'bash zsh fish'\n", stdout);
}

int command_completion(int argc, char **argv)
{
    static const char *const shells[] = {"bash", "zsh", "fish", NULL};
    static void (*const print[])(void) = {print_bash, print_zsh, print_fish};
    struct arguments arguments;
    if (argc > 1 && strcmp(argv[1], "words") == 0)
        return completion_words(argc - 2, argv + 2);
    int code = command_parse("completion", argc, argv, &arguments);
    if (code >= 0)
        return code;
    for (size_t shell = 0; shells[shell]; shell++) {
        if (strcmp(shells[shell], arguments.operands[0]) == 0) {
            print[shell]();
            return EXIT_GOOD;
        }
    }
    const char *near = nearest_word(arguments.operands[0], shells);
    if (near)
        command_error("completion", "no shell '%s'; did you mean '%s'?", arguments.operands[0], near);
    else
        command_error("completion", "no shell '%s'; choose bash, zsh or fish", arguments.operands[0]);
    return EXIT_USAGE;
}
