// SPDX-License-Identifier: BSD-3-Clause
// Start of a job of several ranks, the threads of this process, while the bootstrap of one of them fails: at every call
// in turn, before and after the call has synchronised.
#include <gmock/gmock.h>

#include <array>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <new>
#include <thread>

#include "core/runtime/startup.hpp"
#include "npushmem/testing/fake_bootstrap.hpp"
#include "npushmem/testing/mocks.hpp"
#include "tests/fakes/fake_os.hpp"

namespace npushmem {
namespace {

using ::testing::_;
using ::testing::HasSubstr;
using ::testing::NiceMock;
using ::testing::Return;

constexpr int npes = 3;
constexpr const char* cause = "the cable is cut";

// A rank that fails a call before it synchronises leaves the others waiting. One that fails it afterwards, as if its
// connection broke on the way back, has let them pass. One that has no memory for the call throws.
enum class When { before_call, after_call, without_memory };

struct Fault {
    int rank = -1;
    int call = -1;  // 1: the first of allgather and barrier
    When when = When::before_call;
};

// Counts the calls of one rank and fails one of them.
struct Script {
    Script(std::shared_ptr<fakes::FakeJob> job, int my_rank, const Fault& planned)
        : real(std::move(job), my_rank), fault(planned) {}

    template <class Call>
    Status run(Call call) {
        const bool now = ++calls == fault.call && real.rank() == fault.rank;
        if (now && fault.when == When::before_call) return {Code::system, cause};
        if (now && fault.when == When::without_memory) throw std::bad_alloc();
        Status done = call();
        return now ? Status{Code::system, cause} : done;
    }

    fakes::FakeBootstrap real;
    Fault fault;
    int calls = 0;
    std::vector<std::string> aborts;
};

std::unique_ptr<Bootstrap> scripted(Script& script) {
    auto mock = std::make_unique<NiceMock<MockBootstrap>>();
    ON_CALL(*mock, rank()).WillByDefault(Return(script.real.rank()));
    ON_CALL(*mock, nranks()).WillByDefault(Return(script.real.nranks()));
    ON_CALL(*mock, barrier()).WillByDefault([&script] { return script.run([&] { return script.real.barrier(); }); });
    ON_CALL(*mock, allgather(_, _))
        .WillByDefault([&script](std::span<const std::byte> send, std::span<std::byte> receive) {
            return script.run([&] { return script.real.allgather(send, receive); });
        });
    ON_CALL(*mock, abort(_)).WillByDefault([&script](const std::string& reason) {
        script.aborts.push_back(reason);
        script.real.abort(reason);
    });
    ON_CALL(*mock, check()).WillByDefault([&script] { return script.real.check(); });
    return mock;
}

// Maps a peer's slice at its address in the rank's own mapping of the host's memory.
std::unique_ptr<Transport> mapping_transport() {
    auto mock = std::make_unique<NiceMock<MockTransport>>();
    auto mapping = std::make_shared<std::byte*>(nullptr);
    ON_CALL(*mock, reach(_)).WillByDefault(Return(Reach{NPUSHMEM_CAP_MAP | NPUSHMEM_CAP_PUT, 0, 0, "mapped"}));
    ON_CALL(*mock, devices()).WillByDefault(Return(std::vector<npushmem_device>{}));
    ON_CALL(*mock, address()).WillByDefault(Return(Bytes{}));
    ON_CALL(*mock, connect(_)).WillByDefault(Return(Status{}));
    ON_CALL(*mock, create_queue()).WillByDefault(Return(std::uint64_t{1}));
    ON_CALL(*mock, poll_event(_)).WillByDefault(Return(Code::again));
    ON_CALL(*mock, register_memory(_)).WillByDefault([mapping](const npushmem_memory& memory) {
        *mapping = static_cast<std::byte*>(memory.mapping);
        RegisteredMemory made{5, Bytes(sizeof memory.fd_offset)};
        std::memcpy(made.handle.data(), &memory.fd_offset, sizeof memory.fd_offset);
        return Result<RegisteredMemory>(made);
    });
    ON_CALL(*mock, import_memory(_, _)).WillByDefault([](int, std::span<const std::byte> handle) {
        std::uint64_t offset = 0;
        std::memcpy(&offset, handle.data(), sizeof offset);
        return Result<std::uint64_t>(offset);
    });
    ON_CALL(*mock, map(_)).WillByDefault([mapping](std::uint64_t offset) {
        return Result<void*>(static_cast<void*>(*mapping + offset));
    });
    return mock;
}

class ScriptedSources final : public Sources {
public:
    explicit ScriptedSources(Script& script) : script_(script) {}
    Result<std::unique_ptr<Bootstrap>> open_bootstrap(Config&, const npushmem_host&,
                                                      const npushmem_bootstrap_params&) override {
        return scripted(script_);
    }
    Result<std::vector<OwnedTransport>> open_transports(Config&, const npushmem_host&,
                                                        const npushmem_transport_params&) override {
        std::vector<OwnedTransport> opened;
        opened.push_back({"mock", mapping_transport()});
        return opened;
    }

private:
    Script& script_;
};

struct RankOutcome {
    Status status;
    int calls = 0;
    std::vector<std::string> aborts;
};

Status start_and_finish(Sources& sources) {
    const FakeEnvironment environment{{"NPUSHMEM_SYMMETRIC_SIZE", "1M"}, {"NPUSHMEM_TIMEOUT", "20s"}};
    auto config = Config::read(environment);
    if (!config.ok()) return config.status();
    auto started = start_runtime(std::move(config).value(), sources, {});
    return started.ok() ? started.value()->finish() : started.status();
}

std::array<RankOutcome, npes> run_job(const Fault& fault) {
    auto job = std::make_shared<fakes::FakeJob>(npes);
    std::array<RankOutcome, npes> outcomes;
    std::vector<std::thread> ranks;
    for (int rank = 0; rank < npes; ++rank) {
        ranks.emplace_back([&, rank] {
            Script script(job, rank, fault);
            ScriptedSources sources(script);
            RankOutcome& mine = outcomes[static_cast<std::size_t>(rank)];
            mine.status = start_and_finish(sources);
            mine.calls = script.calls;
            mine.aborts = script.aborts;
        });
    }
    for (auto& each : ranks) each.join();
    return outcomes;
}

// The resources of the process: descriptors, threads, and mappings of shared memory.
struct ProcessResources {
    long descriptors = 0;
    long threads = 0;
    long shared_mappings = 0;

