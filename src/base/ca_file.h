/* SPDX-License-Identifier: Apache-2.0 */
/* Where this machine keeps the certificates it trusts. libcurl of a distribution knows; the one that is part of portable
 * builds is the same on all. */
#ifndef GPUFL_BASE_CA_FILE_H
#define GPUFL_BASE_CA_FILE_H

/* Returns the file given by the user, if any; in portable builds SSL_CERT_FILE or the distribution's file otherwise.
 * NULL: libcurl's default. */
const char *ca_file_choose(const char *given);

#endif
