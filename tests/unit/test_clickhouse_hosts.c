/* SPDX-License-Identifier: Apache-2.0 */
/* Which requests are sent again and to which host, tested with hosts that answer according to a script and close
 * connections. */
#include "store/clickhouse_client.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

enum { REQUESTS_MAX = 8, REQUEST_BYTES_MAX = 4096 };

/* A host that receives whole requests. The script has one entry per request: "" succeeds, NULL closes the connection
 * without an answer, any other text is an error. */
struct host {
    const char *script[REQUESTS_MAX];
    char requests[REQUESTS_MAX][REQUEST_BYTES_MAX];
    int count, listener;
    uint16_t port;
    pthread_t thread;
};

/* Reads into text until the head, and the body it announces, are complete. False: the client has closed the
 * connection. */
static bool request_read(int connection, char text[REQUEST_BYTES_MAX])
{
    size_t size = 0;
    for (;;) {
        ssize_t got = recv(connection, text + size, REQUEST_BYTES_MAX - 1 - size, 0);
        if (got <= 0)
            return false;
        size += (size_t)got;
        text[size] = '\0';
        const char *end = strstr(text, "\r\n\r\n"), *length = strcasestr(text, "content-length:");
        if (end && length && size >= (size_t)(end + 4 - text) + strtoul(length + 15, NULL, 10))
            return true;
    }
}

static void *host_main(void *arg)
{
    struct host *host = arg;
    for (;;) {
        int connection = accept(host->listener, NULL, NULL);
        if (connection < 0)
            return NULL;
        while (host->count < REQUESTS_MAX && request_read(connection, host->requests[host->count])) {
            const char *answer = host->script[host->count++];
            if (!answer)
                break;
            char text[512];
            snprintf(text, sizeof text, "HTTP/1.1 %s\r\nContent-Length: %zu\r\n\r\n%s",
                     answer[0] ? "500 Internal Server Error" : "200 OK", strlen(answer), answer);
            send(connection, text, strlen(text), MSG_NOSIGNAL);
        }
        close(connection);
    }
}

static void host_bind(struct host *host)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    host->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(host->listener, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(getsockname(host->listener, (struct sockaddr *)&address, &size), 0);
    host->port = ntohs(address.sin_port);
}

static void host_start(struct host *host)
{
    host_bind(host);
    assert_int_equal(listen(host->listener, 8), 0);
    assert_int_equal(pthread_create(&host->thread, NULL, host_main, host), 0);
}

static void host_stop(struct host *host)
{
    shutdown(host->listener, SHUT_RDWR);
    pthread_join(host->thread, NULL);
    close(host->listener);
}

static struct ch_client *client_of(const struct host *first, const struct host *second, const char *options)
{
    struct ch_client *client = NULL;
    struct problem problem = {""};
    char url[128];
    static struct ch_location location;
    snprintf(url, sizeof url, "clickhouse://127.0.0.1:%u,127.0.0.1:%u/gpufl%s", first->port, second->port, options);
    if (ch_location_parse(&location, url, &problem) || ch_client_open(&client, &location, &problem))
        fail_msg("%s: %s", url, problem.text);
    return client;
}

static gpufl_status insert(struct ch_client *client, struct problem *problem)
{
    struct bytes rows = {0};
    ch_put_text(&rows, "a row");
    gpufl_status status = ch_insert(client, "write (session_id)", &rows, problem);
    bytes_free(&rows);
    return status;
}

static bool has_quorum(const struct host *host, int request)
{
    return strstr(host->requests[request], "insert_quorum=2") != NULL;
}

#define CLUSTER "?cluster=fleet"

/* Inserts once, with both hosts up. */
static void insert_at(struct host *first, struct host *second, gpufl_status expected)
{
    struct problem problem = {""};
    host_start(first);
    host_start(second);
    struct ch_client *client = client_of(first, second, CLUSTER);
    assert_int_equal(insert(client, &problem), expected);
    ch_client_close(client);
    host_stop(first);
    host_stop(second);
}

static void rows_are_not_sent_again_when_the_host_failed_after_receiving_them(void **state)
{
    (void)state;
    static const char *const kinds[] = {CLUSTER, ""};
    for (size_t i = 0; i < 2; i++) {
        struct host first = {.script = {NULL}}, second = {.script = {""}};
        struct problem problem = {""};
        host_start(&first);
        host_start(&second);
        struct ch_client *client = client_of(&first, &second, kinds[i]);
        assert_int_equal(insert(client, &problem), GPUFL_E_BUSY);
        assert_non_null(strstr(problem.text, "was lost after the request was sent"));
        ch_client_close(client);
        host_stop(&first);
        host_stop(&second);
        assert_int_equal(first.count, 1);
        assert_int_equal(second.count, 0);
    }
}

static void rows_are_not_sent_on_a_connection_on_which_curl_would_retry(void **state)
{
    (void)state;
    struct host first = {.script = {"", NULL, NULL}}, second = {.script = {""}};
    struct problem problem = {""};
    host_start(&first);
    host_start(&second);
    struct ch_client *client = client_of(&first, &second, CLUSTER);
    assert_int_equal(insert(client, &problem), GPUFL_OK);
    assert_int_equal(insert(client, &problem), GPUFL_E_BUSY);
    ch_client_close(client);
    host_stop(&first);
    host_stop(&second);
    assert_int_equal(first.count, 2);
    assert_int_equal(second.count, 0);
}

