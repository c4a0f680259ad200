/* SPDX-License-Identifier: BSD-3-Clause */
/* A program of OpenSHMEM that makes mistakes: each is reported under the name by which the function was called, before
 * the start as well. "size" as its argument: prints what the heap holds at least. "leave <status>": the last PE
 * exits with that status while the others wait for it twice; "interrupt": the last PE exits with status 0 in a signal
 * handler that interrupts its barrier, and the others enter that barrier and another one after it has ended; "fork":
 * each PE has a child that ends by itself; "end": the last PE ends the job with status 5. */
#include <errno.h>
#include <sched.h>
#include <shmem.h>
#include <shmemx.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static int failures = 0;

static void expect_report(int line, const char* beginning, const char* word) {
    const char* message = "";
    npushmemx_last_error(&message);
    if (strncmp(message, beginning, strlen(beginning)) != 0 || strstr(message, word) == NULL ||
        strstr(message, "npushmem_") != NULL) {
        ++failures;
        printf("openshmem_mistakes.c:%d: no '%s' with '%s': %s\n", line, beginning, word, message);
    }
    npushmemx_clear_error();
}
#define EXPECT_REPORT(BEGINNING, WORD) expect_report(__LINE__, BEGINNING, WORD)

static long everywhere;

static void make_mistakes(void) {
    long* object = shmem_malloc(sizeof *object);
    long here = 0;
    const int nobody = shmem_n_pes();
    shmem_long_p(object, 1, nobody);
    EXPECT_REPORT("shmem_long_p: ", "PE ");
    shmem_putmem(object, &here, 8, -1);
    EXPECT_REPORT("shmem_putmem: ", "PE -1");
    (void)shmem_long_atomic_fetch_add(object, 1, nobody);
    EXPECT_REPORT("shmem_long_atomic_fetch_add: ", "PE ");
    shmem_ctx_long_put(SHMEM_CTX_INVALID, object, &here, 1, 0);
    EXPECT_REPORT("shmem_ctx_long_put: ", "SHMEM_CTX_INVALID");
    shmem_long_put(&here, &here, 1, 0);
    EXPECT_REPORT("shmem_long_put: ", "shmem_malloc");
    shmem_team_sync(SHMEM_TEAM_INVALID);
    EXPECT_REPORT("shmem_team_sync: ", "SHMEM_TEAM_INVALID");
    shmem_long_wait_until(object, 77, 0);
    EXPECT_REPORT("shmem_long_wait_until: ", "SHMEM_CMP_EQ");
    shmem_long_put_signal(object, &here, 1, (uint64_t*)object, 1, 9, 0);
    EXPECT_REPORT("shmem_long_put_signal: ", "SHMEM_SIGNAL_SET");
    shmem_free(object);
}

static int leave(int status) {
    shmem_init();
    if (shmem_my_pe() == shmem_n_pes() - 1) exit(status);
    shmem_barrier_all();
    shmem_barrier_all();
    return 1;
}

static volatile sig_atomic_t in_barrier = 0;

/* The thread has run between two signals, so the later ones find it inside the call. */
static void exit_at_tenth_signal(int signal) {
    (void)signal;
    if (in_barrier > 0 && ++in_barrier > 10) exit(0);
}

static int interrupt(void) {
    static int last_pe_process = 0;
    shmem_init();
    const int last = shmem_n_pes() - 1;
    const int process = getpid();
    if (shmem_my_pe() == last)
        for (int pe = 0; pe < last; ++pe) shmem_int_p(&last_pe_process, process, pe);
    shmem_barrier_all();
    if (shmem_my_pe() == last) {
        const struct itimerval every_ms = {{0, 1000}, {0, 1000}};
        signal(SIGALRM, exit_at_tenth_signal);
        setitimer(ITIMER_REAL, &every_ms, NULL);
        in_barrier = 1;
    } else {
        while (kill(last_pe_process, 0) == 0 || errno != ESRCH) sched_yield();
    }
    shmem_barrier_all();
    shmem_barrier_all();
    return 1;
}

static int end_job(void) {
    shmem_init();
    if (shmem_my_pe() == shmem_n_pes() - 1) shmem_global_exit(5);
    shmem_barrier_all();
    return 1;
}

static int fork_children(void) {
    shmem_init();
    const pid_t child = fork();
    if (child == 0) exit(0);
    int status = -1;
    const int ended = waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
    shmem_barrier_all();
    return ended ? 0 : 1;
}

int main(int count, char** arguments) {
    if (count > 2 && strcmp(arguments[1], "leave") == 0) return leave(atoi(arguments[2]));
    if (count > 1 && strcmp(arguments[1], "interrupt") == 0) return interrupt();
    if (count > 1 && strcmp(arguments[1], "end") == 0) return end_job();
    if (count > 1 && strcmp(arguments[1], "fork") == 0) return fork_children();
    if (count > 1 && strcmp(arguments[1], "size") == 0) {
        shmem_init();
        npushmemx_heap_info_t info;
        npushmemx_heap_info(&info);
        printf("capacity=%llu\n", (unsigned long long)info.capacity);
        shmem_finalize();
        return 0;
    }
    shmem_long_p(&everywhere, 1, 0);
    EXPECT_REPORT("shmem_long_p: ", "call shmem_init first");
    shmem_init();
    make_mistakes();
    shmem_finalize();
    (void)shmem_my_pe();
    EXPECT_REPORT("shmem_my_pe: ", "shmem_finalize");
    return failures != 0;
}
