/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/amdgpu_metrics.h"

#include <string.h>

#include "driver/amdgpu_metrics_abi.h"
#include "driver/gpu_sample.h"

struct field_source {
    uint8_t field;  /* enum amd_metrics_field */
    uint8_t width;  /* bytes of one value */
    uint8_t count;  /* consecutive values: counters are summed, of clocks the highest is used */
    uint8_t is_sum; /* otherwise the highest */
    uint16_t offset;
    uint32_t multiplier, divisor; /* conversion to the field's unit */
};

#define MEMBER_WIDTH(table, member) sizeof(((struct table *)0)->member)
#define AT(field, table, member, multiplier, divisor)                                                 \
    {                                                                                                 \
        field, MEMBER_WIDTH(table, member), 1, 0, offsetof(struct table, member), multiplier, divisor \
    }
#define HIGHEST(field, table, member)                                                                                  \
    {                                                                                                                  \
        field, sizeof(uint16_t), MEMBER_WIDTH(table, member) / sizeof(uint16_t), 0, offsetof(struct table, member), 1, \
            1                                                                                                          \
    }
#define SUM(field, table, member, type)                                                                          \
    {                                                                                                            \
        field, sizeof(type), MEMBER_WIDTH(table, member) / sizeof(type), 1, offsetof(struct table, member), 1, 1 \
    }

/* The accumulator counts in 2^-16 J. */
#define ENERGY(table) AT(AMD_FIELD_ENERGY_UJ, table, energy, 15625, 1024)

static const struct field_source fields_v1_0[] = {
    AT(AMD_FIELD_TEMP_EDGE_C, amd_abi_v1_0, temp_edge, 1, 1),
    AT(AMD_FIELD_TEMP_HOTSPOT_C, amd_abi_v1_0, temp_hotspot, 1, 1),
    AT(AMD_FIELD_TEMP_MEM_C, amd_abi_v1_0, temp_mem, 1, 1),
    AT(AMD_FIELD_POWER_MW, amd_abi_v1_0, socket_watts, 1000, 1),
    AT(AMD_FIELD_GFX_ACTIVITY_PCT, amd_abi_v1_0, gfx_activity, 1, 1),
    AT(AMD_FIELD_MEM_ACTIVITY_PCT, amd_abi_v1_0, memory_activity, 1, 1),
    ENERGY(amd_abi_v1_0),
    AT(AMD_FIELD_GFX_MHZ, amd_abi_v1_0, gfx_mhz, 1, 1),
    AT(AMD_FIELD_MEM_MHZ, amd_abi_v1_0, memory_mhz, 1, 1),
    AT(AMD_FIELD_FAN_RPM, amd_abi_v1_0, fan_rpm, 1, 1),
};
static const struct field_source fields_v1_3[] = {
    AT(AMD_FIELD_TEMP_EDGE_C, amd_abi_v1_3, temp_edge, 1, 1),
    AT(AMD_FIELD_TEMP_HOTSPOT_C, amd_abi_v1_3, temp_hotspot, 1, 1),
    AT(AMD_FIELD_TEMP_MEM_C, amd_abi_v1_3, temp_mem, 1, 1),
    AT(AMD_FIELD_POWER_MW, amd_abi_v1_3, socket_watts, 1000, 1),
    AT(AMD_FIELD_GFX_ACTIVITY_PCT, amd_abi_v1_3, gfx_activity, 1, 1),
    AT(AMD_FIELD_MEM_ACTIVITY_PCT, amd_abi_v1_3, memory_activity, 1, 1),
    ENERGY(amd_abi_v1_3),
    AT(AMD_FIELD_GFX_MHZ, amd_abi_v1_3, gfx_mhz, 1, 1),
    AT(AMD_FIELD_MEM_MHZ, amd_abi_v1_3, memory_mhz, 1, 1),
    AT(AMD_FIELD_FAN_RPM, amd_abi_v1_3, fan_rpm, 1, 1),
    /* 1.1 and 1.2 are too short for these */
    AT(AMD_FIELD_GFX_MV, amd_abi_v1_3, gfx_mv, 1, 1),
    AT(AMD_FIELD_THROTTLE, amd_abi_v1_3, throttle, 1, 1),
};

