/* SPDX-License-Identifier: BSD-3-Clause */
/* Measures half of a round trip of a word over libfabric's tcp;ofi_rxm, without npushmem: each side polls its
 * completion queue until the word in its memory changes. The client prints microseconds.
 *
 *     libfabric_words write|message polled|waitable <rounds> <interface> [<server's address>]
 *
 * write: fi_writemsg of 8 bytes. message: fi_inject of 64 bytes, from which the receiver stores the word. waitable: the
 * completion queue has a descriptor for waits (FI_WAIT_FD), which libfabric writes and reads for each completion.
 * Each process sends and receives with one endpoint, as npushmem's transport does. Without an address it is the
 * server. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { port = 7788, receives = 64, message_bytes = 64 };

struct Side {
    char address[64];
    uint64_t key;
    uint64_t base;
};

static struct fid_domain* domain;
static struct fid_cq* completions;
static struct fid_av* addresses;
static volatile uint64_t word;
static struct fid_ep* own;
static int by_message;

struct Receive {
    struct fi_context2 context;
    uint64_t words[message_bytes / sizeof(uint64_t)];
};
static struct Receive received[receives];

static void check(long result, const char* what) {
    if (result == 0) return;
    fprintf(stderr, "libfabric_words: %s: %s\n", what, fi_strerror((int)-result));
    exit(1);
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

static struct fid_ep* endpoint(struct fi_info* info) {
    struct fid_ep* made = NULL;
    check(fi_endpoint(domain, info, &made, NULL), "fi_endpoint");
    check(fi_ep_bind(made, &addresses->fid, 0), "fi_ep_bind");
    check(fi_ep_bind(made, &completions->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
    check(fi_enable(made), "fi_enable");
    return made;
}

static void post(struct Receive* receive) {
    check(fi_recv(own, receive->words, sizeof receive->words, NULL, FI_ADDR_UNSPEC, &receive->context), "fi_recv");
}

static void poll_completions(void) {
    struct fi_cq_msg_entry entries[16];
    const ssize_t count = fi_cq_read(completions, entries, 16);
    if (count < 0 && count != -FI_EAGAIN) check(count, "fi_cq_read");
    for (ssize_t i = 0; i < count; ++i) {
        if ((entries[i].flags & FI_RECV) == 0) continue;
        struct Receive* const receive = entries[i].op_context;
        word = receive->words[0];
        post(receive);
    }
}

/* Over a socket: the sides exchange their addresses. */
static struct Side exchange(const struct Side* mine, const char* server) {
    const int on = 1;
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct Side theirs;
    int other = socket(AF_INET, SOCK_STREAM, 0);
    at.sin_addr.s_addr = server != NULL ? inet_addr(server) : htonl(INADDR_ANY);
    if (server != NULL) {
        check(connect(other, (struct sockaddr*)&at, sizeof at), "connect");
    } else {
        setsockopt(other, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        check(bind(other, (struct sockaddr*)&at, sizeof at), "bind");
        check(listen(other, 1), "listen");
        other = accept(other, NULL, NULL);
    }
    check(write(other, mine, sizeof *mine) != sizeof *mine, "write");
    check(recv(other, &theirs, sizeof theirs, MSG_WAITALL) != sizeof theirs, "recv");
    close(other);
    return theirs;
}

static long send_word(fi_addr_t to, const struct Side* there, uint64_t value) {
    if (by_message) {
        const uint64_t words[message_bytes / sizeof(uint64_t)] = {value};
        return fi_inject(own, words, sizeof words, to);
    }
    struct iovec local = {&value, sizeof value};
    struct fi_rma_iov remote = {there->base, sizeof value, there->key};
    struct fi_msg_rma message = {.msg_iov = &local, .iov_count = 1, .addr = to, .rma_iov = &remote, .rma_iov_count = 1};
    return fi_writemsg(own, &message, FI_COMPLETION | FI_INJECT);
}

static void put(fi_addr_t to, const struct Side* there, uint64_t value) {
    long sent;
    while ((sent = send_word(to, there, value)) == -FI_EAGAIN) poll_completions();
    check(sent, "fi_writemsg or fi_inject");
}

int main(int argc, char** argv) {
    if (argc < 5) return 1;
    by_message = strcmp(argv[1], "message") == 0;
    const int waitable = strcmp(argv[2], "waitable") == 0;
    if (!by_message && strcmp(argv[1], "write") != 0) return 1;
    if (!waitable && strcmp(argv[2], "polled") != 0) return 1;
    const enum fi_wait_obj wait = waitable ? FI_WAIT_FD : FI_WAIT_NONE;
    const long rounds = atol(argv[3]);
    const char* const server = argc > 5 ? argv[5] : NULL;
    struct fi_info *hints = fi_allocinfo(), *info = NULL;
    hints->caps = FI_MSG | FI_RMA;
    hints->ep_attr->type = FI_EP_RDM;
    hints->addr_format = FI_SOCKADDR_IN;
    hints->fabric_attr->prov_name = strdup("tcp;ofi_rxm");
    hints->domain_attr->name = strdup(argv[4]);
    check(fi_getinfo(FI_VERSION(1, 14), NULL, NULL, 0, hints, &info), "fi_getinfo");
    struct fid_fabric* fabric = NULL;
    struct fi_cq_attr queue = {.format = FI_CQ_FORMAT_MSG, .size = 1024, .wait_obj = wait};
    struct fi_av_attr table = {.type = FI_AV_TABLE};
    struct fid_mr* memory = NULL;
    check(fi_fabric(info->fabric_attr, &fabric, NULL), "fi_fabric");
    check(fi_domain(fabric, info, &domain, NULL), "fi_domain");
    check(fi_cq_open(domain, &queue, &completions, NULL), "fi_cq_open");
    check(fi_av_open(domain, &table, &addresses, NULL), "fi_av_open");
    own = endpoint(info);
    for (int i = 0; i < receives; ++i) post(&received[i]);
    check(fi_mr_reg(domain, (const void*)&word, sizeof word, FI_REMOTE_WRITE, 0, 1, 0, &memory, NULL), "fi_mr_reg");
    struct Side mine = {.key = fi_mr_key(memory)};
    size_t bytes = sizeof mine.address;
    if ((info->domain_attr->mr_mode & FI_MR_VIRT_ADDR) != 0) mine.base = (uintptr_t)&word;
    check(fi_getname(&own->fid, mine.address, &bytes), "fi_getname");
    const struct Side theirs = exchange(&mine, server);
    fi_addr_t to = FI_ADDR_UNSPEC;
    check(fi_av_insert(addresses, theirs.address, 1, &to, 0, NULL) != 1, "fi_av_insert");
    double begin = now();
    for (long i = 1; i <= 2 * rounds; ++i) { /* the first half connects and warms up */
        if (server != NULL) put(to, &theirs, (uint64_t)i);
        while (word < (uint64_t)i) poll_completions();
        if (server == NULL) put(to, &theirs, (uint64_t)i);
        if (i == rounds) begin = now();
    }
    if (server != NULL) printf("%.3f\n", (now() - begin) / (double)rounds / 2);
    for (const double end = now() + 1e5; now() < end;) poll_completions(); /* the other side's last write */
    return 0;
}
