// SPDX-License-Identifier: BSD-3-Clause
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "npushmem/npu/checked_job.hpp"
#include "npushmem/npu/npu.hpp"
#include "npushmem/testing/array_fabric.hpp"
#include "tests/fakes/dead_pe.hpp"

namespace npushmem::npu {
namespace {

// Under the thread sanitizer each core of each run costs a thread context: a millisecond instead of a microsecond.
// These tests run on one thread, so the sanitizer gains little from more cores.
#if defined(__SANITIZE_THREAD__)
inline constexpr bool cores_are_costly = true;
#else
inline constexpr bool cores_are_costly = false;
#endif

using testing::HasSubstr;

using Barrier = std::function<void(Core&, const TeamView&, BarrierState*)>;

std::vector<std::pair<std::string, Barrier>> barriers() {
    std::vector<std::pair<std::string, Barrier>> all;
    for (const char* text : {"v1", "v2:2", "v2:3", "v2:4", "v2:5", "v2:6", "v2:7", "v2:8", "v3", "auto"}) {
        const BarrierChoice choice = BarrierChoice::parse(text).value();
        all.emplace_back(text, [choice](Core& core, const TeamView& team, BarrierState* state) {
            barrier_with_choice(core, choice, team, state);
        });
    }
    all.emplace_back("partial", [](Core& core, const TeamView& team, BarrierState* state) {
        std::vector<int> pes(static_cast<std::size_t>(team.size));
        for (int i = 0; i < team.size; ++i) pes[static_cast<std::size_t>(i)] = team.pe(team.size - 1 - i);
        barrier_partial(core, pes, state);
    });
    return all;
}

struct Case {
    int pes;
    int cores;
    TeamView team;
    const char* schedule = "eager";
    bool check = false;
    std::uint64_t before = 0;  // generation at the start
};

// Runs some rounds of one barrier; violations appear in the report.
class Rounds {
public:
    explicit Rounds(const Case& wanted) : case_(wanted) {
        CheckedJobConfig config{.pes = wanted.pes, .heap_bytes = 4 * sizeof(BarrierState), .check = wanted.check};
        config.schedule = Schedule::parse(wanted.schedule).value();
        config.device.blocks = wanted.cores;
        config.device.vector_cores = 1;
        config.device.stack_bytes = 64 * 1024;
        job_ = CheckedJob::create(config).value();
        state_ = job_->allocate<BarrierState>(1);
        data_ = job_->allocate<std::uint64_t>(16);
        for (int pe = 0; pe < wanted.pes; ++pe) {
            BarrierState* state = job_->at(pe, state_);
            state->generation.word = state->arrival.word = wanted.before;
            for (BarrierLine& slot : state->slots) slot.word = wanted.before;
        }
    }

    CheckReport run(const Barrier& barrier, int rounds) {
        const int cores = case_.team.size * case_.cores;
        std::vector<int> entered;
        job_->before_each([&] { entered.assign(static_cast<std::size_t>(rounds), 0); });
        return job_->run(case_.cores, [&, cores](Core& core) {
            if (case_.team.index_of(core.my_pe()) < 0) return;
            for (int round = 0; round < rounds; ++round) {
                ++entered[static_cast<std::size_t>(round)];
                write(core, round);
                barrier(core, case_.team, job_->at(core.my_pe(), state_));
                if (entered[static_cast<std::size_t>(round)] != cores) throw std::runtime_error("left too early");
                if (core.index() == 0) read(core, round);
            }
        });
    }

private:
    [[nodiscard]] std::uint64_t* word(Core& core, int round) const {
        return job_->at(core.my_pe(), data_) + round % 2 * 8;
    }
    void write(Core& core, int round) const {
        if (core.index() == core.count() - 1) core.store(word(core, round), static_cast<std::uint64_t>(round) + 1);
    }
    void read(Core& core, int round) const {
        for (int i = 0; i < case_.team.size; ++i) {
            std::uint64_t* there = core.remote(word(core, round), case_.team.pe(i));
            core.dcci(there);
            if (core.load(there) != static_cast<std::uint64_t>(round) + 1) throw std::runtime_error("not visible");
        }
    }

