/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/byte_size.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

bool byte_size_parse(const char *text, int64_t *bytes)
{
    static const char units[] = "kmgt";
    char *end;
    if (!isdigit((unsigned char)*text))
        return false;
    double value = strtod(text, &end);
    const char *unit = *end ? strchr(units, tolower((unsigned char)*end)) : NULL;
    if (unit) {
        for (const char *at = units; at <= unit; at++)
            value *= 1024;
        end++;
    }
    bool is_whole = !*end || !strcasecmp(end, "B") || (unit && !strcasecmp(end, "iB"));
    if (!is_whole || !(value < 9e18))
        return false;
    *bytes = (int64_t)value;
    return true;
}
