/* SPDX-License-Identifier: BSD-3-Clause */
/* What the kernel's TCP takes without a library, between two processes that poll. latency: half of a round trip of 40
 * bytes, as a put of 8 bytes has with its header; microseconds. stream: the time of a byte of a stream into memory that
 * an answer ends; nanoseconds. The client prints it.
 *
 *     sockets latency <rounds> [<server's address>]
 *     sockets stream <rounds> <bytes at a time> [<server's address>]
 *
 * Without an address it is the server. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { port = 7799, frame_bytes = 40 };

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static void fail(const char* what) {
    perror(what);
    exit(1);
}

static int connection(const char* server) {
    const int on = 1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    int made = socket(AF_INET, SOCK_STREAM, 0);
    address.sin_addr.s_addr = server != NULL ? inet_addr(server) : htonl(INADDR_ANY);
    if (server != NULL) {
        if (connect(made, (struct sockaddr*)&address, sizeof address) != 0) fail("connect");
    } else {
        const int listener = made;
        setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        if (bind(listener, (struct sockaddr*)&address, sizeof address) != 0) fail("bind");
        if (listen(listener, 1) != 0 || (made = accept(listener, NULL, NULL)) < 0) fail("accept");
        close(listener);
    }
    setsockopt(made, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return made;
}

static void send_all(int to, const char* from, size_t bytes) {
    while (bytes > 0) {
        const ssize_t sent = send(to, from, bytes, MSG_NOSIGNAL);
        if (sent < 0) fail("send");
        from += sent;
        bytes -= (size_t)sent;
    }
}

/* Polls, as a PE does. */
static void receive_all(int from, char* to, size_t bytes) {
    while (bytes > 0) {
        const ssize_t got = recv(from, to, bytes, MSG_DONTWAIT);
        if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) fail("recv");
        if (got < 0) continue;
        to += got;
        bytes -= (size_t)got;
    }
}

int main(int argc, char** argv) {
    const int streams = argc > 1 && strcmp(argv[1], "stream") == 0;
    const long rounds = argc > 2 ? atol(argv[2]) : 0;
    const size_t bytes = streams && argc > 3 ? (size_t)atol(argv[3]) : frame_bytes;
    const char* const server = argc > 3 + streams ? argv[3 + streams] : NULL;
    char* memory = rounds > 0 && bytes > 0 ? calloc(1, bytes) : NULL;
    char answer = 0;
    if (memory == NULL) return 1;
    const int other = connection(server);
    const double begin = now();
    for (long i = 0; i < rounds; ++i) {
        if (server == NULL) receive_all(other, memory, bytes);
        if (!streams || server != NULL) send_all(other, memory, bytes);
        if (server != NULL && !streams) receive_all(other, memory, bytes);
    }
    if (streams && server == NULL) send_all(other, &answer, 1);
    if (streams && server != NULL) receive_all(other, &answer, 1);
    const double each = (now() - begin) / (double)rounds;
    if (server != NULL) printf("%.4f\n", streams ? each / (double)bytes : each / 2000);
    free(memory);
    return 0;
}
