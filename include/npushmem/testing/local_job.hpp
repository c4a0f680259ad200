// SPDX-License-Identifier: BSD-3-Clause
// A job whose PEs are threads of one test program, over any transports, also the test's own mocks and fakes. Programs
// of several PEs can so be tested and debugged in one process:
//
//     TEST(Ring, EveryPeGetsItsLeftNeighbour) {
//         npushmem::testing::LocalJob(3).set("NPUSHMEM_TRANSPORTS", "self,fault(p2p)").run([](int pe) {
//             long* value = static_cast<long*>(npushmem_calloc(1, sizeof *value));
//             npushmem_long_p(value, pe, (pe + 1) % 3);
//             npushmem_barrier_all();
//             EXPECT_EQ(*value, (pe + 2) % 3);
//             npushmem_free(value);
//         });
//     }
//
// Link npushmem::npushmem and npushmem::testing. Global variables are one set for all PEs and not symmetric.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "npushmem/plugin/bootstrap_export.hpp"
#include "npushmem/plugin/transport_export.hpp"
#include "npushmem/testing/fake_bootstrap.hpp"
#include "npushmemx.h"

namespace npushmem::testing {

class LocalJob {
public:
    // Makes the transport of one PE, in the thread of that PE.
    using MakeTransport = std::function<std::unique_ptr<Transport>(const npushmem_transport_params& params)>;

    static constexpr std::uint64_t moves_data =
        NPUSHMEM_CAP_PUT | NPUSHMEM_CAP_GET | NPUSHMEM_CAP_ATOMIC | NPUSHMEM_CAP_PUT_SIGNAL | NPUSHMEM_CAP_PUT_STRIDED;
    static constexpr int every_pe = -1;

    explicit LocalJob(int pes) : pes_(pes) { set("NPUSHMEM_SYMMETRIC_SIZE", "16M"); }
    LocalJob(const LocalJob&) = delete;
    LocalJob& operator=(const LocalJob&) = delete;

    // Sets a variable of one PE, or of every PE for which it is not set singly. The environment has the other values.
    LocalJob& set(const std::string& variable, std::string value, int pe = every_pe) {
        settings_[pe][variable] = std::move(value);
        return *this;
    }
    // Provides a transport under this name, which NPUSHMEM_TRANSPORTS selects, also inside decorators: "trace(mock)".
    // Each PE destroys its transport at its end, which verifies the expectations of a mock. At most max_given.
    LocalJob& add_transport(std::string name, MakeTransport make, std::uint64_t capabilities = moves_data) {
        if (given_.size() == max_given) throw std::length_error("a LocalJob takes 8 transports");
        Given& given = given_.emplace_back(Given{std::move(name), std::move(make), {}});
        detail::TransportTrampolines::fill(given.table);
        given.table.name = given.name.c_str();
        given.table.summary = "";
        given.table.capabilities = capabilities;
        given.table.open = openers(std::make_index_sequence<max_given>())[given_.size() - 1];
        tables_.push_back(&given.table);
        return *this;
    }
    // The same for a plugin that is linked into the program: add_transport(*npushmem_transport_entry_v1()).
    LocalJob& add_transport(const npushmem_transport_v1& table) {
        tables_.push_back(&table);
        return *this;
    }

    // Provides a library of collectives that is linked into the program; NPUSHMEM_COLL_LIBRARY selects it.
    LocalJob& add_collectives(const npushmem_collectives_v1& table) {
        collectives_.push_back(&table);
        return *this;
    }

    // Runs body(pe) in one thread for each PE, between a start and a finalize: the functions of npushmem act on this
    // job in these threads. Returns how each PE ended: a failed start or end, the message of an exception, or the last
    // failed call of its thread unless the body has cleared it by npushmemx_clear_error. When a PE throws, or the test
    // has had a fatal failure at its end, the calls of the others that need it fail, as if its process had ended.
    std::vector<Status> try_run(const std::function<void(int pe)>& body) {
        const Start start{*this, std::make_shared<fakes::FakeJob>(pes_, start_timeout)};
        std::vector<Status> ends(static_cast<std::size_t>(pes_));
        std::vector<std::thread> threads;
        for (int pe = 0; pe < pes_; ++pe)
            threads.emplace_back([&, pe] { ends[static_cast<std::size_t>(pe)] = run_pe(start, pe, body); });
        for (std::thread& thread : threads) thread.join();
        return ends;
    }
    // As try_run. A failure of a PE is one of the test.
    void run(const std::function<void(int pe)>& body) {
        const std::vector<Status> ends = try_run(body);
        for (std::size_t pe = 0; pe < ends.size(); ++pe)
            if (!ends[pe].ok()) ADD_FAILURE() << "PE " << pe << ": " << ends[pe].message();
    }

private:
    // A failed PE ends the waits of the others; the limit is for programs that are stopped in a debugger.
    static constexpr std::chrono::hours start_timeout{24};
    static constexpr std::size_t max_given = 8;

    struct Given {
        std::string name;
        MakeTransport make;
        npushmem_transport_v1 table;
    };
    struct Start {
        const LocalJob& job;
        std::shared_ptr<fakes::FakeJob> ranks;
    };

