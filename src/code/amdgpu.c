/* SPDX-License-Identifier: Apache-2.0 */
#include "code/amdgpu.h"

#include "code/amdgpu_metadata.h"
#include "code/byte_reader.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    FLAGS_MACHINE = 0xff,
    ABI_VERSION_3 = 1, /* of code objects; the bits of the features have another meaning in later versions */
    ABI_VERSION_4 = 2,
    FLAGS_V3_XNACK = 0x100,
    FLAGS_V3_SRAMECC = 0x200,
    FLAGS_XNACK_SHIFT = 8, /* two bits each: 0 unsupported, 1 any, 2 off, 3 on */
    FLAGS_SRAMECC_SHIFT = 10,
    FEATURE_OFF = 2,
    FEATURE_ON = 3,
};

/* Indexed by the machine number in the ELF header, from 0x20 on; NULL: not assigned. */
static const char *const target_names[] = {
    "gfx600",
    "gfx601",
    "gfx700",
    "gfx701",
    "gfx702",
    "gfx703",
    "gfx704",
    NULL,
    "gfx801",
    "gfx802",
    "gfx803",
    "gfx810",
    "gfx900",
    "gfx902",
    "gfx904",
    "gfx906",
    "gfx908",
    "gfx909",
    "gfx90c",
    "gfx1010",
    "gfx1011",
    "gfx1012",
    "gfx1030",
    "gfx1031",
    "gfx1032",
    "gfx1033",
    "gfx602",
    "gfx705",
    "gfx805",
    "gfx1035",
    "gfx1034",
    "gfx90a",
    "gfx940",
    "gfx1100",
    "gfx1013",
    "gfx1150",
    "gfx1103",
    "gfx1036",
    "gfx1101",
    "gfx1102",
    "gfx1200",
    "gfx1250",
    "gfx1151",
    "gfx941",
    "gfx942",
    NULL,
    "gfx1201",
    "gfx950",
    NULL,
    "gfx9-generic",
    "gfx10-1-generic",
    "gfx10-3-generic",
    "gfx11-generic",
    "gfx1152",
    NULL,
    NULL,
    "gfx1153",
    "gfx12-generic",
    "gfx1251",
    NULL,
    NULL,
    NULL,
    NULL,
    "gfx9-4-generic",
};
enum { TARGET_FIRST = 0x20 };

static size_t feature_append(char *arch, size_t arch_size, size_t used, const char *name, unsigned state)
{
    if (state != FEATURE_OFF && state != FEATURE_ON)
        return used;
    int added = snprintf(arch + used, arch_size - used, ":%s%c", name, state == FEATURE_ON ? '+' : '-');
    return added > 0 ? used + (size_t)added : used;
}

void amdgpu_arch(struct code_image *image)
{
    uint32_t number = image->flags & FLAGS_MACHINE;
    const char *name = number >= TARGET_FIRST && number - TARGET_FIRST < sizeof target_names / sizeof *target_names
                           ? target_names[number - TARGET_FIRST]
                           : NULL;
    if (!name) {
        snprintf(image->arch, sizeof image->arch, "gfx? (number 0x%" PRIx32 ")", number);
        return;
    }
    size_t used = (size_t)snprintf(image->arch, sizeof image->arch, "%s", name);
    unsigned sramecc = image->flags >> FLAGS_SRAMECC_SHIFT & 3, xnack = image->flags >> FLAGS_XNACK_SHIFT & 3;
    if (image->abi_version <= ABI_VERSION_3) {
        sramecc = image->flags & FLAGS_V3_SRAMECC ? FEATURE_ON : 0;
        xnack = image->flags & FLAGS_V3_XNACK ? FEATURE_ON : 0;
    }
    used = feature_append(image->arch, sizeof image->arch, used, "sramecc", sramecc);
    (void)feature_append(image->arch, sizeof image->arch, used, "xnack", xnack);
}

void amdgpu_target_name(const char *arch, char *out, size_t out_size)
{
    snprintf(out, out_size, "%.*s", (int)strcspn(arch, ":"), arch);
}