/* Fields that all tables of the Instinct family have. */
#define INSTINCT_FIELDS(table)                                                                                       \
    AT(AMD_FIELD_TEMP_HOTSPOT_C, table, temp_hotspot, 1, 1), AT(AMD_FIELD_TEMP_MEM_C, table, temp_mem, 1, 1),        \
        AT(AMD_FIELD_POWER_MW, table, socket_watts, 1000, 1),                                                        \
        AT(AMD_FIELD_GFX_ACTIVITY_PCT, table, gfx_activity, 1, 1),                                                   \
        AT(AMD_FIELD_MEM_ACTIVITY_PCT, table, memory_activity, 1, 1), ENERGY(table),                                 \
        HIGHEST(AMD_FIELD_GFX_MHZ, table, clocks.gfx_mhz), AT(AMD_FIELD_MEM_MHZ, table, clocks.memory_mhz, 1, 1),    \
        AT(AMD_FIELD_PCIE_MBPS, table, pcie.mbps, 1, 1), SUM(AMD_FIELD_XGMI_READ_KB, table, xgmi.read_kb, uint64_t), \
        SUM(AMD_FIELD_XGMI_WRITE_KB, table, xgmi.write_kb, uint64_t)
#define RESIDENCY_FIELDS(table)                                                                                     \
    AT(AMD_FIELD_RESIDENCY_PROCHOT, table, residency.prochot, 1, 1),                                                \
        AT(AMD_FIELD_RESIDENCY_POWER, table, residency.power, 1, 1),                                                \
    {                                                                                                               \
        AMD_FIELD_RESIDENCY_THERMAL, sizeof(uint32_t), 3, 1, offsetof(struct table, residency.socket_thermal), 1, 1 \
    }

static const struct field_source fields_v1_4[] = {INSTINCT_FIELDS(amd_abi_v1_4)};
static const struct field_source fields_v1_5[] = {INSTINCT_FIELDS(amd_abi_v1_5)};
static const struct field_source fields_v1_6_early[] = {INSTINCT_FIELDS(amd_abi_v1_6_early),
                                                        RESIDENCY_FIELDS(amd_abi_v1_6_early)};
static const struct field_source fields_v1_6[] = {INSTINCT_FIELDS(amd_abi_v1_6), RESIDENCY_FIELDS(amd_abi_v1_6)};
static const struct field_source fields_v1_7[] = {INSTINCT_FIELDS(amd_abi_v1_7), RESIDENCY_FIELDS(amd_abi_v1_7)};
static const struct field_source fields_v1_8[] = {INSTINCT_FIELDS(amd_abi_v1_8), RESIDENCY_FIELDS(amd_abi_v1_8)};

/* Until 2.3 the units of temperature, power and activity differ between chips, so these are not read. */
static const struct field_source fields_v2_0[] = {
    AT(AMD_FIELD_GFX_MHZ, amd_abi_v2_0, gfx_mhz, 1, 1),
    AT(AMD_FIELD_MEM_MHZ, amd_abi_v2_0, memory_mhz, 1, 1),
};
static const struct field_source fields_v2_3[] = {
    AT(AMD_FIELD_GFX_MHZ, amd_abi_v2_4, gfx_mhz, 1, 1), AT(AMD_FIELD_MEM_MHZ, amd_abi_v2_4, memory_mhz, 1, 1),
    AT(AMD_FIELD_THROTTLE, amd_abi_v2_4, throttle, 1, 1), /* 2.1 is too short for this field */
};
static const struct field_source fields_v2_4[] = {
    AT(AMD_FIELD_TEMP_EDGE_C, amd_abi_v2_4, temp_gfx, 1, 100),
    AT(AMD_FIELD_POWER_MW, amd_abi_v2_4, socket_power, 1, 1),
    AT(AMD_FIELD_GFX_ACTIVITY_PCT, amd_abi_v2_4, gfx_activity, 1, 100),
    AT(AMD_FIELD_GFX_MHZ, amd_abi_v2_4, gfx_mhz, 1, 1),
    AT(AMD_FIELD_MEM_MHZ, amd_abi_v2_4, memory_mhz, 1, 1),
    AT(AMD_FIELD_THROTTLE, amd_abi_v2_4, throttle, 1, 1),
    AT(AMD_FIELD_GFX_MV, amd_abi_v2_4, gfx_mv, 1, 1),
};
static const struct field_source fields_v3_0[] = {
    AT(AMD_FIELD_TEMP_EDGE_C, amd_abi_v3_0, temp_gfx, 1, 100),
    AT(AMD_FIELD_POWER_MW, amd_abi_v3_0, socket_mw, 1, 1),
    AT(AMD_FIELD_GFX_ACTIVITY_PCT, amd_abi_v3_0, gfx_activity, 1, 1),
    AT(AMD_FIELD_GFX_MHZ, amd_abi_v3_0, gfx_mhz, 1, 1),
    AT(AMD_FIELD_MEM_MHZ, amd_abi_v3_0, memory_mhz, 1, 1),
    AT(AMD_FIELD_RESIDENCY_PROCHOT, amd_abi_v3_0, residency_prochot, 1, 1),
    SUM(AMD_FIELD_RESIDENCY_POWER, amd_abi_v3_0, residency_power, uint32_t),
    SUM(AMD_FIELD_RESIDENCY_THERMAL, amd_abi_v3_0, residency_thermal, uint32_t),
};

