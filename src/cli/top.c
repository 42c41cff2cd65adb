/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/top.h"

#include "base/clock.h"
#include "cli/command.h"
#include "cli/terminal.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

enum { TRACED_PAUSE_MS = LIVE_WINDOW_NS / 1000000 + 100 }; /* until there is a rate */

struct top {
    struct host_watch *watch;
    struct live_kernels live;
    struct top_page page;
    struct bytes shown, next; /* the page on the screen, and the one that replaces it */
    struct termios before;
};

static volatile sig_atomic_t end_signal, has_resized, wants_stop;

static void on_signal(int number)
{
    if (number == SIGWINCH || number == SIGCONT)
        has_resized = 1;
    else if (number == SIGTSTP)
        wants_stop = 1;
    else
        end_signal = number;
}

static void top_tick(struct top *top)
{
    host_watch_tick(top->watch);
    live_kernels_begin(&top->live);
    const struct monitor_view *view = &top->watch->view;
    for (uint32_t i = 0; i < view->gpu_count; i++)
        for (uint32_t j = 0; j < view->gpus[i].process_count; j++)
            (void)live_kernels_ask(&top->live, view->gpus[i].processes[j].use.pid);
    live_kernels_end(&top->live);
}

static bool text_write(const char *text, size_t size)
{
    while (size) {
        ssize_t part = write(STDOUT_FILENO, text, size);
        if (part < 0 && errno != EINTR)
            return false;
        text += part > 0 ? part : 0;
        size -= part > 0 ? (size_t)part : 0;
    }
    return true;
}

/* Another screen without a cursor, and keys as they come. */
static void screen_enter(struct top *top)
{
    struct termios raw = top->before;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    raw.c_cc[VMIN] = 0;
    raw.c_cc[VTIME] = 0;
    tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    static const char enter[] = "\033[?1049h\033[?25l\033[2J";
    (void)text_write(enter, sizeof enter - 1);
    bytes_clear(&top->shown);
}

static void screen_leave(const struct top *top)
{
    static const char leave[] = "\033[0m\033[?25h\033[?1049l";
    (void)text_write(leave, sizeof leave - 1);
    tcsetattr(STDIN_FILENO, TCSANOW, &top->before);
}

static void size_read(struct top *top)
{
    struct winsize size;
    top->page.columns = 100;
    top->page.rows = 24;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col && size.ws_row) {
        top->page.columns = size.ws_col;
        top->page.rows = size.ws_row;
    }
}

/* Only lines that changed are written, so nothing flickers. */
static bool screen_draw(struct top *top)
{
    struct bytes out = {0};
    bytes_clear(&top->next);
    top_page_write(&top->next, top->watch, &top->live, &top->page);
    const char *old = top->shown.data, *old_end = old ? old + top->shown.size : NULL;
    const char *at = top->next.data, *end = at ? at + top->next.size : NULL;
    for (int row = 1; at && at < end && row <= top->page.rows; row++) {
        const char *line_end = memchr(at, '\n', (size_t)(end - at));
        const char *old_line_end = old && old < old_end ? memchr(old, '\n', (size_t)(old_end - old)) : NULL;
        size_t size = (size_t)(line_end - at);
        bool is_same = old_line_end && (size_t)(old_line_end - old) == size && memcmp(old, at, size) == 0;
        if (!is_same) {
            bytes_append_format(&out, "\033[%d;1H", row);
            bytes_append(&out, at, size);
            bytes_append_text(&out, "\033[K");
        }
        at = line_end + 1;
        old = old_line_end ? old_line_end + 1 : NULL;
    }
    struct bytes swap = top->shown;
    top->shown = top->next;
    top->next = swap;
    bool is_written = !out.failed && text_write(out.data, out.size);
    bytes_free(&out);
    return is_written;
}

/* False: the user wants to leave. */
static bool key_take(struct top *top, char key)
{
    if (key == 'q' || key == 'Q')
        return false;
    for (unsigned i = 0; i < TOP_ORDER_COUNT; i++)
        if (key == top_order_names[i][0])
            top->page.order = (enum top_order)i;
    return true;
}

/* Stops as any program does on Ctrl-Z, with the terminal as it was. */
static void screen_suspend(struct top *top)
{
    screen_leave(top);
    raise(SIGSTOP);
    screen_enter(top);
    wants_stop = 0;
}

