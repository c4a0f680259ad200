// SPDX-License-Identifier: BSD-3-Clause
// The kernels of include/npushmem/npu/README.md: each right form passes, and each mistake is reported with the text
// that the page quotes.
#include <algorithm>
#include <fstream>
#include <sstream>

#include "tests/unit/core/npu/check/hazards.hpp"

namespace npushmem::npu {
namespace {

using testing::HasSubstr;

std::string page() {
    std::ifstream file(NPUSHMEM_TEST_DATA_DIR "/../../include/npushmem/npu/README.md");
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
}

// Under the default schedule, the finding exists and the page has its first words.
template <class Kernel>
void expect_reported(Hazard hazard, const test::Setup& setup, const Kernel& kernel) {
    const CheckReport report = test::check(setup, Schedule{}, kernel);
    const auto found = std::ranges::find(report.findings, hazard, &Finding::hazard);
    ASSERT_NE(found, report.findings.end()) << report.text();
    const std::string quoted = id_of(hazard) + ": " + found->detail.substr(0, found->detail.find(": sees"));
    EXPECT_THAT(page(), HasSubstr(quoted));
}

void vector_add(Core& core, std::uint64_t* data, bool flags) {
    auto* numbers = reinterpret_cast<float*>(data);
    const auto a = core.ub_alloc<float>(64);
    const auto b = core.ub_alloc<float>(64);
    core.data_copy(a, gm(numbers, 64), 64);
    core.data_copy(b, gm(numbers + 64, 64), 64);
    if (flags) core.set_flag<Pipe::copy_in, Pipe::vector>(0);
    if (flags) core.wait_flag<Pipe::copy_in, Pipe::vector>(0);
    core.add(a, a, b, 64);
    core.set_flag<Pipe::vector, Pipe::copy_out>(0);
    core.wait_flag<Pipe::vector, Pipe::copy_out>(0);
    core.data_copy(gm(numbers + 128, 64), a, 64);
}

TEST(DocumentedKernels, VectorAdd) {
    test::expect_clean({}, [](Core& core, std::uint64_t* data) { vector_add(core, data, true); });
    expect_reported(Hazard::missing_flag, {}, [](Core& core, std::uint64_t* data) { vector_add(core, data, false); });
}

void send(Core& core, std::uint64_t* data, bool ordered) {
    std::uint64_t* signal = data + 512;
    if (core.my_pe() == 0) {
        if (ordered) return core.put_signal(data, data + 64, 64, signal, 1, 1);
        core.put(data, data + 64, 64, 1);
        return core.signal_set_on(signal, 1, 1);
    }
    core.signal_wait_until(signal, Compare::equal, 1, 0);
    core.dcci(data, 64 * sizeof *data);
    static_cast<void>(core.load(data));
}

TEST(DocumentedKernels, PutWithSignal) {
    const test::Setup two{.pes = 2};
    test::expect_clean(two, [](Core& core, std::uint64_t* data) { send(core, data, true); });
    expect_reported(Hazard::unpublished, two, [](Core& core, std::uint64_t* data) { send(core, data, false); });
}

void my_barrier(Core& core, std::uint64_t* words, bool alternate) {
    const int peer = 1 - core.my_pe();
    for (std::uint64_t round = 1; round <= 2; ++round) {
        std::uint64_t* word = words + (alternate ? round % 2 * 8 : 0);
        core.signal_set_on(word, round, peer);
        core.signal_wait_until(word, Compare::greater_equal, round, peer);
    }
}

TEST(DocumentedKernels, ABarrierWrittenByTheUser) {
    const test::Setup two{.pes = 2};
    test::expect_clean(two, [](Core& core, std::uint64_t* data) { my_barrier(core, data, true); });
    const CheckReport report =
        test::check(two, Schedule{}, [](Core& core, std::uint64_t* data) { my_barrier(core, data, false); });
    EXPECT_FALSE(report.clean()) << report.text();
    EXPECT_THAT(report.text(), HasSubstr("H17 in kernel 'tested': no core can continue:"));
    EXPECT_THAT(page(), HasSubstr("H17: no core can continue:"));
}

}  // namespace
}  // namespace npushmem::npu
