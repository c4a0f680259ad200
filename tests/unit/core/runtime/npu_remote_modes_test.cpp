// The emulated NPU's two ways to PEs that are not mapped: kernels find the same by both.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/runtime/npu_direct.hpp"
#include "core/runtime/npu_proxied.hpp"
#include "core/runtime/remote_mode.hpp"
#include "tests/fakes/fake_slices.hpp"

namespace npushmem {
namespace {

using fakes::ArrayPe;
using fakes::FakeFabric;
using npu::Core;
using npu::RemoteMode;
using ::testing::HasSubstr;

SliceAddressing addressing_of(fakes::SymmetricArray& array) {
    return {[&array](const void* address) {
                const auto offset =
                    reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(array.base(0));
                return offset < array.part() ? offset : npu::RemoteOperations::no_offset;
            },
            [&array](std::uint64_t offset) { return array.part() - offset; }};
}

// PE 0 of three.
class NpuRemoteModes : public ::testing::TestWithParam<RemoteMode> {
protected:
    NpuRemoteModes() {
        if (GetParam() == RemoteMode::proxy)
            remote = std::make_unique<NpuProxied>(addressing_of(array), *slices.peers, WaitBudget{}, os);
        else
            remote = std::make_unique<NpuDirect>(addressing_of(array), *slices.peers, array.pes());
        pe.emplace(array, 0, npu::DeviceConfig{.blocks = 4, .vector_cores = 1});
        pe->fabric.unmap_others(*remote);
    }
    Status run(const npu::LaunchConfig& config, const std::function<void(Core&)>& kernel) const {
        return pe->run(config, kernel);
    }

    fakes::SymmetricArray array{3, 4096};
    std::uint64_t* mine = array.at<std::uint64_t>(0);
    std::uint64_t* theirs = array.at<std::uint64_t>(1);
    fakes::FakeSlices slices{array, FakeFabric::Delivery::at_once};
    SystemWaitOs os;
    std::unique_ptr<npu::RemoteOperations> remote;
    std::optional<ArrayPe> pe;  // after what its cores keep
};

TEST_P(NpuRemoteModes, EveryOperationArrives) {
    theirs[20] = 5;
    auto* narrow = reinterpret_cast<std::int32_t*>(mine + 40);
    const Status status = run(1, [&](Core& core) {
        mine[0] = 11;
        core.put(mine + 8, mine, 1, 1);
        mine[0] = 12;
        for (std::size_t i = 0; i < 100; ++i) mine[100 + i] = i;
        core.put(mine + 100, mine + 100, 100, 1);  // more than travels with a request
        core.get(mine + 16, mine + 20, 1, 1);
        EXPECT_EQ(mine[16], 5U);
        core.signal_set_on(mine + 24, 7, 1);
        core.signal_add_on(mine + 24, 2, 1);
        EXPECT_EQ(core.signal_fetch_on(mine + 24, 1), 9U);
        core.put_signal(mine + 9, mine, 1, mine + 32, 3, 1);
        core.fence();
        EXPECT_EQ(core.atomic_fetch_add_on(mine + 24, 1, 1), 9U);
        EXPECT_EQ(core.atomic_swap_on(mine + 24, 100, 1), 10U);
        EXPECT_EQ(core.atomic_compare_swap_on(mine + 24, 100, 200, 1), 100U);
        EXPECT_EQ(core.atomic_fetch_add_on(narrow, -3, 1), 0);
        EXPECT_EQ(core.atomic_fetch_add_on(narrow, 1, 1), -3);
        core.put(mine + 8, mine, 1, 2);
        core.quiet();
        EXPECT_EQ(array.at<std::uint64_t>(2)[8], 12U);
    });
    EXPECT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(theirs[8], 11U);
    EXPECT_EQ(theirs[9], 12U);
    EXPECT_EQ(theirs[199], 99U);
    EXPECT_EQ(theirs[24], 200U);
    EXPECT_EQ(theirs[32], 3U);
}

TEST_P(NpuRemoteModes, ManyCoresAtOnceAndMoreThanMayBeUnfinished) {
    constexpr std::uint64_t rounds = 500;
    const Status status = run(4, [&](Core& core) {
        const auto at = static_cast<std::size_t>(core.index());
        for (std::uint64_t i = 1; i <= rounds; ++i) {
            mine[8 + at] = i;
            core.put(mine + 8 + at, mine + 8 + at, 1, 1);
            core.signal_add_on(mine + 30, 1, 1 + static_cast<int>(i % 2));
        }
        core.core_barrier();
        if (at == 0) core.quiet();
        core.core_barrier();
        EXPECT_EQ(theirs[8 + at], rounds) << "the quiet of one core is for all";
    });
    EXPECT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(theirs[30] + array.at<std::uint64_t>(2)[30], 4 * rounds);
}

TEST_P(NpuRemoteModes, ErrorsAreReportedToTheCallingCore) {
    const Status beyond = run(1, [&](Core& core) { core.put(mine + 500, mine, 20, 1); });
    EXPECT_EQ(beyond.code(), Code::range);
    EXPECT_THAT(beyond.message(), HasSubstr("reach beyond symmetric memory"));
    std::uint64_t local = 0;
    const Status elsewhere = run(1, [&](Core& core) { core.signal_set_on(&local, 1, 1); });
    EXPECT_EQ(elsewhere.code(), Code::not_symmetric);
    EXPECT_TRUE(run(1, [&](Core& core) { core.put(mine + 8, mine, 1, 1); }).ok());
}

INSTANTIATE_TEST_SUITE_P(All, NpuRemoteModes, ::testing::Values(RemoteMode::proxy, RemoteMode::direct),
                         [](const auto& way) { return way.param == RemoteMode::proxy ? "proxy" : "direct"; });

}  // namespace
}  // namespace npushmem
