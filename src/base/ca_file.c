/* SPDX-License-Identifier: Apache-2.0 */
#include "base/ca_file.h"

#include <stddef.h>
#ifdef GPUFL_BUNDLED
#include <stdlib.h>
#include <unistd.h>

static const char *system_file(void)
{
    static const char *const places[] = {
        "/etc/ssl/certs/ca-certificates.crt",                /* Debian, Ubuntu, Arch, Alpine */
        "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", /* RHEL, Fedora */
        "/etc/pki/tls/certs/ca-bundle.crt",                  /* older of these */
        "/etc/ssl/ca-bundle.pem",                            /* SUSE */
        "/etc/ssl/cert.pem",
    };
    const char *chosen = getenv("SSL_CERT_FILE");
    if (chosen && *chosen)
        return chosen;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (access(places[i], R_OK) == 0)
            return places[i];
    return NULL;
}
#else
static const char *system_file(void)
{
    return NULL;
}
#endif

const char *ca_file_choose(const char *given)
{
    return given && *given ? given : system_file();
}
