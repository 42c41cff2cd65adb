/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/gpu_claim.h"

#include "driver/cuda.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { CLAIMS_MAX = 64, COMMAND_BYTES = 32 };

static struct {
    int socket; /* socket + 1; 0: no claim */
    unsigned users;
} claims[CLAIMS_MAX];
static pthread_mutex_t claims_lock = PTHREAD_MUTEX_INITIALIZER;

/* Length of the address; 0: the GPU has no name. */
static socklen_t address_of(uint32_t device_id, struct sockaddr_un *address)
{
    struct cuda *cuda;
    struct device_limits limits;
    if (cuda_load(&cuda, false, NULL) != GPUFL_OK || cuda_device_limits(cuda, device_id, &limits) != GPUFL_OK ||
        !limits.uuid[0])
        return 0;
    *address = (struct sockaddr_un){.sun_family = AF_UNIX}; /* a leading NUL makes it abstract */
    int length = snprintf(address->sun_path + 1, sizeof address->sun_path - 1, "gpufl-pc-samples-%s", limits.uuid);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}

/* " 4711 (python3)", the process with the claim; "" when it has exited or is unknown. */
static void owner_name(const struct sockaddr_un *address, socklen_t length, char *text, size_t size)
{
    struct ucred owner;
    socklen_t owner_bytes = sizeof owner;
    char path[64], command[COMMAND_BYTES] = "";
    text[0] = '\0';
    int client = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (client >= 0 && connect(client, (const struct sockaddr *)address, length) == 0 &&
        getsockopt(client, SOL_SOCKET, SO_PEERCRED, &owner, &owner_bytes) == 0 && owner.pid > 0) {
        snprintf(path, sizeof path, "/proc/%d/comm", owner.pid);
        int file = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t bytes = file >= 0 ? read(file, command, sizeof command - 1) : -1;
        if (file >= 0)
            close(file);
        command[bytes > 0 ? strcspn(command, "\n") : 0] = '\0';
        snprintf(text, size, command[0] ? " %d (%s)" : " %d", owner.pid, command);
    }
    if (client >= 0)
        close(client);
}

/* A listening socket of that name, so that others can find its owner; -1 with errno. */
static int claim_make(const struct sockaddr_un *address, socklen_t length)
{
    int claim = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (claim < 0 || (bind(claim, (const struct sockaddr *)address, length) == 0 && listen(claim, SOMAXCONN) == 0))
        return claim;
    int saved_errno = errno;
    close(claim);
    errno = saved_errno;
    return -1;
}

gpufl_status gpu_claim_take(uint32_t device_id, struct problem *problem)
{
    struct sockaddr_un address;
    int saved_errno = errno;
    socklen_t length = device_id < CLAIMS_MAX ? address_of(device_id, &address) : 0;
    if (!length)
        return GPUFL_OK;
    gpufl_status status = GPUFL_OK;
    pthread_mutex_lock(&claims_lock);
    if (!claims[device_id].socket) {
        int claim = claim_make(&address, length);
        if (claim >= 0) {
            claims[device_id].socket = claim + 1;
        } else if (errno == EADDRINUSE) {
            char owner[COMMAND_BYTES + 16];
            owner_name(&address, length, owner, sizeof owner);
            status = problem_set(problem, GPUFL_E_BUSY,
                                 "process%s already samples GPU %u; only one process per GPU can take PC samples",
                                 owner[0] ? owner : " (unknown)", device_id);
        }
    }
    claims[device_id].users += status == GPUFL_OK;
    pthread_mutex_unlock(&claims_lock);
    errno = saved_errno;
    return status;
}

void gpu_claim_release(uint32_t device_id)
{
    if (device_id >= CLAIMS_MAX)
        return;
    pthread_mutex_lock(&claims_lock);
    if (claims[device_id].users && !--claims[device_id].users && claims[device_id].socket) {
        close(claims[device_id].socket - 1);
        claims[device_id].socket = 0;
    }
    pthread_mutex_unlock(&claims_lock);
}

void gpu_claims_abandon(void)
{
    pthread_mutex_init(&claims_lock, NULL); /* a thread of the parent may have held it */
    for (int i = 0; i < CLAIMS_MAX; i++) {
        if (claims[i].socket)
            close(claims[i].socket - 1);
        claims[i].socket = 0;
        claims[i].users = 0;
    }
}
