// The calls of an MPI, looked up in the process. Included by one source for each library, after that library's mpi.h:
// everything is in an unnamed namespace, because the same names mean other types there.
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
    decltype(&MPI_Init) init = nullptr;
    decltype(&MPI_Finalize) finalize = nullptr;
    decltype(&MPI_Comm_rank) comm_rank = nullptr;
    decltype(&MPI_Comm_size) comm_size = nullptr;
    decltype(&MPI_Ibcast) ibcast = nullptr;
    decltype(&MPI_Test) test = nullptr;
    MPI_Comm world{};
    MPI_Datatype byte{};
};

template <class Function>
bool look_up(const char* name, Function& into) {
    into = reinterpret_cast<Function>(::dlsym(RTLD_DEFAULT, name));
    return into != nullptr;
}

inline Result<Calls> find_calls() {
    Calls calls;
    const bool all = look_up("MPI_Init", calls.init) && look_up("MPI_Finalize", calls.finalize) &&
                     look_up("MPI_Comm_rank", calls.comm_rank) && look_up("MPI_Comm_size", calls.comm_size) &&
                     look_up("MPI_Ibcast", calls.ibcast) && look_up("MPI_Test", calls.test);
    if (!all) return Status{Code::unsupported, "the MPI library in this process lacks a function of MPI 3"};
    return calls;
}

class Communicator final : public launcher::Launcher {
public:
    Communicator(const Calls& calls, MPI_Comm communicator, int rank, int nranks)
        : calls_(calls), communicator_(communicator), rank_(rank), nranks_(nranks) {}

    [[nodiscard]] int rank() const override { return rank_; }
    [[nodiscard]] int nranks() const override { return nranks_; }

    Result<std::string> share(const std::string& note, launcher::Deadline deadline) override {
        auto buffer = std::make_unique<Buffer>();
        note.copy(buffer->data(), buffer->size() - 1);
        MPI_Request request{};
        const int begun =
            calls_.ibcast(buffer->data(), static_cast<int>(buffer->size()), calls_.byte, 0, communicator_, &request);
        if (begun != MPI_SUCCESS) return Status{Code::system, fmt::format("MPI_Ibcast failed with error {}", begun)};
        Status done = await(request, deadline);
        if (done.ok()) return std::string(buffer->data());
        // MPI may still write there: a broadcast cannot be taken back.
        (void)buffer.release();
        return done;
    }

private:
    using Buffer = std::array<char, launcher::note_characters + 1>;

    // MPI makes progress in its calls only.
    Status await(MPI_Request& request, launcher::Deadline deadline) const {
        for (;;) {
            int done = 0;
            const int tested = calls_.test(&request, &done, MPI_STATUS_IGNORE);
            if (tested != MPI_SUCCESS) return {Code::system, fmt::format("MPI_Test failed with error {}", tested)};
            if (done != 0) return {};
            if (deadline.passed())
                return {Code::timeout, fmt::format("not every rank of the communicator came to npushmem's start within "
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

class LibraryOfCalls final : public MpiLibrary {
public:
    explicit LibraryOfCalls(const Calls& calls) : calls_(calls) {}

    Result<std::unique_ptr<launcher::Launcher>> communicator(const void* handle) override {
        const MPI_Comm communicator = handle != nullptr ? *static_cast<const MPI_Comm*>(handle) : calls_.world;
        int rank = -1;
        int nranks = -1;
        if (calls_.comm_rank(communicator, &rank) != MPI_SUCCESS ||
            calls_.comm_size(communicator, &nranks) != MPI_SUCCESS)
            return Status{Code::argument, "the attribute is no pointer to a communicator that MPI knows"};
        return std::unique_ptr<launcher::Launcher>(std::make_unique<Communicator>(calls_, communicator, rank, nranks));
    }
    Status init() override {
        const int done = calls_.init(nullptr, nullptr);
        return done == MPI_SUCCESS ? Status{}
                                   : Status{Code::system, fmt::format("MPI_Init failed with error {}", done)};
    }
    void finalize() override { (void)calls_.finalize(); }

private:
    Calls calls_;
};

}  // namespace
}  // namespace npushmem::mpi