/* Waits for a key, a signal or the next tick. False: end the program. */
static bool top_wait(struct top *top, int64_t until_ns, const sigset_t *waiting_mask)
{
    int64_t left_ns = until_ns - clock_mono_ns();
    left_ns = left_ns > 0 ? left_ns : 0;
    struct timespec timeout = {.tv_sec = left_ns / 1000000000, .tv_nsec = left_ns % 1000000000};
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    int ready = ppoll(&input, 1, &timeout, waiting_mask);
    char keys[64];
    ssize_t size = ready > 0 ? read(STDIN_FILENO, keys, sizeof keys) : 0;
    if (ready > 0 && size <= 0)
        return false; /* the terminal is gone */
    for (ssize_t i = 0; i < size; i++)
        if (!key_take(top, keys[i]))
            return false;
    if (has_resized) {
        has_resized = 0;
        size_read(top);
        bytes_clear(&top->shown);
        static const char clear[] = "\033[2J";
        (void)text_write(clear, sizeof clear - 1);
    }
    if (wants_stop)
        screen_suspend(top);
    return !end_signal;
}

static int top_run(struct top *top, int64_t interval_ns)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH, SIGTSTP, SIGCONT};
    struct sigaction action = {.sa_handler = on_signal};
    sigset_t blocked, waiting_mask;
    sigemptyset(&blocked);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        sigaction(signals[i], &action, NULL);
        sigaddset(&blocked, signals[i]);
    }
    /* Delivered only while waiting, so that none is missed between looking and waiting. */
    sigprocmask(SIG_BLOCK, &blocked, &waiting_mask);
    if (tcgetattr(STDIN_FILENO, &top->before) != 0) {
        command_error("top", "standard input is no terminal; --once prints one page");
        return EXIT_ENVIRONMENT;
    }
    size_read(top);
    screen_enter(top);
    int64_t next_ns = clock_mono_ns();
    bool goes_on = true;
    while (goes_on) {
        if (clock_mono_ns() >= next_ns) {
            top_tick(top);
            next_ns = clock_mono_ns() + interval_ns;
        }
        goes_on = screen_draw(top) && top_wait(top, next_ns, &waiting_mask);
    }
    screen_leave(top);
    return end_signal && end_signal != SIGINT ? EXIT_SIGNAL_BASE + end_signal : EXIT_GOOD;
}

static int top_once(struct top *top, bool is_json)
{
    top_tick(top);
    int pause_ms = HOST_WATCH_PAUSE_MS;
    for (uint32_t i = 0; i < top->live.count; i++)
        pause_ms = top->live.programs[i].fd >= 0 ? TRACED_PAUSE_MS : pause_ms;
    nanosleep(&(struct timespec){.tv_sec = pause_ms / 1000, .tv_nsec = pause_ms % 1000 * 1000000L}, NULL);
    top_tick(top);
    top->page.rows = 0;
    top->page.columns = terminal_columns(STDOUT_FILENO, 100);
    if (is_json)
        top_json_write(&top->next, top->watch, &top->live);
    else
        top_page_write(&top->next, top->watch, &top->live, &top->page);
    if (!top->next.failed && text_write(top->next.data, top->next.size))
        return EXIT_GOOD;
    command_error("top", "cannot write to standard output");
    return EXIT_ENVIRONMENT;
}

int command_top(int argc, char **argv)
{
    struct arguments arguments;
    int code = command_parse("top", argc, argv, &arguments);
    if (code >= 0)
        return code;
    struct top top = {.page = {.use_color = terminal_use_color(STDOUT_FILENO, "auto")}};
    const char *order = arguments_text(&arguments, "sort", top_order_names[TOP_BY_MEMORY]);
    for (unsigned i = 0; i < TOP_ORDER_COUNT; i++)
        if (strcmp(order, top_order_names[i]) == 0)
            top.page.order = (enum top_order)i;
    live_kernels_init(&top.live, "");
    top.watch = host_watch_open(GPU_VENDORS_ALL);
    if (!top.watch) {
        command_error("top", "out of memory");
        return EXIT_ENVIRONMENT;
    }
    bool is_json = arguments_has(&arguments, "json");
    if (is_json || arguments_has(&arguments, "once") || !isatty(STDOUT_FILENO))
        code = top_once(&top, is_json);
    else
        code = top_run(&top, arguments_number(&arguments, "interval", 1000) * INT64_C(1000000));
    host_watch_close(top.watch);
    live_kernels_free(&top.live);
    bytes_free(&top.shown);
    bytes_free(&top.next);
    return code;
}
