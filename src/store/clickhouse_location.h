/* SPDX-License-Identifier: Apache-2.0 */
/* Parses
 * clickhouse://[user[:password]@]host[:port][,host...][/database][?cluster=NAME&tls=1&ca_file=F&password_file=F]. */
#ifndef GPUFL_STORE_CLICKHOUSE_LOCATION_H
#define GPUFL_STORE_CLICKHOUSE_LOCATION_H

#include "base/status.h"

enum { CH_HOSTS_MAX = 64, CH_NAME_MAX = 64, CH_SECRET_MAX = 256, CH_HOST_MAX = 280, CH_PATH_MAX = 1024 };

struct ch_location {
    char hosts[CH_HOSTS_MAX][CH_HOST_MAX]; /* host:port; the first one is preferred */
    unsigned host_count;
    char user[CH_NAME_MAX + 1], password[CH_SECRET_MAX + 1];
    char database[CH_NAME_MAX + 1], cluster[CH_NAME_MAX + 1]; /* letters, digits and _; cluster "": none */
    char ca_file[CH_PATH_MAX];
    bool has_tls;
};

/* The password comes from the URL, else from password_file, else from GPUFL_CLICKHOUSE_PASSWORD. No message contains
 * the given text. */
NODISCARD gpufl_status ch_location_parse(struct ch_location *location, const char *url, struct problem *problem);

#endif
