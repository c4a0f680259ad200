// SPDX-License-Identifier: BSD-3-Clause
// Calls the named function while every allocation of this thread fails. The library uses this program's operator new.
#include <cstdlib>
#include <new>
#include <string_view>

#include "npushmem.h"
#include "npushmemx.h"

namespace {

thread_local bool fails = false;

void* allocate(std::size_t bytes) {
    void* const made = fails ? nullptr : std::malloc(bytes);
    if (made == nullptr) throw std::bad_alloc();
    return made;
}

struct Call {
    std::string_view name;
    void (*run)();
};

npushmem_team_t team = NPUSHMEM_TEAM_INVALID;
npushmem_ctx_t context = NPUSHMEM_CTX_INVALID;
alignas(4096) char buffer[4096];
// Addresses that no call returned.
const auto never_made = reinterpret_cast<npushmem_ctx_t>(buffer);
const auto unknown_team = reinterpret_cast<npushmem_team_t>(buffer);

const Call calls[] = {
    {"npushmem_team_split_strided",
     [] { npushmem_team_split_strided(NPUSHMEM_TEAM_WORLD, 0, 1, 1, nullptr, 0, &team); }},
    {"npushmem_team_split_2d",
     [] {
         npushmem_team_t other = NPUSHMEM_TEAM_INVALID;
         npushmem_team_split_2d(NPUSHMEM_TEAM_WORLD, 1, nullptr, 0, &team, nullptr, 0, &other);
     }},
    {"npushmem_team_destroy", [] { npushmem_team_destroy(NPUSHMEM_TEAM_WORLD); }},
    {"npushmemx_team_set_barrier",
     [] { npushmemx_team_set_barrier(NPUSHMEM_TEAM_WORLD, "no algorithm has this name"); }},
    {"npushmem_ctx_create", [] { npushmem_ctx_create(0, &context); }},
    {"npushmem_team_create_ctx", [] { npushmem_team_create_ctx(NPUSHMEM_TEAM_WORLD, 0, &context); }},
    {"npushmem_ctx_destroy", [] { npushmem_ctx_destroy(NPUSHMEM_CTX_DEFAULT); }},
    {"npushmemx_buffer_register_symmetric", [] { npushmemx_buffer_register_symmetric(buffer, sizeof buffer, 0); }},
    {"npushmemx_buffer_unregister_symmetric", [] { npushmemx_buffer_unregister_symmetric(buffer, sizeof buffer); }},
    {"npushmemx_buffer_register", [] { npushmemx_buffer_register(buffer, sizeof buffer); }},
    {"npushmemx_buffer_unregister", [] { npushmemx_buffer_unregister(buffer); }},
    {"npushmem_malloc", [] { npushmem_malloc(SIZE_MAX); }},
    {"npushmem_realloc",
     [] {
         long on_the_stack = 0;
         npushmem_realloc(&on_the_stack, 8);
     }},
    {"npushmem_addr_accessible",
     [] {
         long on_the_stack = 0;
         npushmem_addr_accessible(&on_the_stack, 0);
     }},
    {"npushmem_signal_fetch",
     [] {
         const uint64_t on_the_stack = 0;
         npushmem_signal_fetch(&on_the_stack);
     }},
    {"npushmemx_get_route", [] { npushmemx_get_route(-1, nullptr); }},
    {"npushmemx_get_barrier", [] { npushmemx_get_barrier(unknown_team, nullptr); }},
    {"npushmemx_team_get_statistics", [] { npushmemx_team_get_statistics(unknown_team, nullptr); }},
    {"npushmemx_stream_create",
     [] {
         npushmemx_stream_t stream = nullptr;
         npushmemx_stream_create(&stream);
     }},
    {"npushmemx_stream_destroy", [] { npushmemx_stream_destroy(nullptr); }},
    {"npushmemx_signal_wait_until_on_stream",
     [] { npushmemx_signal_wait_until_on_stream(nullptr, NPUSHMEM_CMP_EQ, 0, nullptr); }},
    {"npushmemx_long_wait_until_on_stream",
     [] { npushmemx_long_wait_until_on_stream(nullptr, NPUSHMEM_CMP_EQ, 0, nullptr); }},
    {"npushmem_align", [] { npushmem_align(3, 8); }},
    {"npushmem_ptr",
     [] {
         long on_the_stack = 0;
         npushmem_ptr(&on_the_stack, 0);
     }},
    {"npushmem_ctx_session_start", [] { npushmem_ctx_session_start(never_made, 0, nullptr, 0); }},
    {"npushmem_ctx_session_stop", [] { npushmem_ctx_session_stop(never_made); }},
    {"npushmem_ctx_get_team", [] { npushmem_ctx_get_team(never_made, &team); }},
    {"npushmem_team_get_config", [] { npushmem_team_get_config(unknown_team, 0, nullptr); }},
    {"npushmemx_team_get_uniqueid", [] { npushmemx_team_get_uniqueid(nullptr); }},
    {"npushmemx_team_init", [] { npushmemx_team_init(nullptr, nullptr, 0, 1, 0); }},
    {"npushmemx_heap_info", [] { npushmemx_heap_info(nullptr); }},
    {"npushmem_set_lock",
     [] {
         long on_the_stack = 0;
         npushmem_set_lock(&on_the_stack);
     }},
    {"npushmem_clear_lock",
     [] {
         long on_the_stack = 0;
         npushmem_clear_lock(&on_the_stack);
     }},
};

}  // namespace

void* operator new(std::size_t bytes) { return allocate(bytes); }
void* operator new[](std::size_t bytes) { return allocate(bytes); }
void operator delete(void* pointer) noexcept { std::free(pointer); }
void operator delete[](void* pointer) noexcept { std::free(pointer); }
void operator delete(void* pointer, std::size_t) noexcept { std::free(pointer); }
void operator delete[](void* pointer, std::size_t) noexcept { std::free(pointer); }

int main(int arguments, char** argument) {
    for (const Call& call : calls) {
        if (arguments < 2 || call.name != argument[1]) continue;
        npushmem_init();
        fails = true;
        call.run();
        fails = false;
        npushmem_finalize();
        return 0;
    }
    return 2;
}
