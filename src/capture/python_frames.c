/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/python_frames.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

/* Offsets in bytes. Object headers, and the length and state of a string, are at the same offsets in all releases. */
struct python_layout {
    uint32_t version; /* major << 8 | minor */
    uint16_t thread_frame;
    int16_t holder_frame; /* the thread points to a holder of the frame pointer; -1: to the frame itself */
    uint16_t frame_code, frame_previous, frame_instruction, frame_owner;
    int16_t frame_is_entry; /* -1: frames of the C stack separate runs of the loop */
    uint16_t code_line, code_file, code_name, code_instructions;
    uint16_t ascii_text, wide_text;
};

static const struct python_layout layouts[] = {
    {0x30b, 56, 8, 32, 48, 56, 69, 68, 72, 112, 128, 184, 48, 72},
    {0x30c, 56, 0, 0, 8, 56, 70, -1, 68, 112, 128, 192, 40, 56},
    {0x30d, 72, -1, 0, 8, 56, 70, -1, 68, 112, 128, 200, 40, 56},
};

enum {
    object_type = 8,
    object_size = 16,
    string_state = 32,
    state_kind_shift = 2,
    state_kind_mask = 7,
    state_compact = 0x20,
    state_ascii = 0x40,
    owner_c_stack = 3,
    instruction_bytes = 2,
    instructions_max = 1 << 24,
};

enum { function_count = 8192, probe_max = 32, text_bytes = 2 << 20, name_bytes_max = 256, file_bytes_max = 512 };
enum function_state { FUNCTION_FREE, FUNCTION_BEING_MADE, FUNCTION_READY, FUNCTION_UNNAMED };

/* Keyed by the address of its code object. That address may be reused after the function is freed, hence the other
 * members. */
struct python_function {
    _Atomic uint32_t state;
    uint32_t line;
    const char *code, *name, *file;
    uint32_t text_at;
    uint16_t name_size, file_size;
    _Atomic uint64_t last_place; /* instruction << 32 | its line; looking up a line is the slowest step */
};

enum python_trust { TRUST_ABSENT, TRUST_UNPROVEN, TRUST_PROVEN, TRUST_REFUSED };

static struct {
    _Atomic int trust;
    const struct python_layout *layout;
    void *(*this_thread)(void);             /* PyGILState_GetThisThreadState */
    int (*line_of)(void *code, int offset); /* PyCode_Addr2Line */
    const char *code_type, *string_type;
    uint64_t start, end;           /* of the interpreter's code */
    uint64_t loop_start, loop_end; /* of _PyEval_EvalFrameDefault */
} python;

static struct python_function functions[function_count];
static char texts[text_bytes];
static _Atomic uint32_t texts_used;

static const char *pointer_at(const char *object, size_t offset)
{
    const char *value;
    memcpy(&value, object + offset, sizeof value);
    return value;
}

static int64_t int64_at(const char *object, size_t offset)
{
    int64_t value;
    memcpy(&value, object + offset, sizeof value);
    return value;
}

static int32_t int32_at(const char *object, size_t offset)
{
    int32_t value;
    memcpy(&value, object + offset, sizeof value);
    return value;
}

static void *symbol_find(const char *name, void *slot)
{
    void *symbol = dlsym(RTLD_DEFAULT, name);
    memcpy(slot, &symbol, sizeof symbol);
    return symbol;
}

/* Sets start and end if this object has the segment with the code of this_thread. */
static int object_visit(struct dl_phdr_info *object, size_t size, void *unused)
{
    (void)size, (void)unused;
    uint64_t wanted = (uintptr_t)python.this_thread;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        uint64_t start = object->dlpi_addr + part->p_vaddr;
        if (part->p_type != PT_LOAD || !(part->p_flags & PF_X) || wanted < start || wanted >= start + part->p_memsz)
            continue;
        python.start = start;
        python.end = start + part->p_memsz;
        return 1;
    }
    return 0;
}

static void code_find(void)
{
    dl_iterate_phdr(object_visit, NULL);
#ifdef __GLIBC__ /* others do not know a function's size; its frames stay the interpreter's */
    Dl_info info;
    void *loop, *symbol = NULL;
    if (symbol_find("_PyEval_EvalFrameDefault", &loop) && dladdr1(loop, &info, &symbol, RTLD_DL_SYMENT) && symbol) {
        python.loop_start = (uintptr_t)loop;
        python.loop_end = python.loop_start + ((const ElfW(Sym) *)symbol)->st_size;
    }
#endif
}

void python_frames_setup(void)
{
    if (atomic_load(&python.trust) != TRUST_ABSENT)
        return;
    const unsigned long *version;
    if (!symbol_find("Py_Version", &version) || !symbol_find("PyGILState_GetThisThreadState", &python.this_thread) ||
        !symbol_find("PyCode_Addr2Line", &python.line_of) || !symbol_find("PyCode_Type", &python.code_type) ||
        !symbol_find("PyUnicode_Type", &python.string_type))
        return;
    python.layout = NULL;
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
        if (layouts[i].version == *version >> 16)
            python.layout = &layouts[i];
    code_find();
    atomic_store(&python.trust, python.layout ? TRUST_UNPROVEN : TRUST_REFUSED);
}

