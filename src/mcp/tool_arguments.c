/* SPDX-License-Identifier: Apache-2.0 */
#include "mcp/tool.h"

#include <inttypes.h>

static const struct tool_parameter *parameter_find(const struct tool *tool, const char *name, size_t size)
{
    for (const struct tool_parameter *at = tool->parameters; at->name; at++)
        if (strlen(at->name) == size && !memcmp(at->name, name, size))
            return at;
    return NULL;
}

static bool choice_check(struct tool_call *call, const struct tool_parameter *parameter, const struct json_value *value)
{
    struct bytes words = {0};
    bool is_known = false;
    for (size_t i = 0; parameter->words[i]; i++) {
        is_known |= value->kind == JSON_STRING && !strcmp(value->text, parameter->words[i]);
        bytes_append_format(&words, "%s%s", i ? ", " : "", parameter->words[i]);
    }
    if (!is_known)
        tool_fail(call, "the argument '%s' must be one of %s", parameter->name, bytes_text(&words));
    bytes_free(&words);
    return is_known;
}

static bool value_check(struct tool_call *call, const struct tool_parameter *parameter, const struct json_value *value)
{
    switch (parameter->kind) {
    case PARAMETER_TEXT:
        if (value->kind == JSON_STRING && strlen(value->text) == value->text_size)
            return true;
        return tool_fail(call, "the argument '%s' must be a string", parameter->name);
    case PARAMETER_INTEGER: {
        /* Some clients write every number with a decimal point. */
        bool is_whole =
            value->kind == JSON_INT || (value->kind == JSON_DOUBLE && value->number > -9e15 && value->number < 9e15 &&
                                        (double)(int64_t)value->number == value->number);
        int64_t number = !is_whole ? 0 : value->kind == JSON_INT ? value->integer : (int64_t)value->number;
        if (is_whole && !value->is_unsigned && number >= parameter->min && number <= parameter->max)
            return true;
        return tool_fail(call, "the argument '%s' must be an integer from %" PRId64 " to %" PRId64, parameter->name,
                         parameter->min, parameter->max);
    }
    case PARAMETER_CHOICE:
        return choice_check(call, parameter, value);
    }
    return false;
}

static bool unknown_refuse(struct tool_call *call, const struct json_value *value)
{
    struct bytes names = {0};
    for (const struct tool_parameter *at = call->tool->parameters; at->name; at++)
        bytes_append_format(&names, "%s%s", names.size ? ", " : "", at->name);
    tool_fail(call, "the tool %s has no argument '%.64s'; its arguments are %s", call->tool->name, value->key,
              bytes_text(&names));
    bytes_free(&names);
    return false;
}

bool arguments_check(struct tool_call *call)
{
    const struct json_value *arguments = call->arguments;
    for (const struct json_value *at = arguments ? arguments->child : NULL; at; at = at->next) {
        const struct tool_parameter *parameter = parameter_find(call->tool, at->key, at->key_size);
        if (!parameter)
            return unknown_refuse(call, at);
        if (at->kind != JSON_NULL && !value_check(call, parameter, at))
            return false;
    }
    for (const struct tool_parameter *at = call->tool->parameters; at->name; at++)
        if (at->is_required && !argument_text(call, at->name))
            return tool_fail(call, "the tool %s needs the argument '%s': %s", call->tool->name, at->name, at->about);
    return true;
}

const char *argument_text(const struct tool_call *call, const char *name)
{
    const char *text = json_get_text(call->arguments, name, NULL);
    return text && *text ? text : NULL;
}

int64_t argument_int(const struct tool_call *call, const char *name)
{
    const struct json_value *value = json_member(call->arguments, name);
    if (value && (value->kind == JSON_INT || value->kind == JSON_DOUBLE))
        return value->kind == JSON_INT ? value->integer : (int64_t)value->number;
    return parameter_find(call->tool, name, strlen(name))->fallback;
}

int argument_choice(const struct tool_call *call, const char *name)
{
    const struct tool_parameter *parameter = parameter_find(call->tool, name, strlen(name));
    const char *text = argument_text(call, name);
    for (int i = 0; text && parameter->words[i]; i++)
        if (!strcmp(text, parameter->words[i]))
            return i;
    return 0;
}

static void parameter_schema(const struct tool_parameter *parameter, struct bytes *out)
{
    json_key(out, parameter->name);
    bytes_append_char(out, '{');
    member_text(out, "type", parameter->kind == PARAMETER_INTEGER ? "integer" : "string");
    member_text(out, "description", parameter->about);
    if (parameter->kind == PARAMETER_INTEGER) {
        member_int(out, "minimum", parameter->min);
        /* Larger integers do not survive every JSON reader. */
        if (parameter->max <= INT64_C(9007199254740991))
            member_int(out, "maximum", parameter->max);
        if (parameter->fallback != CELL_UNKNOWN)
            member_int(out, "default", parameter->fallback);
    }
    if (parameter->kind == PARAMETER_CHOICE) {
        list_open(out, "enum");
        for (size_t i = 0; parameter->words[i]; i++) {
            if (i)
                bytes_append_char(out, ',');
            json_text(out, parameter->words[i]);
        }
        bytes_append_char(out, ']');
        member_text(out, "default", parameter->words[0]);
    }
    bytes_append_char(out, '}');
}

void parameters_schema(const struct tool_parameter *parameters, struct bytes *out)
{
    bytes_append_text(out, "{\"type\":\"object\",\"properties\":{");
    for (const struct tool_parameter *at = parameters; at->name; at++)
        parameter_schema(at, out);
    bytes_append_char(out, '}');
    list_open(out, "required");
    for (const struct tool_parameter *at = parameters; at->name; at++) {
        if (!at->is_required)
            continue;
        if (out->data[out->size - 1] != '[')
            bytes_append_char(out, ',');
        json_text(out, at->name);
    }
    bytes_append_text(out, "],\"additionalProperties\":false}");
}