#define LAYOUT(format, content, size, fields)                         \
    {                                                                 \
        format, content, size, sizeof fields / sizeof *fields, fields \
    }
static const struct layout {
    uint8_t format, content;
    uint16_t size;
    size_t field_count;
    const struct field_source *fields;
} layouts[] = {
    LAYOUT(1, 0, sizeof(struct amd_abi_v1_0), fields_v1_0),
    LAYOUT(1, 1, offsetof(struct amd_abi_v1_3, firmware_time), fields_v1_3),
    LAYOUT(1, 2, offsetof(struct amd_abi_v1_3, soc_mv), fields_v1_3),
    LAYOUT(1, 3, sizeof(struct amd_abi_v1_3), fields_v1_3),
    LAYOUT(1, 4, sizeof(struct amd_abi_v1_4), fields_v1_4),
    LAYOUT(1, 5, sizeof(struct amd_abi_v1_5), fields_v1_5),
    LAYOUT(1, 6, sizeof(struct amd_abi_v1_6_early), fields_v1_6_early),
    LAYOUT(1, 6, sizeof(struct amd_abi_v1_6), fields_v1_6),
    LAYOUT(1, 7, sizeof(struct amd_abi_v1_7), fields_v1_7),
    LAYOUT(1, 8, sizeof(struct amd_abi_v1_8), fields_v1_8),
    LAYOUT(2, 0, sizeof(struct amd_abi_v2_0), fields_v2_0),
    LAYOUT(2, 1, offsetof(struct amd_abi_v2_4, throttle), fields_v2_3),
    LAYOUT(2, 2, offsetof(struct amd_abi_v2_4, average_temps), fields_v2_3),
    LAYOUT(2, 3, offsetof(struct amd_abi_v2_4, cpu_mv), fields_v2_3),
    LAYOUT(2, 4, sizeof(struct amd_abi_v2_4), fields_v2_4),
    LAYOUT(3, 0, sizeof(struct amd_abi_v3_0), fields_v3_0),
};

static uint64_t value_read(const uint8_t *bytes, unsigned width)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < width; i++)
        value |= (uint64_t)bytes[i] << 8 * i;
    return value;
}

/* Adds the values of a source to *value, or keeps the highest; false when the chip provides none of them. */
static bool values_combine(const struct field_source *source, const uint8_t *bytes, uint64_t *value)
{
    const uint64_t absent = source->width == 8 ? UINT64_MAX : (UINT64_C(1) << 8 * source->width) - 1;
    bool is_known = false;
    for (unsigned i = 0; i < source->count; i++) {
        uint64_t one = value_read(bytes + source->offset + (size_t)i * source->width, source->width);
        if (one == absent)
            continue;
        is_known = true;
        if (!source->is_sum)
            *value = one > *value ? one : *value;
        else if (__builtin_add_overflow(*value, one, value))
            return false;
    }
    return is_known;
}

/* False when the chip does not provide the value. */
static bool field_read(const struct field_source *source, const uint8_t *bytes, uint64_t *value)
{
    *value = 0;
    bool is_known = values_combine(source, bytes, value);
    /* Whole part first, so that a large counter does not overflow. */
    uint64_t whole = *value / source->divisor, rest = *value % source->divisor;
    return is_known && !__builtin_mul_overflow(whole, (uint64_t)source->multiplier, &whole) &&
           !__builtin_add_overflow(whole, rest * source->multiplier / source->divisor, value);
}

static bool is_sane(enum amd_metrics_field field, uint64_t value)
{
    switch (field) {
    case AMD_FIELD_GFX_ACTIVITY_PCT:
    case AMD_FIELD_MEM_ACTIVITY_PCT:
        return value <= 100;
    case AMD_FIELD_TEMP_EDGE_C:
    case AMD_FIELD_TEMP_HOTSPOT_C:
    case AMD_FIELD_TEMP_MEM_C:
        return value <= 500;
    default:
        return true;
    }
}