static const char *frame_first(const char *thread)
{
    const struct python_layout *layout = python.layout;
    const char *frame = pointer_at(thread, layout->thread_frame);
    return frame && layout->holder_frame >= 0 ? pointer_at(frame, (size_t)layout->holder_frame) : frame;
}

/* Marks the boundary between two runs of the loop, from CPython 3.12 on. */
static bool is_divider(const char *frame)
{
    return python.layout->frame_is_entry < 0 && frame[python.layout->frame_owner] == owner_c_stack;
}

/* Offset of the instruction in the code, or INT64_MIN if it is implausible. */
static int64_t instruction_of(const char *frame, const char *code)
{
    int64_t offset = pointer_at(frame, python.layout->frame_instruction) - (code + python.layout->code_instructions);
    int64_t count = int64_at(code, object_size);
    bool is_inside = count > 0 && count < instructions_max && offset >= -instruction_bytes &&
                     offset < count * instruction_bytes && offset % instruction_bytes == 0;
    return is_inside ? offset : INT64_MIN;
}

/* Whether size bytes can be read at address: checked by the kernel, since a read of ours could fault. */
static bool is_readable(const int pipe[2], const char *address, size_t size)
{
    char seen[256];
    return address && size <= sizeof seen && write(pipe[1], address, size) == (ssize_t)size &&
           read(pipe[0], seen, size) == (ssize_t)size;
}

static bool is_string(const int pipe[2], const char *object)
{
    return is_readable(pipe, object, python.layout->wide_text) &&
           pointer_at(object, object_type) == python.string_type &&
           (int32_at(object, string_state) & state_compact) != 0;
}

static bool is_known_code(const int pipe[2], const char *frame)
{
    const struct python_layout *layout = python.layout;
    const char *code = pointer_at(frame, layout->frame_code);
    return is_readable(pipe, code, layout->code_instructions) && pointer_at(code, object_type) == python.code_type &&
           is_string(pipe, pointer_at(code, layout->code_name)) &&
           is_string(pipe, pointer_at(code, layout->code_file)) && instruction_of(frame, code) != INT64_MIN;
}

/* Walks the stack once, checking everything. Every object must match the layout, down to the end. */
static bool layout_prove(const char *thread)
{
    const struct python_layout *layout = python.layout;
    int ends[2];
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK))
        return false;
    const char *holder = pointer_at(thread, layout->thread_frame);
    bool is_good = layout->holder_frame < 0 || is_readable(ends, holder, 16);
    const char *frame = is_good ? frame_first(thread) : NULL;
    for (int depth = 0; is_good && frame && depth < 1000; depth++) {
        is_good = is_readable(ends, frame, 80) && (is_divider(frame) || is_known_code(ends, frame));
        frame = is_good ? pointer_at(frame, layout->frame_previous) : NULL;
    }
    close(ends[0]);
    close(ends[1]);
    return is_good;
}

static size_t utf8_put(uint32_t point, char out[4])
{
    if (point < 0x80) {
        out[0] = (char)point;
        return 1;
    }
    if ((point >= 0xd800 && point < 0xe000) || point > 0x10ffff) {
        out[0] = '?'; /* half of a surrogate pair: bytes of a file name that are not text */
        return 1;
    }
    size_t size = point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    for (size_t i = size; i-- > 1; point >>= 6)
        out[i] = (char)(0x80 | (point & 0x3f));
    out[0] = (char)((size == 2 ? 0xc0 : size == 3 ? 0xe0 : 0xf0) | point);
    return size;
}

/* Copies the string as UTF-8, replacing the separator of frames. */
static size_t string_copy(const char *string, char *out, size_t size_max)
{
    int32_t state = int32_at(string, string_state);
    size_t count = (size_t)int64_at(string, object_size), kind = state >> state_kind_shift & state_kind_mask, size = 0;
    const char *text = string + (state & state_ascii ? python.layout->ascii_text : python.layout->wide_text);
    for (size_t i = 0; i < count && size + 4 <= size_max; i++) {
        uint32_t point = kind == 1   ? ((const uint8_t *)text)[i]
                         : kind == 2 ? ((const uint16_t *)text)[i]
                                     : ((const uint32_t *)text)[i];
        size += utf8_put(point == '|' ? '/' : point, out + size);
    }
    return size;
}