static void rows_that_no_host_received_are_sent_to_the_next_host(void **state)
{
    (void)state;
    struct host absent = {0}, second = {.script = {""}};
    struct problem problem = {""};
    host_bind(&absent); /* nobody listens there */
    host_start(&second);
    struct ch_client *client = client_of(&absent, &second, CLUSTER);
    assert_int_equal(insert(client, &problem), GPUFL_OK);
    ch_client_close(client);
    close(absent.listener);
    host_stop(&second);
    assert_int_equal(second.count, 1);
    assert_true(has_quorum(&second, 0));
}

static void rows_that_a_host_refuses_are_sent_to_the_next_host(void **state)
{
    (void)state;
    struct host first = {.script = {"Code: 242, Table is in readonly mode"}}, second = {.script = {""}};
    insert_at(&first, &second, GPUFL_OK);
    assert_int_equal(first.count, 1);
    assert_int_equal(second.count, 1);
}

static void rows_are_not_sent_again_after_a_zookeeper_error(void **state)
{
    (void)state;
    struct host first = {.script = {"Code: 999, Connection loss"}}, second = {.script = {""}};
    insert_at(&first, &second, GPUFL_E_BUSY);
    assert_int_equal(second.count, 0);
}

static void with_too_few_replicas_rows_are_sent_once_without_a_quorum(void **state)
{
    (void)state;
    struct host first = {.script = {"Code: 285, Number of alive replicas is less than requested quorum", NULL}};
    struct host second = {.script = {""}};
    insert_at(&first, &second, GPUFL_E_BUSY);
    assert_true(has_quorum(&first, 0));
    assert_false(has_quorum(&first, 1));
    assert_int_equal(first.count, 2);
    assert_int_equal(second.count, 0);
}

static void after_a_failed_quorum_the_next_rows_are_sent_without_one(void **state)
{
    (void)state;
    struct host first = {.script = {"Code: 319, Unknown status, client must retry", ""}}, second = {.script = {""}};
    struct problem problem = {""};
    host_start(&first);
    host_start(&second);
    struct ch_client *client = client_of(&first, &second, CLUSTER);
    assert_int_equal(insert(client, &problem), GPUFL_E_BUSY);
    assert_int_equal(insert(client, &problem), GPUFL_OK);
    ch_client_close(client);
    host_stop(&first);
    host_stop(&second);
    assert_true(has_quorum(&first, 0));
    assert_false(has_quorum(&first, 1));
    assert_int_equal(second.count, 0);
}

static void a_query_is_sent_to_the_next_host_after_any_failure(void **state)
{
    (void)state;
    struct host first = {.script = {NULL}}, second = {.script = {""}};
    struct problem problem = {""};
    struct bytes sql = {0};
    struct ch_rows rows = {0};
    host_start(&first);
    host_start(&second);
    struct ch_client *client = client_of(&first, &second, CLUSTER);
    bytes_append_text(&sql, "SELECT 1");
    assert_int_equal(ch_select(client, &sql, &rows, &problem), GPUFL_OK);
    bytes_free(&sql);
    ch_rows_free(&rows);
    ch_client_close(client);
    host_stop(&first);
    host_stop(&second);
    assert_int_equal(second.count, 1);
}

static void a_host_that_did_not_answer_syncs_before_it_is_used_again(void **state)
{
    (void)state;
    /* Two failures per insert: curl itself retries when a kept-alive connection breaks. */
    struct host first = {.script = {"", "", "", NULL, NULL, "", "", ""}}, absent = {0};
    struct problem problem = {""};
    struct bytes sql = {0};
    struct ch_rows rows = {0};
    host_start(&first);
    host_bind(&absent);
    struct ch_client *client = client_of(&first, &absent, CLUSTER);
    ch_client_ready(client);
    for (int i = 0; i < 2; i++) {
        bytes_clear(&sql);
        bytes_append_text(&sql, "SELECT 1");
        assert_int_equal(ch_select(client, &sql, &rows, &problem), GPUFL_OK);
    }
    bytes_free(&sql);
    ch_rows_free(&rows);
    ch_client_close(client);
    host_stop(&first);
    close(absent.listener);
    static const char *const expected[REQUESTS_MAX] = {
        "SYSTEM SYNC REPLICA gpufl.write", "SYSTEM SYNC REPLICA gpufl.change", "SELECT 1", "SELECT 1", "SELECT 1",
        "SYSTEM SYNC REPLICA gpufl.write", "SYSTEM SYNC REPLICA gpufl.change", "SELECT 1"};
    assert_int_equal(first.count, REQUESTS_MAX);
    for (int i = 0; i < REQUESTS_MAX; i++)
        assert_non_null(strstr(first.requests[i], expected[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_not_sent_again_when_the_host_failed_after_receiving_them),
        cmocka_unit_test(rows_are_not_sent_on_a_connection_on_which_curl_would_retry),
        cmocka_unit_test(rows_that_no_host_received_are_sent_to_the_next_host),
        cmocka_unit_test(rows_that_a_host_refuses_are_sent_to_the_next_host),
        cmocka_unit_test(rows_are_not_sent_again_after_a_zookeeper_error),
        cmocka_unit_test(with_too_few_replicas_rows_are_sent_once_without_a_quorum),
        cmocka_unit_test(after_a_failed_quorum_the_next_rows_are_sent_without_one),
        cmocka_unit_test(a_query_is_sent_to_the_next_host_after_any_failure),
        cmocka_unit_test(a_host_that_did_not_answer_syncs_before_it_is_used_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
