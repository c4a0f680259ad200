// SPDX-License-Identifier: BSD-3-Clause
// Every function that takes a context refuses one that has been destroyed, by itself or with its team, and what never
// was one, before it looks at any other argument. Functions that take a team refuse any bits that name none.
#include <cstdint>
#include <type_traits>
#include <vector>

#include "npushmem.h"
#include "npushmem/plugin/abi.h"
#include "npushmemx.h"
#include "tests/integration/api/programs/checker.hpp"

namespace npushmem::api_test {
namespace {

// Handles that are not contexts, and the messages about them.
struct Handle {
    npushmem_ctx_t ctx;
    const char* words;
};

// An argument that would pass if the context did: pointers to some memory, a PE that exists, one element or none.
template <class T>
T argument(std::size_t elements) {
    static long memory[8];
    if constexpr (std::is_pointer_v<T>)
        return reinterpret_cast<T>(memory);
    else if constexpr (std::is_same_v<T, std::size_t>)
        return elements;
    else
        return std::is_same_v<T, std::ptrdiff_t> ? T{1} : T{0};
}

template <class Return, class... Arguments>
void expect_refusal(Checker& check, const Handle& handle, const char* name,
                    Return (*function)(npushmem_ctx_t, Arguments...)) {
    for (const std::size_t elements : {1U, 0U}) {
        (void)function(handle.ctx, argument<Arguments>(elements)...);
        check.failed_with(name, NPUSHMEM_E_ARGUMENT, {name, handle.words});
    }
}

// Every function of the tables that starts something on a context.
void test_data_functions(Checker& check, const Handle& handle) {
#define TEST_CTX(FUNCTION) expect_refusal(check, handle, #FUNCTION, FUNCTION);
#define NPUSHMEM_TYPED_CTX(NAME, TYPE, OP, ...) TEST_CTX(npushmem_ctx_##NAME##_##OP)
#define NPUSHMEM_SIZED_CTX(BITS, BYTES, PRE, POST, ...) TEST_CTX(npushmem_ctx_##PRE##BITS##POST)
#define NPUSHMEM_UNTYPED_CTX(OP, ...) TEST_CTX(npushmem_ctx_##OP)
#include "npushmem/functions.h"
#undef TEST_CTX
}

void test_others(Checker& check, const Handle& handle) {
    const auto refused = [&](const char* name) { check.failed_with(name, NPUSHMEM_E_ARGUMENT, {name, handle.words}); };
    const int pe = 0;
    npushmem_ctx_fence(handle.ctx);
    refused("npushmem_ctx_fence");
    npushmem_ctx_quiet(handle.ctx);
    refused("npushmem_ctx_quiet");
    npushmem_ctx_pe_quiet(handle.ctx, &pe, 1);
    refused("npushmem_ctx_pe_quiet");
    npushmem_ctx_pe_quiet(handle.ctx, nullptr, 0);
    refused("npushmem_ctx_pe_quiet");
    npushmem_ctx_session_start(handle.ctx, 0, nullptr, 0);
    refused("npushmem_ctx_session_start");
    npushmem_ctx_session_stop(handle.ctx);
    refused("npushmem_ctx_session_stop");
    npushmem_team_t team = NPUSHMEM_TEAM_WORLD;
    check.that("no team", npushmem_ctx_get_team(handle.ctx, &team) != 0 && team == NPUSHMEM_TEAM_INVALID);
    refused("npushmem_ctx_get_team");
    npushmem_ctx_destroy(handle.ctx);
    refused("npushmem_ctx_destroy");
}

void test_bad_handle(Checker& check, const Handle& handle) {
    test_data_functions(check, handle);
    test_others(check, handle);
}

npushmem_ctx_t destroyed() {
    npushmem_ctx_t ctx = NPUSHMEM_CTX_INVALID;
    npushmem_ctx_create(0, &ctx);
    npushmem_ctx_destroy(ctx);
    return ctx;
}

npushmem_ctx_t destroyed_with_its_team(const Job& job) {
    npushmem_ctx_t ctx = NPUSHMEM_CTX_INVALID;
    npushmem_team_t team = NPUSHMEM_TEAM_INVALID;
    npushmem_team_split_strided(NPUSHMEM_TEAM_WORLD, 0, 1, job.npes, nullptr, 0, &team);
    npushmem_team_create_ctx(team, 0, &ctx);
    npushmem_team_destroy(team);
    return ctx;
}

// Bits of many kinds: small, large, unaligned, of addresses, and near a handle that is good.
std::vector<std::uintptr_t> garbage(std::uintptr_t good) {
    static int variable;
    std::vector<std::uintptr_t> all = {good + 1,
                                       good - 1,
                                       good + (std::uintptr_t{1} << 40),
                                       good ^ (std::uintptr_t{1} << 63),
                                       reinterpret_cast<std::uintptr_t>(&variable),
                                       reinterpret_cast<std::uintptr_t>(&all),
                                       reinterpret_cast<std::uintptr_t>(&npushmem_ctx_create)};
    for (unsigned bit = 3; bit < 64; ++bit) {
        all.push_back(std::uintptr_t{1} << bit);
        all.push_back(~(std::uintptr_t{1} << bit));
        all.push_back((std::uintptr_t{1} << bit) - 1);
    }
    return all;
}

void test_bad_team(Checker& check, npushmem_team_t team) {
    static long memory[8];
    const auto refused = [&](const char* name) { check.failed_with(name, NPUSHMEM_E_ARGUMENT, {name, "the team 0x"}); };
    check.equal("team_my_pe", -1, npushmem_team_my_pe(team));
    refused("npushmem_team_my_pe");
    check.equal("team_n_pes", -1, npushmem_team_n_pes(team));
    refused("npushmem_team_n_pes");
    check.equal("team_translate_pe", -1, npushmem_team_translate_pe(team, 0, NPUSHMEM_TEAM_WORLD));
    refused("npushmem_team_translate_pe");
    check.equal("team_translate_pe", -1, npushmem_team_translate_pe(NPUSHMEM_TEAM_WORLD, 0, team));
    refused("npushmem_team_translate_pe");
    check.that("team_ptr", npushmem_team_ptr(team, memory, 0) == nullptr);
    refused("npushmem_team_ptr");
    check.that("team_sync", npushmem_team_sync(team) != 0);
    refused("npushmem_team_sync");
    npushmem_team_config_t config{};
    check.that("team_get_config", npushmem_team_get_config(team, NPUSHMEM_TEAM_NUM_CONTEXTS, &config) != 0);
    refused("npushmem_team_get_config");
    npushmem_team_t made = NPUSHMEM_TEAM_WORLD;
    check.that("team_split_strided", npushmem_team_split_strided(team, 0, 1, 1, nullptr, 0, &made) != 0);
    refused("npushmem_team_split_strided");
    check.that("no team", made == NPUSHMEM_TEAM_INVALID);
    check.that("team_split_2d", npushmem_team_split_2d(team, 1, nullptr, 0, &made, nullptr, 0, &made) != 0);
    refused("npushmem_team_split_2d");
    npushmem_ctx_t ctx = NPUSHMEM_CTX_INVALID;
    check.that("team_create_ctx", npushmem_team_create_ctx(team, 0, &ctx) != 0 && ctx == NPUSHMEM_CTX_INVALID);
    refused("npushmem_team_create_ctx");
    check.that("broadcast", npushmem_long_broadcast(team, memory, memory + 4, 1, 0) != 0);
    refused("npushmem_long_broadcast");
    check.that("reduce", npushmem_long_sum_reduce(team, memory, memory + 4, 1) != 0);
    refused("npushmem_long_sum_reduce");
    npushmem_team_destroy(team);
    refused("npushmem_team_destroy");
}

void test_teams(Checker& check, const Job& job) {
    npushmem_team_t good = NPUSHMEM_TEAM_INVALID;
    check.equal("split", 0, npushmem_team_split_strided(NPUSHMEM_TEAM_WORLD, 0, 1, job.npes, nullptr, 0, &good));
    for (const std::uintptr_t number : garbage(reinterpret_cast<std::uintptr_t>(good)))
        test_bad_team(check, reinterpret_cast<npushmem_team_t>(number));
    check.equal("the good team", job.npes, npushmem_team_n_pes(good));
    npushmem_team_destroy(good);
    check.no_error("the good team");
    test_bad_team(check, good);
    check.equal("an invalid team", -1, npushmem_team_my_pe(NPUSHMEM_TEAM_INVALID));
    check.no_error("an invalid team");
}

// None is taken for one that was made since.
void test_handles(Checker& check, const Job& job) {
    static long something[32];
    const Handle bad[] = {{destroyed(), "has been destroyed"},
                          {destroyed_with_its_team(job), "has been destroyed"},
                          {reinterpret_cast<npushmem_ctx_t>(something), "is not a context"},
                          {reinterpret_cast<npushmem_ctx_t>(std::uintptr_t{77}), "is not a context"}};
    npushmem_ctx_t good = NPUSHMEM_CTX_INVALID;
    check.equal("ctx_create", 0, npushmem_ctx_create(0, &good));
    for (const Handle& handle : bad) {
        check.that("a new context has a new handle", handle.ctx != good);
        test_bad_handle(check, handle);
    }
    const auto bits = [](npushmem_ctx_t ctx) { return reinterpret_cast<std::uintptr_t>(ctx); };
    for (const std::uintptr_t number : garbage(bits(good)))
        test_others(check, {reinterpret_cast<npushmem_ctx_t>(number), "is not a context"});
    test_data_functions(check, {NPUSHMEM_CTX_INVALID, "NPUSHMEM_CTX_INVALID"});
    auto* word = static_cast<long*>(npushmem_calloc(1, sizeof(long)));
    npushmem_ctx_long_p(good, word, job.me + 1L, job.right());
    npushmem_ctx_quiet(good);
    npushmem_barrier_all();
    check.equal("through the context that lives", job.left() + 1L, *word);
    check.no_error("the context that lives");
    npushmem_ctx_destroy(good);
    npushmem_free(word);
}

}  // namespace
}  // namespace npushmem::api_test

int main() {
    using namespace npushmem::api_test;
    return run_family("handles", [](Checker& check, const Job& job) {
        test_handles(check, job);
        test_teams(check, job);
    });
}