static bool function_fill(struct python_function *function, const char *code, const char *name, const char *file)
{
    char text[name_bytes_max + file_bytes_max];
    size_t name_size = string_copy(name, text, name_bytes_max);
    size_t file_size = string_copy(file, text + name_size, file_bytes_max);
    uint32_t at = atomic_load(&texts_used), size = (uint32_t)(name_size + file_size);
    do {
        if (size > text_bytes - at)
            return false;
    } while (!atomic_compare_exchange_weak(&texts_used, &at, at + size));
    memcpy(texts + at, text, size);
    function->code = code;
    function->name = name;
    function->file = file;
    function->line = (uint32_t)int32_at(code, python.layout->code_line);
    function->text_at = at;
    function->name_size = (uint16_t)name_size;
    function->file_size = (uint16_t)file_size;
    return true;
}

/* NULL: not in the table, and no room for it. */
static struct python_function *function_find(const char *code)
{
    const char *name = pointer_at(code, python.layout->code_name), *file = pointer_at(code, python.layout->code_file);
    uint32_t line = (uint32_t)int32_at(code, python.layout->code_line);
    uint32_t hash = (uint32_t)((uint64_t)(uintptr_t)code * 0x9e3779b97f4a7c15ull >> 40);
    for (uint32_t i = 0; i < probe_max; i++) {
        struct python_function *function = &functions[(hash + i) % function_count];
        uint32_t state = atomic_load_explicit(&function->state, memory_order_acquire);
        if (state == FUNCTION_READY && function->code == code && function->name == name && function->file == file &&
            function->line == line)
            return function;
        /* Another thread may be adding the same function: two entries for it do no harm. */
        if (state != FUNCTION_FREE ||
            !atomic_compare_exchange_strong(&function->state, &(uint32_t){FUNCTION_FREE}, FUNCTION_BEING_MADE))
            continue;
        bool is_filled = function_fill(function, code, name, file);
        atomic_store_explicit(&function->state, is_filled ? FUNCTION_READY : FUNCTION_UNNAMED, memory_order_release);
        return is_filled ? function : NULL;
    }
    return NULL;
}

static uint64_t frame_value(const char *code, int64_t instruction)
{
    struct python_function *function = function_find(code);
    if (!function)
        return PYTHON_FRAME_MARK;
    uint64_t place = atomic_load_explicit(&function->last_place, memory_order_relaxed);
    uint64_t wanted = (uint64_t)(uint32_t)(instruction + 2 * instruction_bytes); /* never 0 */
    if (place >> 32 != wanted) {
        int line = python.line_of((void *)(uintptr_t)code, (int)instruction);
        place = wanted << 32 | (uint32_t)(line > 0 ? line : 0);
        atomic_store_explicit(&function->last_place, place, memory_order_relaxed);
    }
    return PYTHON_FRAME_MARK | (uint64_t)(function - functions + 1) << 32 | (uint32_t)place;
}

uint32_t python_frames_walk(uint64_t *frames, uint32_t frames_max)
{
    int trust = atomic_load_explicit(&python.trust, memory_order_acquire);
    if (trust != TRUST_PROVEN && trust != TRUST_UNPROVEN)
        return 0;
    const char *thread = python.this_thread();
    if (!thread)
        return 0;
    if (trust == TRUST_UNPROVEN) {
        bool is_proven = layout_prove(thread);
        atomic_store(&python.trust, is_proven ? TRUST_PROVEN : TRUST_REFUSED);
        if (!is_proven)
            return 0;
    }
    const struct python_layout *layout = python.layout;
    uint32_t count = 0;
    const char *frame = frame_first(thread);
    for (; frame && count < frames_max; frame = pointer_at(frame, layout->frame_previous)) {
        if (is_divider(frame)) {
            if (count)
                frames[count - 1] |= PYTHON_FRAME_ENTRY;
            continue;
        }
        const char *code = pointer_at(frame, layout->frame_code);
        int64_t instruction =
            pointer_at(code, object_type) == python.code_type ? instruction_of(frame, code) : INT64_MIN;
        if (instruction == INT64_MIN) {
            atomic_store(&python.trust, TRUST_REFUSED);
            return 0;
        }
        frames[count++] = frame_value(code, instruction);
        if (layout->frame_is_entry >= 0 && frame[layout->frame_is_entry])
            frames[count - 1] |= PYTHON_FRAME_ENTRY;
    }
    return count;
}

bool python_frame_describe(uint64_t frame, struct bytes *out)
{
    uint32_t id = (uint32_t)(frame >> 32 & 0xffff);
    if (!id || id > function_count) {
        bytes_append_text(out, "\?\?@python");
        return false;
    }
    const struct python_function *function = &functions[id - 1];
    bytes_append(out, texts + function->text_at, function->name_size);
    bytes_append_char(out, '@');
    bytes_append(out, texts + function->text_at + function->name_size, function->file_size);
    if ((uint32_t)frame)
        bytes_append_format(out, ":%u", (uint32_t)frame);
    return true;
}

enum python_place python_place_of(uint64_t address)
{
    if (address >= python.loop_start && address < python.loop_end)
        return PYTHON_PLACE_LOOP;
    return address >= python.start && address < python.end ? PYTHON_PLACE_INTERPRETER : PYTHON_PLACE_OTHER;
}