static void field_take(struct amd_metrics *metrics, const struct field_source *source, const uint8_t *bytes)
{
    uint64_t value;
    if (!field_read(source, bytes, &value) || !is_sane(source->field, value))
        return;
    /* Several attributes can contribute to a sum. */
    uint64_t before = metrics->known >> source->field & 1 && source->is_sum ? metrics->values[source->field] : 0;
    if (__builtin_add_overflow(value, before, &value))
        return;
    metrics->known |= 1u << source->field;
    metrics->values[source->field] = value;
}

/* 1.9: attributes that are not listed here, or have another unit, are skipped. */
static const struct {
    uint16_t attribute;
    uint8_t unit, field, is_sum;
    uint32_t multiplier, divisor;
} attributes[] = {
    {AMD_ABI_ATTRIBUTE_TEMP_HOTSPOT, AMD_ABI_UNIT_CELSIUS, AMD_FIELD_TEMP_HOTSPOT_C, 0, 1, 1},
    {AMD_ABI_ATTRIBUTE_TEMP_MEM, AMD_ABI_UNIT_CELSIUS, AMD_FIELD_TEMP_MEM_C, 0, 1, 1},
    {AMD_ABI_ATTRIBUTE_SOCKET_POWER, AMD_ABI_UNIT_WATT, AMD_FIELD_POWER_MW, 0, 1000, 1},
    {AMD_ABI_ATTRIBUTE_GFX_ACTIVITY, AMD_ABI_UNIT_PERCENT, AMD_FIELD_GFX_ACTIVITY_PCT, 0, 1, 1},
    {AMD_ABI_ATTRIBUTE_MEMORY_ACTIVITY, AMD_ABI_UNIT_PERCENT, AMD_FIELD_MEM_ACTIVITY_PCT, 0, 1, 1},
    {AMD_ABI_ATTRIBUTE_ENERGY, AMD_ABI_UNIT_NONE, AMD_FIELD_ENERGY_UJ, 0, 15625, 1024},
    {AMD_ABI_ATTRIBUTE_RESIDENCY_PROCHOT, AMD_ABI_UNIT_NONE, AMD_FIELD_RESIDENCY_PROCHOT, 0, 1, 1},
    {AMD_ABI_ATTRIBUTE_RESIDENCY_POWER, AMD_ABI_UNIT_NONE, AMD_FIELD_RESIDENCY_POWER, 0, 1, 1},
    {AMD_ABI_ATTRIBUTE_RESIDENCY_SOCKET_THERMAL, AMD_ABI_UNIT_NONE, AMD_FIELD_RESIDENCY_THERMAL, 1, 1, 1},
    {AMD_ABI_ATTRIBUTE_RESIDENCY_REGULATOR_THERMAL, AMD_ABI_UNIT_NONE, AMD_FIELD_RESIDENCY_THERMAL, 1, 1, 1},
    {AMD_ABI_ATTRIBUTE_RESIDENCY_HBM_THERMAL, AMD_ABI_UNIT_NONE, AMD_FIELD_RESIDENCY_THERMAL, 1, 1, 1},
    {AMD_ABI_ATTRIBUTE_PCIE_BANDWIDTH, AMD_ABI_UNIT_BANDWIDTH, AMD_FIELD_PCIE_MBPS, 0, 1, 1}, /* as in 1.8 */
    {AMD_ABI_ATTRIBUTE_XGMI_READ, AMD_ABI_UNIT_KB, AMD_FIELD_XGMI_READ_KB, 1, 1, 1},
    {AMD_ABI_ATTRIBUTE_XGMI_WRITE, AMD_ABI_UNIT_KB, AMD_FIELD_XGMI_WRITE_KB, 1, 1, 1},
    {AMD_ABI_ATTRIBUTE_GFX_CLOCK, AMD_ABI_UNIT_MHZ, AMD_FIELD_GFX_MHZ, 0, 1, 1},
    {AMD_ABI_ATTRIBUTE_MEMORY_CLOCK, AMD_ABI_UNIT_MHZ, AMD_FIELD_MEM_MHZ, 0, 1, 1},
};

static void attribute_take(struct amd_metrics *metrics, uint64_t encoding, const uint8_t *values, unsigned width,
                           unsigned count)
{
    uint64_t id = encoding >> AMD_ABI_ATTRIBUTE_ID_SHIFT & AMD_ABI_ATTRIBUTE_ID_MASK;
    uint64_t unit = encoding >> AMD_ABI_ATTRIBUTE_UNIT_SHIFT & AMD_ABI_ATTRIBUTE_UNIT_MASK;
    /* Types with odd numbers are signed; none of ours is. */
    bool is_signed = encoding >> AMD_ABI_ATTRIBUTE_TYPE_SHIFT & 1;
    for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++) {
        if (attributes[i].attribute != id || attributes[i].unit != unit || is_signed || count > UINT8_MAX)
            continue;
        const struct field_source source = {
            attributes[i].field,      (uint8_t)width,       (uint8_t)count, attributes[i].is_sum, 0,
            attributes[i].multiplier, attributes[i].divisor};
        field_take(metrics, &source, values);
    }
}

