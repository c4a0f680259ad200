// SPDX-License-Identifier: BSD-3-Clause
// The functions of an MPI, looked up in the process. One source for each library includes this file, after that
// library's mpi.h. Everything is in an unnamed namespace, because the types differ between libraries.
#pragma once

#include <dlfcn.h>
#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <thread>

#include "bootstrap/mpi/mpi_library.hpp"
#include "core/base/parse.hpp"

namespace npushmem::mpi {
namespace {

struct Calls {
    decltype(&MPI_Init_thread) init_thread = nullptr;
    decltype(&MPI_Finalize) finalize = nullptr;
    decltype(&MPI_Comm_rank) comm_rank = nullptr;
    decltype(&MPI_Comm_size) comm_size = nullptr;
    decltype(&MPI_Comm_test_inter) comm_test_inter = nullptr;
    decltype(&MPI_Comm_get_errhandler) comm_get_errhandler = nullptr;
    decltype(&MPI_Comm_set_errhandler) comm_set_errhandler = nullptr;
    decltype(&MPI_Errhandler_free) errhandler_free = nullptr;
    decltype(&MPI_Ibcast) ibcast = nullptr;
    decltype(&MPI_Test) test = nullptr;
    MPI_Comm world{};
    MPI_Comm self{};
    MPI_Comm null{};
    MPI_Errhandler errors_return{};
    MPI_Datatype byte{};
};

template <class Function>
bool look_up(const char* name, Function& into) {
    into = reinterpret_cast<Function>(::dlsym(RTLD_DEFAULT, name));
    return into != nullptr;
}

inline Result<Calls> find_calls() {
    Calls calls;
    const bool all = look_up("MPI_Init_thread", calls.init_thread) && look_up("MPI_Finalize", calls.finalize) &&
                     look_up("MPI_Comm_rank", calls.comm_rank) && look_up("MPI_Comm_size", calls.comm_size) &&
                     look_up("MPI_Comm_test_inter", calls.comm_test_inter) &&
                     look_up("MPI_Comm_get_errhandler", calls.comm_get_errhandler) &&
                     look_up("MPI_Comm_set_errhandler", calls.comm_set_errhandler) &&
                     look_up("MPI_Errhandler_free", calls.errhandler_free) && look_up("MPI_Ibcast", calls.ibcast) &&
                     look_up("MPI_Test", calls.test);
    if (!all) return Status{Code::unsupported, "the MPI library in this process lacks a function of MPI 3"};
    return calls;
}

// MPI reports a communicator that it does not know on MPI_COMM_WORLD (MPI 3) or MPI_COMM_SELF (MPI 4), whose usual
// error handler ends the program. While this object lives, such a call returns its error.
class ReturnedErrors {
public:
    explicit ReturnedErrors(const Calls& calls) : calls_(calls) {
        for (std::size_t i = 0; i < handlers_.size(); ++i) {
            kept_[i] = calls_.comm_get_errhandler(communicators_[i], &handlers_[i]) == MPI_SUCCESS;
            if (kept_[i]) (void)calls_.comm_set_errhandler(communicators_[i], calls_.errors_return);
        }
    }
    ReturnedErrors(const ReturnedErrors&) = delete;
    ReturnedErrors& operator=(const ReturnedErrors&) = delete;
    ~ReturnedErrors() {
        for (std::size_t i = 0; i < handlers_.size(); ++i) {
            if (!kept_[i]) continue;
            (void)calls_.comm_set_errhandler(communicators_[i], handlers_[i]);
            (void)calls_.errhandler_free(&handlers_[i]);
        }
    }

private:
    const Calls& calls_;
    std::array<MPI_Comm, 2> communicators_{calls_.world, calls_.self};
    std::array<MPI_Errhandler, 2> handlers_{};
    std::array<bool, 2> kept_{};
};

class Communicator final : public launcher::Launcher {
public:
    Communicator(const Calls& calls, MPI_Comm communicator, int rank, int nranks)
        : calls_(calls), communicator_(communicator), rank_(rank), nranks_(nranks) {}

    [[nodiscard]] int rank() const override { return rank_; }
    [[nodiscard]] int nranks() const override { return nranks_; }

    Result<std::string> broadcast(const std::string& message, launcher::Deadline deadline) override {
        auto buffer = std::make_unique<Buffer>();
        message.copy(buffer->data(), buffer->size() - 1);
        MPI_Request request{};
        const int begun =
            calls_.ibcast(buffer->data(), static_cast<int>(buffer->size()), calls_.byte, 0, communicator_, &request);
        if (begun != MPI_SUCCESS) return Status{Code::system, fmt::format("MPI_Ibcast failed with error {}", begun)};
        Status done = await(request, deadline);
        if (done.ok()) return std::string(buffer->data());
        // MPI may still write there: a broadcast cannot be cancelled.
        (void)buffer.release();
        return done;
    }

private:
    using Buffer = std::array<char, launcher::start_message_characters + 1>;

    // MPI makes progress only inside its functions.
    Status await(MPI_Request& request, launcher::Deadline deadline) const {
        for (;;) {
            int done = 0;
            const int tested = calls_.test(&request, &done, MPI_STATUS_IGNORE);
            if (tested != MPI_SUCCESS) return {Code::system, fmt::format("MPI_Test failed with error {}", tested)};
            if (done != 0) return {};
            if (deadline.passed())
                return {Code::timeout, fmt::format("not every rank of the communicator called npushmem's start within "
                                                   "{}",
                                                   format_duration(deadline.span()))};
            std::this_thread::yield();
        }
    }

    Calls calls_;
    MPI_Comm communicator_;
    int rank_;
    int nranks_;
};

class LookedUpMpiLibrary final : public MpiLibrary {
public:
    explicit LookedUpMpiLibrary(const Calls& calls) : calls_(calls) {}

    Result<std::unique_ptr<launcher::Launcher>> communicator(const void* handle) override {
        const MPI_Comm communicator = handle != nullptr ? *static_cast<const MPI_Comm*>(handle) : calls_.world;
        if (Status usable = check(communicator); !usable.ok()) return usable;
        int rank = -1;
        int nranks = -1;
        if (calls_.comm_rank(communicator, &rank) != MPI_SUCCESS ||
            calls_.comm_size(communicator, &nranks) != MPI_SUCCESS)
            return unknown();
        return std::unique_ptr<launcher::Launcher>(std::make_unique<Communicator>(calls_, communicator, rank, nranks));
    }
    Status init() override {
        // Threads of npushmem may call MPI's collectives.
        int provided = 0;
        const int done = calls_.init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided);
        return done == MPI_SUCCESS ? Status{}
                                   : Status{Code::system, fmt::format("MPI_Init_thread failed with error {}", done)};
    }
    void finalize() override { (void)calls_.finalize(); }

private:
    static Status unknown() {
        return {Code::argument,
                "the attribute does not point to a communicator that MPI knows; was the communicator freed?"};
    }
    Status check(MPI_Comm communicator) const {
        if (communicator == calls_.null)
            return {Code::argument,
                    "the attribute points to MPI_COMM_NULL: this process is not a rank of the communicator, or the "
                    "communicator was freed; only its ranks may start npushmem"};
        const ReturnedErrors errors(calls_);
        int between_groups = 0;
        if (calls_.comm_test_inter(communicator, &between_groups) != MPI_SUCCESS) return unknown();
        if (between_groups == 0) return {};
        return {Code::argument,
                "the attribute points to an intercommunicator, which has two groups of ranks; make one group of them "
                "by MPI_Intercomm_merge"};
    }

    Calls calls_;
};

}  // namespace
}  // namespace npushmem::mpi