    Case case_;
    std::unique_ptr<CheckedJob> job_;
    BarrierState* state_;
    std::uint64_t* data_;
};

// Tests the barriers in `names`; empty: all.
void expect_pass(const std::vector<std::string>& names, const Case& wanted, int rounds) {
    for (const auto& [name, barrier] : barriers()) {
        if (cores_are_costly && name != "v1" && name != "v2:3" && name != "v3") continue;
        if (!names.empty() && std::ranges::count(names, name) == 0) continue;
        const CheckReport report = Rounds(wanted).run(barrier, rounds);
        ASSERT_TRUE(report.clean()) << name << ", " << wanted.pes << " PEs, " << wanted.cores
                                    << " cores: " << report.text();
    }
}

void expect_all_pass(const Case& wanted, int rounds = 3) { expect_pass({}, wanted, rounds); }

TEST(BarrierMatrix, SizesAndCores) {
    for (int n = 1; n <= (cores_are_costly ? 5 : 17); ++n) {
        for (int cores : {1, 2, 7, 9}) {
            if (!cores_are_costly || cores <= 2) expect_all_pass({n, cores, {0, 1, n}});
        }
    }
    if (cores_are_costly) return;
    for (int n : {31, 32, 33, 64}) expect_all_pass({n, 2, {0, 1, n}});
    for (int n : {2, 5, 9}) {
        for (int cores : {8, 40}) expect_all_pass({n, cores, {0, 1, n}});
    }
}

// Many PEs and many cores add rounds that are not full, and launches with fewer or more cores than a round has signals.
TEST(BarrierMatrix, ManyPesOnManyCores) {
    if (cores_are_costly) GTEST_SKIP() << "too many cores for this sanitizer";
    const std::vector<std::string> forms{"v1", "v2:3", "v2:8", "v3"};
    for (int n : {31, 32, 33}) expect_pass(forms, {n, 7, {0, 1, n}}, 2);
    for (int cores : {1, 8, 9}) expect_pass(forms, {64, cores, {0, 1, 64}}, 2);
    for (int n : {1, 8, 17}) expect_pass(forms, {n, 40, {0, 1, n}}, 2);
    expect_pass({"v2:8", "v3"}, {64, 40, {0, 1, 64}}, 2);
}

TEST(BarrierMatrix, TeamsWithStartAndStride) {
    for (const TeamView& team : {TeamView{1, 3, 3}, TeamView{8, -2, 4}, TeamView{4, 1, 1}, TeamView{2, 1, 7}}) {
        expect_all_pass({9, 2, team});
    }
}

TEST(BarrierMatrix, GenerationsNearEveryOverflow) {
    for (int bits : {31, 32, 63}) expect_all_pass({5, 2, {0, 1, 5}, "eager", false, (1ULL << bits) - 2}, 5);
}

TEST(BarrierMatrix, CheckedUnderEveryScheduleKind) {
    for (const char* schedule : {"eager", "lazy", "random:1", "random:2", "random:3"}) {
        for (int n : {1, 2, 5, 9}) {
            if (!cores_are_costly || n <= 2) expect_all_pass({n, 3, {0, 1, n}, schedule, true}, 4);
        }
    }
}

TEST(BarrierMatrix, CheckedUnderEverySchedule) {
    expect_all_pass({2, cores_are_costly ? 1 : 2, {0, 1, 2}, "explore", true}, 2);
    if (!cores_are_costly) expect_all_pass({4, 2, {0, 1, 4}, "explore", true}, 2);
}

// Overlapping and nested teams run one after the other, each with its own state. Another team then uses one state
// again.
TEST(BarrierMatrix, OverlappingNestedAndRecreatedTeams) {
    for (const auto& [name, barrier] : barriers()) {
        const auto job = CheckedJob::create({.pes = 6, .schedule = Schedule::parse("random:9").value()}).value();
        BarrierState* states = job->allocate<BarrierState>(3);
        const TeamView teams[]{{0, 1, 6}, {1, 2, 3}, {2, 1, 3}, {0, 1, 6}};
        const CheckReport report = job->run(1, [&, barrier = barrier](Core& core) {
            BarrierState* mine = job->at(core.my_pe(), states);
            for (int round = 0; round < 3; ++round) {
                for (int i = 0; i < 4; ++i) {
                    if (teams[i].index_of(core.my_pe()) >= 0) barrier(core, teams[i], mine + i % 3);
                }
            }
        });
        EXPECT_TRUE(report.clean()) << name << " " << report.text();
        // A new team uses the second team's state after its members have zeroed it.
        for (int pe = 0; pe < 6; ++pe) *job->at(pe, states + 1) = {};
        const CheckReport again = job->run(1, [&, barrier = barrier](Core& core) {
            for (int round = 0; round < 3; ++round) barrier(core, {0, 1, 6}, job->at(core.my_pe(), states) + 1);
        });
        EXPECT_TRUE(again.clean()) << name << " " << again.text();
    }
}

TEST(BarrierAcrossServers, SynchronisesWithFewSignalsBetweenServers) {
    for (const char* schedule : {"eager", "lazy", "random:3", "explore"}) {
        if (cores_are_costly && std::string_view(schedule) == "explore") continue;
        for (const auto& [pes, per_server] : std::vector<std::pair<int, int>>{{4, 2}, {6, 3}, {6, 1}, {4, 4}}) {
            CheckedJobConfig config{.pes = pes, .schedule = Schedule::parse(schedule).value()};
            config.schedule.max_schedules = 300;
            const auto job = CheckedJob::create(config).value();
            auto* state = job->allocate<ServerBarrierState>(1);
            int entered = 0;
            job->before_each([&] { entered = 0; });
            const CheckReport report = job->run(1, [&, pes = pes, per_server = per_server](Core& core) {
                for (int round = 1; round <= 2; ++round) {
                    ++entered;
                    barrier_servers(core, {0, 1, pes}, per_server, job->at(core.my_pe(), state));
                    if (entered < round * pes * core.count()) throw std::runtime_error("left too early");
                }
            });
            EXPECT_TRUE(report.clean()) << pes << " PEs by " << per_server << ": " << report.text();
        }
    }
}

TEST(BarrierAcrossServers, RejectsPartialServers) {
    const auto job = CheckedJob::create({.pes = 3}).value();
    auto* state = job->allocate<ServerBarrierState>(1);
    for (int per_server : {-1, 0, 2}) {
        const CheckReport report = job->run(1, [&](Core& core) {
            sync_servers(core, {0, 1, 3}, per_server, job->at(core.my_pe(), state));
        });
        EXPECT_EQ(report.status.code(), Code::argument) << report.text();
    }
}

TEST(BarrierTraffic, MatchesTheAlgorithms) {
    const auto traffic = [](const char* name, int pes) {
        const auto job = CheckedJob::create({.pes = pes, .schedule = {.kind = Schedule::Kind::eager}}).value();
        auto* state = job->allocate<BarrierState>(1);
        const BarrierChoice choice = BarrierChoice::parse(name).value();
        const CheckReport report = job->run(2, [&](Core& core) {
            sync_with_choice(core, choice, {0, 1, pes}, job->at(core.my_pe(), state));
        });
        EXPECT_TRUE(report.clean()) << report.text();
        const auto members = static_cast<std::uint64_t>(pes);
        return std::pair{report.remote_signals / members, report.remote_waits / members};
    };
    // ceil(log2 8) writes; k - 1 writes in a full round of radix k; n - 1 reads.
    EXPECT_EQ(traffic("v1", 8), (std::pair<std::uint64_t, std::uint64_t>{3, 0}));
    EXPECT_EQ(traffic("v2:8", 8), (std::pair<std::uint64_t, std::uint64_t>{7, 0}));
    EXPECT_EQ(traffic("v2:3", 9), (std::pair<std::uint64_t, std::uint64_t>{4, 0}));
    EXPECT_EQ(traffic("v3", 8), (std::pair<std::uint64_t, std::uint64_t>{0, 7}));
}

TEST(BarrierChoices, ParseResolveAndReject) {
    EXPECT_EQ(BarrierChoice::parse("v2:4").value().radix, 4);
    EXPECT_EQ(BarrierChoice::parse("v2").value().radix, 8);
    EXPECT_EQ(BarrierChoice::parse("v1").value().resolved(64).variant, BarrierVariant::v1);
    EXPECT_EQ(BarrierChoice::parse("auto").value().resolved(8).variant, BarrierVariant::v3);
    EXPECT_EQ(BarrierChoice::parse("auto").value().resolved(64).variant, BarrierVariant::v2);
    for (const char* text : {"", "v4", "v2:", "v2:1", "v2:9", "v2:x", "v1:2", "auto:2"}) {
        const auto parsed = BarrierChoice::parse(text);
        EXPECT_EQ(parsed.status().code(), Code::config) << text;
        EXPECT_THAT(parsed.status().message(), HasSubstr("must be v1, v2, v2:<radix, 2 to 8>, v3 or auto"));
    }
}

TEST(BarrierErrors, RadixAndMembership) {
    const auto job = CheckedJob::create({.pes = 2}).value();
    BarrierState* state = job->allocate<BarrierState>(1);
    for (int radix : {-1, 0, 1, 9}) {
        const CheckReport report = job->run(1, [&](Core& core) {
            sync_v2(core, {0, 1, 2}, job->at(core.my_pe(), state), radix);
        });
        EXPECT_EQ(report.status.code(), Code::range);
        EXPECT_THAT(report.status.message(), HasSubstr("must be 2 to 8"));
    }
    const int others[]{1};
    const CheckReport stranger = job->run(1, [&](Core& core) {
        if (core.my_pe() == 0) sync_partial(core, others, job->at(0, state));
    });
    EXPECT_EQ(stranger.status.code(), Code::argument);
}

using testing::HasSubstr;

// The rounds that each core has entered, in symmetric memory, so that an exploration knows who reads and writes them.
struct RoundLog {
    struct alignas(64) Word {
        std::uint64_t entered;
    };