static gpufl_status attributes_decode(struct amd_metrics *metrics, const uint8_t *bytes, size_t size,
                                      struct problem *problem)
{
    const size_t encoding_bytes = sizeof(uint64_t);
    struct amd_abi_v1_9 table;
    size_t at = sizeof table;
    memcpy(&table, bytes, sizeof table < size ? sizeof table : size);
    *metrics = (struct amd_metrics){.format = table.header.format, .content = table.header.content};
    for (int32_t i = 0; size >= sizeof table && i < table.attribute_count; i++) {
        uint64_t encoding = size - at >= encoding_bytes ? value_read(bytes + at, encoding_bytes) : 0;
        unsigned type = encoding >> AMD_ABI_ATTRIBUTE_TYPE_SHIFT & AMD_ABI_ATTRIBUTE_TYPE_MASK;
        unsigned width = 1u << type / 2, count = encoding & AMD_ABI_ATTRIBUTE_COUNT_MASK;
        if (!count || type >= AMD_ABI_TYPE_COUNT || size - at - encoding_bytes < (size_t)width * count)
            return problem_set(problem, GPUFL_E_UNSUPPORTED,
                               "gpu_metrics version 1.%u: attribute %d of %d, at byte %zu of %zu, cannot be read",
                               table.header.content, i + 1, table.attribute_count, at, size);
        attribute_take(metrics, encoding, bytes + at + encoding_bytes, width, count);
        at += encoding_bytes + (size_t)width * count;
    }
    if (at != size)
        return problem_set(problem, GPUFL_E_UNSUPPORTED,
                           "gpu_metrics version 1.%u says %zu bytes, and its %d attributes take %zu",
                           table.header.content, size, table.attribute_count, at);
    return GPUFL_OK;
}

gpufl_status amd_metrics_decode(struct amd_metrics *metrics, const void *bytes, size_t size, struct problem *problem)
{
    struct amd_abi_header header;
    if (size < sizeof header)
        return problem_set(problem, GPUFL_E_UNSUPPORTED, "gpu_metrics has %zu bytes, less than a header", size);
    memcpy(&header, bytes, sizeof header);
    if (header.format == 1 && header.content == 9 && header.size <= size)
        return attributes_decode(metrics, bytes, header.size, problem);
    const struct layout *layout = NULL;
    bool is_version_known = header.format == 1 && header.content == 9;
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts && !layout; i++) {
        if (layouts[i].format != header.format || layouts[i].content != header.content)
            continue;
        is_version_known = true;
        if (layouts[i].size == header.size)
            layout = &layouts[i];
    }
    if (!is_version_known)
        return problem_set(problem, GPUFL_E_UNSUPPORTED, "gpu_metrics has version %u.%u, which is not known",
                           header.format, header.content);
    if (!layout || size < header.size)
        return problem_set(problem, GPUFL_E_UNSUPPORTED, "gpu_metrics version %u.%u says %u bytes and has %zu",
                           header.format, header.content, header.size, size);
    *metrics = (struct amd_metrics){.format = header.format, .content = header.content};
    for (size_t i = 0; i < layout->field_count; i++) {
        const struct field_source *source = &layout->fields[i];
        if ((size_t)source->offset + (size_t)source->width * source->count <= layout->size)
            field_take(metrics, source, bytes);
    }
    return GPUFL_OK;
}

uint64_t amd_throttle_reasons(uint64_t mask)
{
    static const struct {
        uint64_t mask, reason;
    } reasons[] = {
        {0x000000000000ffff, GPU_THROTTLE_SOFTWARE_POWER_CAP},
        {0x00000000ffff0000, GPU_THROTTLE_CURRENT_LIMIT},
        {0x00000fff00000000, GPU_THROTTLE_SOFTWARE_THERMAL},
        {0x0000f00000000000, GPU_THROTTLE_HARDWARE_THERMAL}, /* VRHOT and PROCHOT */
        {0xffff000000000000, GPU_THROTTLE_HARDWARE},
    };
    uint64_t found = 0;
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        found |= mask & reasons[i].mask ? reasons[i].reason : 0;
    return found;
}
