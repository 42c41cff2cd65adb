/* SPDX-License-Identifier: Apache-2.0 */
#include "nvtx_client.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

typedef void function(void);
typedef const void *get_table_fn(uint32_t id);
struct callbacks_table { /* NvtxExportTableCallbacks */
    size_t struct_size;
    int (*get_module)(uint32_t module, function ****table, unsigned *count);
};
struct version_table { /* NvtxExportTableVersionInfo */
    size_t struct_size;
    uint32_t version, reserved;
    void (*set_tool_version)(uint32_t version);
};
struct event { /* nvtxEventAttributes_t, version 3 */
    uint16_t version, size;
    uint32_t category;
    int32_t color_type;
    uint32_t color;
    int32_t payload_type, reserved;
    uint64_t payload;
    int32_t message_type;
    const char *message;
};
enum {
    ETID_CALLBACKS = 1,
    ETID_VERSION = 3,
    MODULE_CORE = 1,
    MODULE_CORE2 = 5,
    CORE_RANGE_PUSH_A = 9,
    CORE_RANGE_POP = 11,
    CORE_COUNT = 16,
    CORE2_RANGE_PUSH_EX = 4,
    CORE2_RANGE_POP = 5,
    CORE2_DOMAIN_CREATE_A = 12,
    CORE2_INITIALIZE = 15,
    CORE2_COUNT = 16
};

static function *core[CORE_COUNT], *core2[CORE2_COUNT];                       /* filled in by the tool */
static function **core_table[CORE_COUNT + 1], **core2_table[CORE2_COUNT + 1]; /* addresses of those, as given out */
static void *domain;
static pthread_once_t connected = PTHREAD_ONCE_INIT;

static void tool_version_ignore(uint32_t version)
{
    (void)version;
}

static int module_get(uint32_t module, function ****table, unsigned *count)
{
    function ***found = module == MODULE_CORE ? core_table : module == MODULE_CORE2 ? core2_table : NULL;
    if (found == NULL)
        return 0;
    if (count != NULL) /* of entries, without the closing NULL */
        *count = (unsigned)(module == MODULE_CORE ? CORE_COUNT : CORE2_COUNT);
    if (table != NULL)
        *table = found;
    return 1;
}

static const void *table_get(uint32_t id)
{
    static const struct callbacks_table callbacks = {sizeof callbacks, module_get};
    static const struct version_table version = {sizeof version, 3, 0, tool_version_ignore};
    return id == ETID_CALLBACKS ? (const void *)&callbacks : id == ETID_VERSION ? (const void *)&version : NULL;
}

static void connect_tool(void)
{
    const char *path = getenv("NVTX_INJECTION64_PATH");
    for (int i = 1; i < CORE_COUNT; i++) /* entry 0 is unused */
        core_table[i] = &core[i];
    for (int i = 1; i < CORE2_COUNT; i++)
        core2_table[i] = &core2[i];
    void *library = path != NULL ? dlopen(path, RTLD_LAZY) : NULL;
    int (*initialize)(get_table_fn * get_table) = NULL;
    if (library != NULL)
        *(void **)&initialize = dlsym(library, "InitializeInjectionNvtx2");
    if (initialize == NULL || initialize(table_get) == 0) {
        for (int i = 0; i < CORE_COUNT; i++)
            core[i] = NULL;
        for (int i = 0; i < CORE2_COUNT; i++)
            core2[i] = NULL;
        return;
    }
    if (core2[CORE2_INITIALIZE] != NULL)
        ((void (*)(const void *))core2[CORE2_INITIALIZE])(NULL);
    if (core2[CORE2_DOMAIN_CREATE_A] != NULL)
        domain = ((void *(*)(const char *))core2[CORE2_DOMAIN_CREATE_A])("fake_app");
}

void nvtx_push(const char *name)
{
    pthread_once(&connected, connect_tool);
    if (core[CORE_RANGE_PUSH_A] != NULL)
        ((int (*)(const char *))core[CORE_RANGE_PUSH_A])(name);
}

void nvtx_pop(void)
{
    if (core[CORE_RANGE_POP] != NULL)
        ((int (*)(void))core[CORE_RANGE_POP])();
}

void nvtx_domain_push(const char *name)
{
    struct event event = {.version = 3, .size = sizeof event, .message_type = 1, .message = name};
    pthread_once(&connected, connect_tool);
    if (core2[CORE2_RANGE_PUSH_EX] != NULL)
        ((int (*)(void *, const struct event *))core2[CORE2_RANGE_PUSH_EX])(domain, &event);
}

void nvtx_domain_pop(void)
{
    if (core2[CORE2_RANGE_POP] != NULL)
        ((int (*)(void *))core2[CORE2_RANGE_POP])(domain);
}