    static long entries(const char* folder) {
        const std::filesystem::directory_iterator all(folder);
        return std::distance(begin(all), end(all));
    }
    static ProcessResources now() {
        ProcessResources found{entries("/proc/self/fd"), entries("/proc/self/task"), 0};
        std::ifstream maps("/proc/self/maps");
        for (std::string line; std::getline(maps, line);)
            found.shared_mappings += line.find("memfd:") != std::string::npos ? 1 : 0;
        return found;
    }
    [[nodiscard]] bool within(const ProcessResources& limit) const {
        return descriptors <= limit.descriptors && threads <= limit.threads && shared_mappings <= limit.shared_mappings;
    }
    // A thread that has been joined stays in the kernel's list for a moment.
    static ProcessResources wait_within(const ProcessResources& limit) {
        const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
        ProcessResources found = now();
        while (!found.within(limit) && std::chrono::steady_clock::now() < until) {
            std::this_thread::yield();
            found = now();
        }
        return found;
    }
};

const char* cause_of(const Fault& fault) {
    return fault.when == When::without_memory ? "cannot allocate private memory" : cause;
}

void expect_failed_start(const std::array<RankOutcome, npes>& outcomes, const Fault& fault) {
    for (int rank = 0; rank < npes; ++rank) {
        const RankOutcome& outcome = outcomes[static_cast<std::size_t>(rank)];
        EXPECT_THAT(outcome.status.message(), HasSubstr("start-up failed at ")) << "rank " << rank;
        EXPECT_THAT(outcome.status.message(), HasSubstr(cause_of(fault))) << "rank " << rank;
    }
    const RankOutcome& broken = outcomes[static_cast<std::size_t>(fault.rank)];
    EXPECT_EQ(broken.calls, fault.call) << "it went on after the failure";
    EXPECT_THAT(broken.aborts, ::testing::ElementsAre(HasSubstr(cause_of(fault))));
}

// A successful job gives the number of calls; the last of them belongs to finish.
int calls_of_a_start() {
    const auto healthy = run_job({});
    for (const auto& outcome : healthy) EXPECT_TRUE(outcome.status.ok()) << outcome.status.message();
    return healthy[0].calls - 1;
}

void fail_each_call_of(int rank, When when) {
    const int calls = calls_of_a_start();
    ASSERT_GE(calls, 5);
    ProcessResources before = ProcessResources::now();  // perhaps with a thread that has been joined
    for (int call = 1; call <= calls; ++call) {
        SCOPED_TRACE(::testing::Message() << "rank " << rank << ", call " << call);
        const Fault fault{rank, call, when};
        expect_failed_start(run_job(fault), fault);
        const ProcessResources after = ProcessResources::wait_within(before);
        EXPECT_LE(after.descriptors, before.descriptors);
        EXPECT_LE(after.threads, before.threads);
        EXPECT_LE(after.shared_mappings, before.shared_mappings);
        before = after;
    }
}

TEST(StartFailures, AllRanksMakeTheSameCalls) {
    const auto healthy = run_job({});
    for (const auto& outcome : healthy) {
        EXPECT_TRUE(outcome.status.ok()) << outcome.status.message();
        EXPECT_EQ(outcome.calls, healthy[0].calls);
        EXPECT_TRUE(outcome.aborts.empty());
    }
}

TEST(StartFailures, EveryCallOfTheFirstRankMayFailBeforeItRuns) { fail_each_call_of(0, When::before_call); }
TEST(StartFailures, EveryCallOfTheLastRankMayFailBeforeItRuns) { fail_each_call_of(npes - 1, When::before_call); }
TEST(StartFailures, EveryCallOfTheFirstRankMayFailAfterItRan) { fail_each_call_of(0, When::after_call); }
TEST(StartFailures, EveryCallOfTheLastRankMayFailAfterItRan) { fail_each_call_of(npes - 1, When::after_call); }
TEST(StartFailures, EveryCallOfARankMayRunOutOfMemory) { fail_each_call_of(1, When::without_memory); }

}  // namespace
}  // namespace npushmem
