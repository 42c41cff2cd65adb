/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/notify.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int listener(const char *name, bool is_abstract)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    assert_true(fd >= 0);
    memcpy(address.sun_path, name, strlen(name));
    if (is_abstract)
        address.sun_path[0] = '\0';
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name));
    assert_int_equal(bind(fd, (struct sockaddr *)&address, size), 0);
    return fd;
}

static void assert_heard(int fd, const char *text)
{
    char got[128] = "";
    assert_int_equal(recv(fd, got, sizeof got - 1, 0), (ssize_t)strlen(text));
    assert_string_equal(got, text);
}

static void states_reach_the_service_manager(void **state)
{
    (void)state;
    char dir[] = "/tmp/gpufl-notify-XXXXXX", path[64], abstract[64];
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/socket", dir);
    snprintf(abstract, sizeof abstract, "@%s", dir);
    int fd = listener(path, false), abstract_fd = listener(abstract, true);
    setenv("NOTIFY_SOCKET", path, 1);
    assert_true(notify_send("READY=1"));
    assert_heard(fd, "READY=1");
    setenv("NOTIFY_SOCKET", abstract, 1);
    assert_true(notify_send("WATCHDOG=1\nSTATUS=fine"));
    assert_heard(abstract_fd, "WATCHDOG=1\nSTATUS=fine");
    close(fd);
    close(abstract_fd);
    unlink(path);
    rmdir(dir);
}

static void without_a_listener_notifying_does_nothing(void **state)
{
    (void)state;
    static const char *const names[] = {"", "/", "relative", "/nonexistent/gpufl-socket"};
    errno = 77;
    unsetenv("NOTIFY_SOCKET");
    assert_false(notify_send("READY=1"));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        setenv("NOTIFY_SOCKET", names[i], 1);
        assert_false(notify_send("READY=1"));
    }
    char longest[300];
    memset(longest, 'x', sizeof longest);
    longest[0] = '/';
    longest[sizeof longest - 1] = '\0';
    setenv("NOTIFY_SOCKET", longest, 1);
    assert_false(notify_send("READY=1"));
    assert_int_equal(errno, 77);
}

static void a_watchdog_of_another_process_is_ignored(void **state)
{
    (void)state;
    char pid[32];
    unsetenv("WATCHDOG_USEC");
    unsetenv("WATCHDOG_PID");
    assert_int_equal(notify_watchdog_ns(), 0);
    setenv("WATCHDOG_USEC", "30000000", 1);
    assert_int_equal(notify_watchdog_ns(), 30000000000);
    snprintf(pid, sizeof pid, "%ld", (long)getpid());
    setenv("WATCHDOG_PID", pid, 1);
    assert_int_equal(notify_watchdog_ns(), 30000000000);
    setenv("WATCHDOG_PID", "1", 1);
    assert_int_equal(notify_watchdog_ns(), 0);
    unsetenv("WATCHDOG_PID");
    static const char *const wrong[] = {"", "x", "12x", "-1", "0", "99999999999999999999"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        setenv("WATCHDOG_USEC", wrong[i], 1);
        assert_int_equal(notify_watchdog_ns(), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(states_reach_the_service_manager),
        cmocka_unit_test(without_a_listener_notifying_does_nothing),
        cmocka_unit_test(a_watchdog_of_another_process_is_ignored),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
