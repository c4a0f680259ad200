// SPDX-License-Identifier: BSD-3-Clause
// The packing sender in checked mode: no finding, and every byte, under every schedule; and a finding if another core
// reads a region before its flag is set.
#include <gmock/gmock.h>

#include <algorithm>

#include "bench/moe/pack_sender.hpp"
#include "npushmem/npu/checked_job.hpp"
#include "tests/unit/bench/moe/pack_case.hpp"

namespace npushmem::moe {

namespace {

using npu::CheckedJob;
using npu::CheckReport;
using npu::Hazard;
using npu::Schedule;

// All data in the checked job's memory, so that every access is watched.
class CheckedPack {
public:
    CheckedPack(const PackShape& shape, const char* schedule) : pack_(shape) {
        npu::CheckedJobConfig config{.pes = 1, .heap_bytes = 4 << 20, .schedule = Schedule::parse(schedule).value()};
        config.device.blocks = 2;
        config.device.launch_timeout = std::chrono::seconds(60);
        job_ = CheckedJob::create(config).value();
        arguments_ = pack_.arguments();
        tx_ = place(pack_.tx);
        arguments_.tx_buffer = tx_;
        arguments_.x = place(pack_.x);
        arguments_.ordered = place(pack_.ordered);
        arguments_.packed = packed_ = place(pack_.packed);
        arguments_.tables.offsets = place(pack_.offsets);
        arguments_.tables.lengths = place(pack_.lengths);
    }

    CheckReport run(const CheckedJob::Kernel& kernel) {
        npu::LaunchConfig launch(1);
        launch.name = "pack";
        return job_->run(launch, kernel);
    }
    [[nodiscard]] const PackArguments& arguments() const { return arguments_; }
    std::string wrong() {
        std::copy_n(tx_, pack_.tx.size(), pack_.tx.begin());
        std::copy_n(packed_, pack_.packed.size(), pack_.packed.begin());
        return pack_.wrong();
    }

private:
    template <class T>
    T* place(const std::vector<T>& values) {
        T* there = job_->allocate<T>(values.size() + 1);
        std::ranges::copy(values, there);
        return there;
    }

    PackCase pack_;
    std::unique_ptr<CheckedJob> job_;
    PackArguments arguments_;
    std::byte* tx_ = nullptr;
    std::uint64_t* packed_ = nullptr;
};

// Rows enough to use each buffer again and again.
constexpr PackShape odd{.ranks = 2, .experts = 2, .row = 2000, .most = 120, .empty = 0};
constexpr PackShape whole{.ranks = 2, .experts = 2, .row = 2048, .most = 120, .empty = 0};
constexpr PackShape tiny{.ranks = 2, .experts = 3, .row = 14};

void expect_clean(const PackShape& shape, const char* schedule, void (*kernel)(npu::Core&, const PackArguments&)) {
    CheckedPack pack(shape, schedule);
    const CheckReport report = pack.run([&](npu::Core& core) { kernel(core, pack.arguments()); });
    EXPECT_TRUE(report.status.ok() && report.findings.empty()) << report.text();
    EXPECT_EQ(pack.wrong(), "") << schedule;
}

TEST(CheckedPack, BothPlansAreCleanUnderEverySchedule) {
    for (const PackShape& shape : {odd, whole, tiny}) {
        for (const char* schedule : {"eager", "lazy", "random:1", "random:2", "random:3"}) {
            expect_clean(shape, schedule, pack_rows);
            expect_clean(shape, schedule, reorder_rows);
        }
    }
    expect_clean(tiny, "explore", pack_rows);
}

// Core 1 copies the first rank's region somewhere, with and without waiting for its flag.
CheckReport read_region(bool waits) {
    CheckedPack pack({.ranks = 1, .experts = 3, .row = 64, .empty = 0}, "lazy");
    return pack.run([&, waits](npu::Core& core) {
        const PackArguments& work = pack.arguments();
        if (core.index() == 0) return pack_rows(core, work);
        if (waits) core.signal_wait_until(work.packed, npu::Compare::equal, work.call);
        const auto buffer = core.ub_alloc<std::byte>(64);
        core.data_copy(buffer, npu::gm<const std::byte>(work.tx_buffer, 64), 64);
    });
}

TEST(CheckedPack, IsCleanOnlyIfTheReaderWaitsForTheFlagOfARegion) {
    const CheckReport right = read_region(true);
    EXPECT_TRUE(right.status.ok() && right.findings.empty()) << right.text();
    const CheckReport wrong = read_region(false);
    EXPECT_TRUE(std::ranges::any_of(wrong.findings, [](const npu::Finding& finding) {
        return finding.hazard == Hazard::dma_race;
    })) << wrong.text();
}

}  // namespace

}  // namespace npushmem::moe