    // That of the PE that this thread starts: the entry functions of a plugin have no argument for it.
    static const Start*& current_start() {
        thread_local const Start* start = nullptr;
        return start;
    }

    class Ranks {
    public:
        static Result<std::unique_ptr<Bootstrap>> open(const Host&, const npushmem_bootstrap_params& params) {
            return std::unique_ptr<Bootstrap>(
                std::make_unique<fakes::FakeBootstrap>(current_start()->ranks, params.rank));
        }
    };
    static const npushmem_bootstrap_v1& bootstrap_table() {
        using T = detail::BootstrapTrampolines;
        static const npushmem_bootstrap_v1 table = [] {
            npushmem_bootstrap_v1 t{};
            t.struct_size = sizeof t;
            t.major = NPUSHMEM_BOOTSTRAP_MAJOR;
            t.minor = NPUSHMEM_BOOTSTRAP_MINOR;
            t.name = "threads";
            t.summary = "the threads of a LocalJob";
            t.open = [](const npushmem_host* host, const npushmem_bootstrap_params* params, void** self,
                        std::int32_t* rank, std::int32_t* nranks, npushmem_error* error) -> std::int32_t {
                return detail::open_bootstrap<Ranks>(host, params, self, rank, nranks, error, "threads");
            };
            t.close = T::close;
            t.allgather = T::allgather;
            t.barrier = T::barrier;
            t.abort = T::abort;
            t.check = T::check;
            return t;
        }();
        return table;
    }

    template <std::size_t Index>
    struct Opener {
        static Result<std::unique_ptr<Transport>> open(const Host&, const npushmem_transport_params& params) {
            return current_start()->job.given_[Index].make(params);
        }
        static std::int32_t call(const npushmem_host* host, const npushmem_transport_params* params, void** self,
                                 npushmem_error* error) {
            return detail::open_transport<Opener>(host, params, self, error,
                                                  current_start()->job.given_[Index].name.c_str());
        }
    };
    template <std::size_t... Index>
    static std::array<decltype(npushmem_transport_v1::open), sizeof...(Index)> openers(std::index_sequence<Index...>) {
        return {&Opener<Index>::call...};
    }

    static Status last_failure() {
        const char* text = "";
        const int code = npushmemx_last_error(&text);
        Status failure = code == 0 ? Status{} : Status{static_cast<Code>(code), text};
        npushmemx_clear_error();
        return failure;
    }

    [[nodiscard]] std::vector<std::string> settings_of(int pe) const {
        std::map<std::string, std::string> all;
        for (const int scope : {pe, every_pe})
            if (const auto found = settings_.find(scope); found != settings_.end())
                all.insert(found->second.begin(), found->second.end());
        std::vector<std::string> lines;
        for (const auto& [variable, value] : all) lines.push_back(variable + "=" + value);
        return lines;
    }

    // Returns null if the start fails.
    npushmemx_world_t start_pe(const Start& start, int pe) const {
        const std::vector<std::string> lines = settings_of(pe);
        std::vector<const char*> settings;
        for (const std::string& line : lines) settings.push_back(line.c_str());
        settings.push_back(nullptr);
        std::vector<const npushmem_transport_v1*> transports = tables_;
        transports.push_back(nullptr);
        npushmemx_world_attr_t attr = NPUSHMEMX_WORLD_ATTR_INITIALIZER;
        attr.init.rank = pe;
        attr.init.nranks = pes_;
        attr.settings = settings.data();
        attr.transports = transports.data();
        std::vector<const npushmem_collectives_v1*> collectives = collectives_;
        collectives.push_back(nullptr);
        attr.collectives = collectives.data();
        attr.bootstrap = &bootstrap_table();
        npushmemx_world_t world = nullptr;
        current_start() = &start;
        (void)npushmemx_world_create(&attr, &world);
        current_start() = nullptr;
        return world;
    }

    Status run_pe(const Start& start, int pe, const std::function<void(int)>& body) const {
        npushmemx_world_t const world = start_pe(start, pe);
        if (world == nullptr) {
            // Also a failure before the PE has joined the others.
            const Status failed = last_failure();
            start.ranks->abort(pe, failed.message());
            return failed;
        }
        (void)npushmemx_world_make_current(world, nullptr);
        Status thrown;
        try {
            body(pe);
            if (::testing::Test::HasFatalFailure()) thrown = {Code::aborted, "the test has had a fatal failure"};
        } catch (const std::exception& exception) {
            thrown = {Code::aborted, exception.what()};
        } catch (...) {
            thrown = {Code::aborted, "an exception that is not a std::exception"};
        }
        Status failed = last_failure();
        if (!thrown.ok()) {
            (void)npushmemx_world_abort(world);
            return thrown;
        }
        const bool left = npushmemx_world_destroy(world) == 0;
        Status ended = last_failure();
        if (!left) start.ranks->abort(pe, ended.message());  // others may wait for this PE in their ends
        return failed.ok() ? ended : failed;
    }

    int pes_;
    std::map<int, std::map<std::string, std::string>> settings_;  // by PE
    std::deque<Given> given_;
    std::vector<const npushmem_transport_v1*> tables_;
    std::vector<const npushmem_collectives_v1*> collectives_;
};

}  // namespace npushmem::testing