static int digit_of(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool amdgpu_target_parse(const char *name, struct amdgpu_target *target)
{
    char text[40];
    *target = (struct amdgpu_target){0};
    if (strncmp(name, "gfx", 3) != 0 || strcspn(name, ":") >= sizeof text)
        return false;
    amdgpu_target_name(name + 3, text, sizeof text);
    char *generic = strstr(text, "-generic");
    if (generic && !generic[sizeof "-generic" - 1]) {
        *generic = '\0';
        target->is_generic = true;
        int fields = sscanf(text, "%2" SCNu32 "-%1" SCNu32, &target->major, &target->minor);
        return fields >= 1;
    }
    /* The last two characters are hexadecimal digits for minor and stepping; the digits before them are the decimal
     * major. */
    size_t size = strlen(text);
    if (size < 3 || size > 4)
        return false;
    int minor = digit_of(text[size - 2]), stepping = digit_of(text[size - 1]);
    for (size_t i = 0; i < size - 2; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        target->major = target->major * 10 + (uint32_t)(text[i] - '0');
    }
    target->minor = (uint32_t)minor;
    target->stepping = (uint32_t)stepping;
    return minor >= 0 && stepping >= 0 && target->major;
}

bool amdgpu_is_unified(const struct amdgpu_target *target)
{
    return target->major == 9 && (target->minor >= 4 || (!target->is_generic && target->stepping == 10));
}

/* The fields of a descriptor. */
struct descriptor {
    uint32_t lds_bytes, scratch_bytes, kernarg_bytes;
    uint32_t resources_1, resources_3;
    uint16_t properties;
};

static struct descriptor descriptor_read(const struct code_image *image, const struct image_function *function)
{
    struct byte_reader reader = byte_reader_over(image->bytes + function->descriptor, AMDGPU_DESCRIPTOR_BYTES);
    struct descriptor descriptor;
    descriptor.lds_bytes = byte_reader_u32(&reader);
    descriptor.scratch_bytes = byte_reader_u32(&reader);
    descriptor.kernarg_bytes = byte_reader_u32(&reader);
    reader.at = 44;
    descriptor.resources_3 = byte_reader_u32(&reader);
    descriptor.resources_1 = byte_reader_u32(&reader);
    reader.at = 56;
    descriptor.properties = byte_reader_u16(&reader);
    return descriptor;
}

/* Registers as allocated by the hardware: in blocks whose size depends on the target. */
static void registers_read(const struct amdgpu_target *target, const struct descriptor *descriptor,
                           struct amdgpu_kernel *kernel)
{
    enum { WAVE_32 = 1 << 10, WGP_MODE = 1 << 29 };
    bool is_wave_32 = target->major >= 10 && descriptor->properties & WAVE_32;
    bool is_unified = amdgpu_is_unified(target);
    kernel->wave_size = is_wave_32 ? 32 : 64;
    kernel->is_wgp_mode = target->major >= 10 && descriptor->resources_1 & WGP_MODE;
    uint32_t vgpr_blocks = (descriptor->resources_1 & 0x3f) + 1, sgpr_blocks = descriptor->resources_1 >> 6 & 0xf;
    kernel->vgpr_count = vgpr_blocks * (is_unified || is_wave_32 ? 8 : 4);
    if (is_unified)
        kernel->agpr_count = 0;
    if (is_unified && kernel->vgpr_count > ((descriptor->resources_3 & 0x3f) + 1) * 4)
        kernel->agpr_count = kernel->vgpr_count - ((descriptor->resources_3 & 0x3f) + 1) * 4;
    /* From gfx10 on every wave has all SGPRs, and the field is not used. */
    if (target->major == 9)
        kernel->sgpr_count = (sgpr_blocks / 2 + 1) * 16;
    else if (target->major < 9)
        kernel->sgpr_count = (sgpr_blocks + 1) * 8;
    kernel->is_allocation = true;
}

bool amdgpu_kernel_read(const struct code_image *image, const struct image_function *function,
                        struct amdgpu_kernel *kernel)
{
    const uint32_t none = AMDGPU_UNKNOWN;
    *kernel = (struct amdgpu_kernel){none, none, none, none, none, none, none, none, none, none, {0}, false, false};
    if (image->vendor != IMAGE_AMD || !function->descriptor)
        return false;
    struct descriptor descriptor = descriptor_read(image, function);
    kernel->lds_bytes = descriptor.lds_bytes;
    kernel->scratch_bytes = descriptor.scratch_bytes;
    kernel->kernarg_bytes = descriptor.kernarg_bytes;
    struct amdgpu_target target;
    if (amdgpu_target_parse(image->arch, &target))
        registers_read(&target, &descriptor, kernel);
    struct amdgpu_kernel exact = *kernel;
    exact.vgpr_count = exact.sgpr_count = AMDGPU_UNKNOWN;
    if (exact.agpr_count) /* the descriptor counts blocks: only a count of 0 is exact */
        exact.agpr_count = AMDGPU_UNKNOWN;
    if (amdgpu_metadata_read(image, function->name, &exact) && exact.vgpr_count != AMDGPU_UNKNOWN &&
        exact.sgpr_count != AMDGPU_UNKNOWN) {
        exact.is_allocation = false;
        *kernel = exact;
    }
    if (kernel->wave_size != 32 && kernel->wave_size != 64)
        kernel->wave_size = AMDGPU_UNKNOWN;
    return true;
}
