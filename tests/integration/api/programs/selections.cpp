// SPDX-License-Identifier: BSD-3-Clause
// The selections of the start as values: they agree with the rest of the interface and, as far as the arguments show
// them, with the user's selection. Arguments: self=<transport>:<mapped>, near=... (other PEs of the host), and
// far=<transport>:<proxied> (PEs of other hosts, never mapped).
#include "tests/integration/api/programs/selections.h"

#include <cstring>
#include <map>
#include <string>

#include "npushmem/plugin/abi.h"
#include "npushmem/plugin/bootstrap.h"
#include "npushmem/plugin/transport.h"
#include "tests/integration/api/programs/checker.hpp"

namespace npushmem::api_test {
namespace {

struct Expected {
    std::string transport;
    bool flag;
};
using Expectations = std::map<std::string, Expected>;

Expectations expectations_of(int count, char** words) {
    Expectations out;
    for (int i = 1; i < count; ++i) {
        const std::string word = words[i];
        const auto equals = word.find('=');
        const auto colon = word.rfind(':');
        out[word.substr(0, equals)] = {word.substr(equals + 1, colon - equals - 1), word.substr(colon + 1) == "1"};
    }
    return out;
}

template <class Public>
Public empty() {
    Public out;
    std::memset(&out, 0, sizeof out);
    out.struct_size = sizeof out;
    return out;
}

bool contains(const char* text, const std::string& part) { return std::string(text).find(part) != std::string::npos; }

void test_route(Checker& check, const Job& job, int pe, const Expectations& expectations) {
    auto route = empty<npushmemx_route_t>();
    const std::string what = fmt::format("route to PE {}", pe);
    if (!check.equal(what, 0, npushmemx_get_route(pe, &route))) return;
    check.equal(what + ", size", static_cast<std::uint32_t>(sizeof route), route.struct_size);
    check.equal(what + ", PE", pe, route.pe);
    const bool mapped = (route.capabilities & NPUSHMEMX_ROUTE_MAPPED) != 0;
    // The line may go on with the estimated time.
    const std::string line = fmt::format("{}{} ({}", route.transport, mapped ? ", mapped" : "", route.reason);
    check.that(fmt::format("{}: '{}' is not in '{}'", what, line, npushmemx_describe_map()),
               contains(npushmemx_describe_map(), line));
    check.that(what + ", host name", route.host_name[0] != '\0');
    check.that(what + ": NICs of the host are known", route.same_host == 0 || route.peer_nics_known == 1);
    check.that(what + ": transports within a host have no NIC", route.same_host == 0 || route.nic_count == 0);
    check.that(what + ": atomics without the capability",
               (route.capabilities & NPUSHMEMX_ROUTE_ATOMIC) != 0 || mapped || route.atomic_32 + route.atomic_64 == 0);
    if (pe == job.me) check.equal(what + ", same host", 1, route.same_host);

    const char* const kind = pe == job.me ? "self" : route.same_host != 0 ? "near" : "far";
    const auto expected = expectations.find(kind);
    if (expected == expectations.end()) return;
    const bool far = expected->first == "far";
    check.equal(what + ", transport", expected->second.transport, std::string(route.transport));
    check.equal(what + ", mapped", !far && expected->second.flag, mapped);
    if (far) {
        check.equal(what + ", proxied", expected->second.flag, route.proxied != 0);
        check.that(what + ", remote", (route.capabilities & NPUSHMEMX_ROUTE_REMOTE) != 0);
    }
}

// A mapped PE is one whose objects have an address here.
void test_mapping(Checker& check, const Job& job) {
    auto* word = static_cast<int*>(npushmem_malloc(sizeof(int)));
    for (int pe = 0; pe < job.npes; ++pe) {
        auto route = empty<npushmemx_route_t>();
        if (pe == job.me || npushmemx_get_route(pe, &route) != 0) continue;
        check.equal(fmt::format("PE {} has an address here", pe), (route.capabilities & NPUSHMEMX_ROUTE_MAPPED) != 0,
                    npushmem_ptr(word, pe) != nullptr);
    }
    npushmem_free(word);
}

void test_bootstrap(Checker& check, const Job& job) {
    auto bootstrap = empty<npushmemx_bootstrap_t>();
    check.equal("get_bootstrap", 0, npushmemx_get_bootstrap(&bootstrap));
    check.equal("rank", job.me, bootstrap.rank);
    check.equal("nranks", job.npes, bootstrap.nranks);
    check.equal("bootstrap", std::string("uid"), std::string(bootstrap.name));
    check.that("confidence", bootstrap.confidence > 0 && bootstrap.confidence <= NPUSHMEM_RECOGNISED_BY_USER);
    check.that(
        "the text has the same bootstrap and reason",
        contains(npushmemx_describe_job(), fmt::format("bootstrap: {} ({})\n", bootstrap.name, bootstrap.reason)));
}

void test_nics(Checker& check, const Job& job) {
    for (int pe = 0; pe < job.npes; ++pe) {
        auto nics = empty<npushmemx_nics_t>();
        check.equal("get_nic_assignment", 0, npushmemx_get_nic_assignment(pe, &nics));
        check.equal("PE of the NICs", pe, nics.pe);
        check.that("NICs without a transport", (nics.count == 0) == (nics.transport[0] == '\0'));
        check.that("a reason of the NICs", nics.reason[0] != '\0');
        if (pe == job.me) check.equal("the own NICs are known", 1, nics.known);
    }
}

void test_barrier(Checker& check, const Job& job) {
    auto choice = empty<npushmemx_barrier_choice_t>();
    check.equal("get_barrier", 0, npushmemx_get_barrier(NPUSHMEM_TEAM_WORLD, &choice));
    check.equal("PEs of the barrier", job.npes, choice.npes);
    check.that("hosts of the barrier", choice.hosts >= 1 && choice.hosts <= job.npes);
    check.that("PEs per core", choice.pes_per_core > 0);
    const std::string name =
        choice.radix == 0 ? choice.algorithm : fmt::format("{}:{}", choice.algorithm, choice.radix);
    check.that("the text has the same barrier and reason",
               contains(npushmemx_describe_job(), fmt::format("barrier: {} ({})\n", name, choice.reason)));

    npushmem_team_t team = NPUSHMEM_TEAM_INVALID;
    npushmem_team_split_strided(NPUSHMEM_TEAM_WORLD, 0, 1, job.npes, nullptr, 0, &team);
    check.equal("set_barrier", 0, npushmemx_team_set_barrier(team, "dissemination_k:3"));
    check.equal("get_barrier of the team", 0, npushmemx_get_barrier(team, &choice));
    check.equal("algorithm that was set", std::string("dissemination_k"), std::string(choice.algorithm));
    check.equal("radix that was set", 3, choice.radix);
    check.that("reason of the set algorithm", contains(choice.reason, "npushmemx_team_set_barrier"));
    npushmem_team_destroy(team);
    check.no_error("barrier choices");
    check.equal("get_barrier of no team", NPUSHMEM_E_ARGUMENT, npushmemx_get_barrier(NPUSHMEM_TEAM_INVALID, &choice));
    check.failed_with("no team", NPUSHMEM_E_ARGUMENT, {"npushmemx_get_barrier", "NPUSHMEM_TEAM_INVALID"});
}

// Size of a structure in a call, and what the call left in place.
void test_sizes(Checker& check, const Job& job) {
    const selections_layout c = selections_layout_in_c();
    check.that("C and C++ agree about the structures",
               c.route == sizeof(npushmemx_route_t) && c.bootstrap == sizeof(npushmemx_bootstrap_t) &&
                   c.nics == sizeof(npushmemx_nics_t) && c.barrier == sizeof(npushmemx_barrier_choice_t) &&
                   c.route_capabilities == offsetof(npushmemx_route_t, capabilities) &&
                   c.route_peer_nics == offsetof(npushmemx_route_t, peer_nics) &&
                   c.barrier_pes_per_core == offsetof(npushmemx_barrier_choice_t, pes_per_core));
    auto route = empty<npushmemx_route_t>();
    check.equal("route", 0, npushmemx_get_route(job.me, &route));
    char transport[64] = {};
    std::uint32_t written = 0;
    unsigned char after = 0;
    check.equal("route of an older program", 0, selections_old_route(job.me, transport, &written, &after));
    check.equal("transport of an older program", std::string(route.transport), std::string(transport));
    check.equal("bytes of an older program", static_cast<std::uint32_t>(c.route_capabilities), written);
    check.equal("byte behind an older program's structure", 77, static_cast<int>(after));

    // A newer program has a larger structure.
    struct {
        npushmemx_route_t route;
        unsigned char more[8];
    } newer;
    std::memset(&newer, 77, sizeof newer);
    newer.route.struct_size = sizeof newer;
    check.equal("route of a newer program", 0, npushmemx_get_route(job.me, &newer.route));
    check.equal("bytes of a newer program", static_cast<std::uint32_t>(sizeof route), newer.route.struct_size);
    check.equal("byte behind the library's structure", 77, static_cast<int>(newer.more[0]));
    check.no_error("sizes");
}

void test_refusals(Checker& check, const Job& job) {
    for (const int pe : {-1, job.npes}) {
        auto route = empty<npushmemx_route_t>();
        auto nics = empty<npushmemx_nics_t>();
        const std::string name = fmt::format("PE {} does not exist", pe);
        check.equal("route to no PE", NPUSHMEM_E_RANGE, npushmemx_get_route(pe, &route));
        check.failed_with("route to no PE", NPUSHMEM_E_RANGE, {"npushmemx_get_route", name});
        check.equal("NICs of no PE", NPUSHMEM_E_RANGE, npushmemx_get_nic_assignment(pe, &nics));
        check.failed_with("NICs of no PE", NPUSHMEM_E_RANGE, {"npushmemx_get_nic_assignment", name});
        check.that("nothing is written on failure", route.transport[0] == '\0' && nics.reason[0] == '\0');
    }
    const auto refused = [&](const char* function, int code, std::initializer_list<std::string_view> words) {
        check.equal(function, NPUSHMEM_E_ARGUMENT, code);
        check.failed_with(function, NPUSHMEM_E_ARGUMENT, words);
    };
    refused("npushmemx_get_route", npushmemx_get_route(0, nullptr), {"route is NULL"});
    refused("npushmemx_get_bootstrap", npushmemx_get_bootstrap(nullptr), {"bootstrap is NULL"});
    refused("npushmemx_get_nic_assignment", npushmemx_get_nic_assignment(0, nullptr), {"nics is NULL"});
    refused("npushmemx_get_barrier", npushmemx_get_barrier(NPUSHMEM_TEAM_WORLD, nullptr), {"choice is NULL"});
    for (const std::uint32_t size : {0U, 7U}) {
        const std::string given = fmt::format("struct_size is {}", size);
        npushmemx_route_t route{};
        npushmemx_bootstrap_t bootstrap{};
        npushmemx_nics_t nics{};
        npushmemx_barrier_choice_t choice{};
        route.struct_size = bootstrap.struct_size = nics.struct_size = choice.struct_size = size;
        refused("npushmemx_get_route", npushmemx_get_route(0, &route), {given, "sizeof(*route)"});
        refused("npushmemx_get_bootstrap", npushmemx_get_bootstrap(&bootstrap), {given, "sizeof(*bootstrap)"});
        refused("npushmemx_get_nic_assignment", npushmemx_get_nic_assignment(0, &nics), {given, "sizeof(*nics)"});
        refused("npushmemx_get_barrier", npushmemx_get_barrier(NPUSHMEM_TEAM_WORLD, &choice),
                {given, "sizeof(*choice)"});
    }
}

void test_outside(Checker& check, const char* when) {
    auto route = empty<npushmemx_route_t>();
    auto bootstrap = empty<npushmemx_bootstrap_t>();
    auto nics = empty<npushmemx_nics_t>();
    auto choice = empty<npushmemx_barrier_choice_t>();
    const int codes[] = {npushmemx_get_route(0, &route), npushmemx_get_bootstrap(&bootstrap),
                         npushmemx_get_nic_assignment(0, &nics), npushmemx_get_barrier(NPUSHMEM_TEAM_WORLD, &choice)};
    for (const int code : codes) check.equal(when, NPUSHMEM_E_NOT_INITIALIZED, code);
    check.failed_with(when, NPUSHMEM_E_NOT_INITIALIZED, {"npushmem_init"});
}

int run(int count, char** words) {
    const Expectations expectations = expectations_of(count, words);
    Checker outside("selections");
    test_outside(outside, "before init");
    const int status = run_family("selections", [&](Checker& check, const Job& job) {
        for (int pe = 0; pe < job.npes; ++pe) test_route(check, job, pe, expectations);
        test_mapping(check, job);
        test_bootstrap(check, job);
        test_nics(check, job);
        check.no_error("selections");
        test_barrier(check, job);
        test_sizes(check, job);
        test_refusals(check, job);
        npushmem_barrier_all();
    });
    test_outside(outside, "after finalize");
    return status != 0 ? status : outside.exit_status();
}

}  // namespace
}  // namespace npushmem::api_test

int main(int count, char** words) { return npushmem::api_test::run(count, words); }
