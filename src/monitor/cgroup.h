/* SPDX-License-Identifier: Apache-2.0 */
/* Which container and pod a process belongs to, from the text of its
 * /proc/PID/cgroup (version 1 and 2; docker, containerd, cri-o, podman, under
 * systemd and without). Pure function: any thread. */
#ifndef GPUFL_MONITOR_CGROUP_H
#define GPUFL_MONITOR_CGROUP_H

#include <stddef.h>

/* "" where the text does not tell. */
struct cgroup_identity {
    char container_id[65]; /* 64 hex digits */
    char runtime[16];      /* docker, containerd, cri-o, podman */
    char pod_uid[37];      /* as Kubernetes writes it, with dashes */
};

/* The text is not trusted; it need not end with NUL. */
void cgroup_identify(struct cgroup_identity *identity, const char *text, size_t size);

#endif
