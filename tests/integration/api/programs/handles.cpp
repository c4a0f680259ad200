// NPUSHMEM_CHECK=1: every function that takes a context refuses one that has been destroyed, by itself or with its
// team, and what never was one, before it looks at any other argument.
#include <cstdlib>
#include <type_traits>

#include "npushmem.h"
#include "npushmem/plugin/abi.h"
#include "npushmemx.h"
#include "tests/integration/api/programs/checker.hpp"

namespace npushmem::api_test {
namespace {

// What is no context, and the words for it.
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
    check.failed_with("destroy", NPUSHMEM_E_ARGUMENT, {"npushmem_ctx_destroy", "does not exist, or not any more"});
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

// None is taken for one that was made since.
void test_handles(Checker& check, const Job& job) {
    static long something[32];
    const Handle bad[] = {{destroyed(), "the context has been destroyed"},
                          {destroyed_with_its_team(job), "the context has been destroyed"},
                          {reinterpret_cast<npushmem_ctx_t>(something), "ctx is no context"},
                          {reinterpret_cast<npushmem_ctx_t>(std::uintptr_t{77}), "ctx is no context"}};
    npushmem_ctx_t good = NPUSHMEM_CTX_INVALID;
    check.equal("ctx_create", 0, npushmem_ctx_create(0, &good));
    for (const Handle& handle : bad) {
        check.that("a new context has a new handle", handle.ctx != good);
        test_bad_handle(check, handle);
    }
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
    ::setenv("NPUSHMEM_CHECK", "1", 1);
    return npushmem::api_test::run_family("handles", npushmem::api_test::test_handles);
}
