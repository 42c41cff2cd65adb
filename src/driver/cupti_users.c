/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/cupti_users.h"

#include <link.h>
#include <string.h>

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static bool starts_with(const char *text, const char *start)
{
    return !strncmp(text, start, strlen(start));
}

/* Whether the object's list of needed libraries names CUPTI. */
static bool needs_cupti(const struct dl_phdr_info *object, const ElfW(Dyn) * dynamic)
{
    ElfW(Addr) strings = 0;
    for (const ElfW(Dyn) *entry = dynamic; entry->d_tag != DT_NULL; entry++)
        if (entry->d_tag == DT_STRTAB)
            strings = entry->d_un.d_ptr;
    if (!strings)
        return false;
    if (strings < object->dlpi_addr) /* on some machines the linker keeps the value of the file */
        strings += object->dlpi_addr;
    for (const ElfW(Dyn) *entry = dynamic; entry->d_tag != DT_NULL; entry++)
        if (entry->d_tag == DT_NEEDED &&
            starts_with(base_name((const char *)(uintptr_t)(strings + entry->d_un.d_val)), "libcupti.so"))
            return true;
    return false;
}

static int look_at(struct dl_phdr_info *object, size_t size, void *has_user)
{
    (void)size;
    const char *name = base_name(object->dlpi_name ? object->dlpi_name : "");
    if (starts_with(name, "linux-vdso") || starts_with(name, "libtorch"))
        return 0;
    for (int i = 0; i < object->dlpi_phnum; i++)
        if (object->dlpi_phdr[i].p_type == PT_DYNAMIC)
            *(bool *)has_user |=
                needs_cupti(object, (const ElfW(Dyn) *)(uintptr_t)(object->dlpi_addr + object->dlpi_phdr[i].p_vaddr));
    return *(bool *)has_user;
}

bool cupti_has_linked_users(void)
{
    bool has_user = false;
    (void)dl_iterate_phdr(look_at, &has_user);
    return has_user;
}
