/* SPDX-License-Identifier: Apache-2.0 */
/* Determines the container and pod of a process from the text of its /proc/PID/cgroup (cgroup v1 and v2; docker,
 * containerd, cri-o, podman; with and without systemd). Pure function: any thread. */
#ifndef GPUFL_MONITOR_CGROUP_H
#define GPUFL_MONITOR_CGROUP_H

#include <stddef.h>

/* "": unknown. */
struct cgroup_identity {
    char container_id[65]; /* 64 hex digits */
    char runtime[16];      /* docker, containerd, cri-o, podman */
    char pod_uid[37];      /* in Kubernetes notation, with dashes */
};

/* The text is not trusted and need not be NUL-terminated. */
void cgroup_identify(struct cgroup_identity *identity, const char *text, size_t size);

#endif
