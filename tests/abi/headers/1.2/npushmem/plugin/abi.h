/* SPDX-License-Identifier: BSD-3-Clause */
/* Common to all plugin tables: result codes, errors, configuration rows, and the services of the host.
 *
 * Rules of the boundary (they hold for every table in this folder):
 *  - fixed-width integers and pointers only; no C++ type, no bit-field, no enum, no `long` crosses it;
 *  - a table or structure starts with its size; fields are only ever appended; a reader takes
 *    min(its own size, struct_size) bytes and treats the rest as zero;
 *  - the major version is part of the one exported symbol's name, the minor version counts appended fields;
 *  - strings passed in live for the call; strings in a table live as long as the library is loaded;
 *  - no function throws, exits or aborts. The C++ classes of this folder turn an exception of a plugin into a code and
 *    a message with its what(): NPUSHMEM_E_MEMORY for std::bad_alloc, else NPUSHMEM_E_SYSTEM;
 *  - a failure is a code and, where an `npushmem_error` is passed, a message written by the first function that knows
 *    the cause: what was attempted, on which object, with which values.
 */
#ifndef NPUSHMEM_PLUGIN_ABI_H
#define NPUSHMEM_PLUGIN_ABI_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Result codes, grouped by what the caller must rebuild before a retry. */
#define NPUSHMEM_OK 0
#define NPUSHMEM_AGAIN 1 /* not an error: no room or not finished yet; make progress and call again */
/* -1xx: the arguments or the time of the call */
#define NPUSHMEM_E_ARGUMENT (-100)        /* an invalid value */
#define NPUSHMEM_E_RANGE (-101)           /* a PE, size or index outside its range */
#define NPUSHMEM_E_NOT_SYMMETRIC (-102)   /* an address outside symmetric memory */
#define NPUSHMEM_E_NOT_INITIALIZED (-103) /* called before init or after finalize */
#define NPUSHMEM_E_STATE (-104)           /* the object cannot serve the call in its current state */
#define NPUSHMEM_E_MISMATCH (-105)        /* PEs gave a collective call different arguments */
/* -2xx: the configuration: variables, files */
#define NPUSHMEM_E_CONFIG (-200)
/* -3xx: a plugin: missing, refused, or lacking the function */
#define NPUSHMEM_E_PLUGIN_MISSING (-300)
#define NPUSHMEM_E_PLUGIN_REFUSED (-301)
#define NPUSHMEM_E_UNSUPPORTED (-302)
/* -4xx: a peer */
#define NPUSHMEM_E_UNREACHABLE (-400)
#define NPUSHMEM_E_PEER_DEAD (-401)
#define NPUSHMEM_E_TIMEOUT (-402)
#define NPUSHMEM_E_PROTOCOL (-403) /* bytes that do not parse or do not authenticate */
#define NPUSHMEM_E_ABORTED (-404)  /* another PE reported a failure; the message carries its cause */
/* -5xx: the system: memory, files, sockets */
#define NPUSHMEM_E_MEMORY (-500)
#define NPUSHMEM_E_SYSTEM (-501)

/* Message buffer filled by a failing function; always terminated. The caller owns it and need not clear it. */
typedef struct npushmem_error {
    int32_t code;
    char message[2044];
} npushmem_error;

/* One configuration variable of a plugin. `name` is without the NPUSHMEM_ prefix. `default_value` is parsed like a
 * user's value. `type` is one of
 *   "bool"      1, 0, true, false, yes, no, on, off
 *   "int"       a decimal integer from -(2^63 - 1) to 2^63 - 1
 *   "uint"      a decimal integer from 0 to 2^63 - 1
 *   "size"      bytes: an integer with optional K, M, G or T
 *   "duration"  a number with optional ns, us, ms, s (the default), m or h
 *   "string", "list"  any text
 * The host refuses a value that is not of its type before it calls `open`. A row has no other minimum and maximum: if
 * the plugin accepts a narrower range, `meaning` states it ("operations in flight, 1 to 65536"), and `open` refuses a
 * value outside with NPUSHMEM_E_CONFIG and a message with the variable, the value and the range.
 * Reports do not show the value of a variable whose name contains UNIQUEID, SECRET, SESSION, TOKEN, PASSWORD, PASSWD,
 * CREDENTIAL or COOKIE. */
typedef struct npushmem_config_row {
    const char* name;
    const char* default_value;
    const char* type;
    const char* meaning;
} npushmem_config_row;

#define NPUSHMEM_LOG_ERROR 0
#define NPUSHMEM_LOG_WARN 1
#define NPUSHMEM_LOG_INFO 2
#define NPUSHMEM_LOG_DEBUG 3
#define NPUSHMEM_LOG_TRACE 4

/* Services of the host, valid from `open` until `close` returns. Any thread may call them. */
typedef struct npushmem_host {
    uint32_t struct_size;
    uint16_t major;
    uint16_t minor;
    void* context;
    /* Writes one line. `subsystem` is the plugin's name. */
    void (*log)(void* context, int32_t level, const char* subsystem, const char* message);
    /* Returns the effective value (environment, else default) of a variable that the plugin's own rows or the runtime's
     * table declare; NULL if no row has that name. The pointer lives as long as the host. */
    const char* (*config)(void* context, const char* name);
} npushmem_host;

#ifdef __cplusplus
}
#endif
#endif