    Word* words;  // by round and core of this PE

    void enter(Core& core, int round) const { core.signal_set(&words[round * core.count() + core.index()].entered, 1); }
    void leave(Core& core, int round) const {
        int entered = 0;
        for (int pe = 0; pe < core.n_pes(); ++pe)
            for (int i = 0; i < core.count(); ++i)
                if (core.signal_fetch_on(&words[round * core.count() + i].entered, pe) != 0) ++entered;
        const int cores = core.n_pes() * core.count();
        if (entered == cores) return;
        throw KernelError(Code::protocol, "left round " + std::to_string(round) + " when " + std::to_string(entered) +
                                              " of " + std::to_string(cores) + " cores had entered it");
    }
};

CheckReport explore(int pes, int cores, const Barrier& barrier, const char* schedule, int rounds = 1) {
    CheckedJobConfig config{.pes = pes, .heap_bytes = 2 * sizeof(BarrierState) + 4096};
    config.schedule = Schedule::parse(schedule).value();
    config.device.blocks = cores;
    config.device.vector_cores = 1;
    config.device.stack_bytes = 64 * 1024;
    const auto job = CheckedJob::create(config).value();
    auto* state = job->allocate<BarrierState>(1);
    auto* words = job->allocate<RoundLog::Word>(static_cast<std::size_t>(cores * rounds));
    return job->run(cores, [&](Core& core) {
        const TeamView team{0, 1, pes};
        const RoundLog log{job->at(core.my_pe(), words)};
        for (int round = 0; round < rounds; ++round) {
            log.enter(core, round);
            barrier(core, team, job->at(core.my_pe(), state));
            log.leave(core, round);
        }
    });
}

// Incorrect v2 without the core barrier between rounds: each core passes on only its own j.
void v2_without_join(Core& core, const TeamView& team, BarrierState* state, int radix) {
    const int mine = team.index_of(core.my_pe());
    const int j = core.index() + 1;
    core.core_barrier();
    std::size_t slot = 0;
    for (int shift = 1; shift < team.size; shift *= radix, slot += static_cast<std::size_t>(radix - 1)) {
        if (j >= radix || j * shift >= team.size) continue;
        std::uint64_t* word = &state->slots[slot + static_cast<std::size_t>(j - 1)].word;
        core.signal_set_on(word, 1, team.pe((mine + j * shift) % team.size));
        core.signal_wait_until(word, Compare::greater_equal, 1);
    }
    core.core_barrier();
}

// Incorrect v3 without the last core barrier: a core leaves when its own members have arrived.
void v3_without_trailing(Core& core, const TeamView& team, BarrierState* state) {
    core.core_barrier();
    if (core.index() == 0) core.signal_set(&state->arrival.word, 1);
    for (int i = core.index(); i < team.size; i += core.count()) {
        if (team.pe(i) == core.my_pe()) continue;
        core.signal_wait_until(&core.remote(state, team.pe(i))->arrival.word, Compare::greater_equal, 1);
    }
}

TEST(BrokenBarriers, V2WithoutCoreBarrierBetweenRoundsIsCaught) {
    const Barrier broken = [](Core& core, const TeamView& team, BarrierState* state) {
        v2_without_join(core, team, state, 3);
    };
    // Small teams pass, because each member receives a direct signal from every other.
    const CheckReport direct = explore(3, 2, broken, "explore");
    EXPECT_TRUE(direct.status.ok()) << direct.text();
    const CheckReport report = explore(6, 2, broken, "explore");
    EXPECT_EQ(report.status.code(), Code::protocol) << report.text();
    EXPECT_THAT(report.text(), HasSubstr("of 12 cores had entered it"));
    EXPECT_THAT(report.schedule, HasSubstr("replay:"));
}

TEST(BrokenBarriers, V3WithoutLastCoreBarrierIsCaught) {
    const CheckReport report = explore(3, 2, v3_without_trailing, "explore");
    EXPECT_EQ(report.status.code(), Code::protocol) << report.text();
    EXPECT_THAT(report.text(), HasSubstr("of 6 cores had entered it"));
}

const std::vector<std::pair<const char*, Barrier>>& library_barriers() {
    static const std::vector<std::pair<const char*, Barrier>> all{
        {"v1", [](Core& core, const TeamView& team, BarrierState* state) { barrier_v1(core, team, state); }},
        {"v2:3", [](Core& core, const TeamView& team, BarrierState* state) { barrier_v2(core, team, state, 3); }},
        {"v2:8", [](Core& core, const TeamView& team, BarrierState* state) { sync_v2(core, team, state); }},
        {"v3", [](Core& core, const TeamView& team, BarrierState* state) { sync_v3(core, team, state); }}};
    return all;
}

TEST(LibraryBarriers, PassUnderEverySchedule) {
    for (const auto& [name, barrier] : library_barriers()) {
        for (const auto& [pes, cores] : std::vector<std::pair<int, int>>{{2, 1}, {3, 2}, {4, 2}}) {
            if (cores_are_costly && pes > 2) continue;
            for (const int rounds : {1, 2}) {
                const CheckReport report = explore(pes, cores, barrier, "explore", rounds);
                EXPECT_TRUE(report.clean() && report.complete) << name << " " << report.text();
            }
        }
    }
}

TEST(LibraryBarriers, PassUnderSchedulesWithOneDeviationAndDrawnOnes) {
    for (const auto& [name, barrier] : library_barriers()) {
        const CheckReport one = explore(cores_are_costly ? 2 : 3, cores_are_costly ? 1 : 2, barrier, "explore:1", 2);
        EXPECT_TRUE(one.clean() && one.complete) << name << " " << one.text();
        EXPECT_GT(one.schedules, 10U);
        for (const char* schedule : {"eager", "lazy", "random:5", "random:6", "random:7"}) {
            const CheckReport report = explore(cores_are_costly ? 3 : 9, 3, barrier, schedule, 5);
            EXPECT_TRUE(report.clean()) << name << " " << report.text();
        }
    }
}

// PE 0 of this team waits for another member than the dead one first; that member may have ended its call because of
// the death, and then no signal comes.
TEST(BarrierDeaths, TheDeathOfAMemberEndsTheWaitForAnother) {
    fakes::SymmetricArray array(5, sizeof(BarrierState));
    const fakes::ArrayFabric fabric(array, 0);
    auto* const state = array.at<BarrierState>(0);
    const auto run = [&](const Barrier& barrier, const TeamView& team) {
        fakes::DeadPe waiting(2);
        DeviceConfig config;
        config.blocks = config.vector_cores = 1;
        config.wait_timeout = std::chrono::milliseconds(50);
        const auto device = Device::create(config, fabric, waiting).value();
        std::memset(static_cast<void*>(state), 0, sizeof *state);
        EXPECT_TRUE(launch(device->default_stream(), 1, [&](Core& core) { barrier(core, team, state); }).ok());
        return device->synchronize();
    };
    for (const auto& [name, barrier] : barriers()) {
        const Status needs_it = run(barrier, {0, 1, 5});
        EXPECT_EQ(needs_it.code(), Code::peer_dead) << name << ": " << needs_it.message();
        EXPECT_THAT(needs_it.message(), HasSubstr("PE 2 has died")) << name;
        const Status without_it = run(barrier, {0, 3, 2});
        EXPECT_EQ(without_it.code(), Code::timeout) << name << ": " << without_it.message();
    }
}

}  // namespace
}  // namespace npushmem::npu
