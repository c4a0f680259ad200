// SPDX-License-Identifier: BSD-3-Clause
#include "core/moe/common/staged_sums.hpp"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "bench/moe/payload.hpp"
#include "npushmem/npu/checked_job.hpp"
#include "npushmem/npu/launch.hpp"
#include "tests/unit/core/moe/typed_element.hpp"

namespace npushmem::moe {
namespace {

// Sums of 0, 1, 2 and 5 rows, computed by each core of a checked job, and by the plain reduction.
class StagedCase {
public:
    static constexpr std::size_t sums = 4;
    static constexpr std::size_t all_rows = 8;

    StagedCase(ElementType input, ElementType output, std::size_t columns)
        : input_(input), output_(output), columns_(columns) {
        npu::CheckedJobConfig config{.pes = 1, .heap_bytes = 1 << 22};
        config.device.blocks = 2;
        config.device.vector_cores = 1;
        job_ = npu::CheckedJob::create(config).value();
        x_ = job_->allocate<std::byte>(all_rows * row());
        out_ = job_->allocate<std::byte>(2 * sums * out_row());
        for (std::size_t i = 0; i < all_rows; ++i)
            for (std::size_t c = 0; c < columns; ++c)
                write_element(input, job_->at(0, x_) + i * row() + c * element_bytes(input), value(i, c));
    }

    std::string check() {
        const Reduction reduction{nullptr, {columns_, 0}, true, input_, output_};
        npu::LaunchConfig launch(2);
        const npu::CheckReport report = job_->run(launch, [&](npu::Core& core) {
            staged_sums(
                core, reduction, 0, sums, [&](std::uint64_t sum, WeightedRows& rows) { gather(sum, rows); },
                [&](std::uint64_t sum) { return out(core.index(), sum); });
        });
        return report.clean() ? "" : report.text();
    }
    // Of a core's sum.
    [[nodiscard]] bool is_equal(int core, std::size_t sum) {
        WeightedRows rows;
        gather(sum, rows);
        std::vector<std::byte> expected(out_row());
        best_reduce(input_, output_)(expected.data(), rows.rows.data(), rows.weights.data(), rows.count, {columns_, 0},
                                     {});
        return std::memcmp(out(core, sum), expected.data(), out_row()) == 0;
    }

private:
    [[nodiscard]] std::size_t row() const { return columns_ * element_bytes(input_); }
    [[nodiscard]] std::size_t out_row() const { return columns_ * element_bytes(output_); }
    [[nodiscard]] std::byte* out(int core, std::size_t sum) {
        return job_->at(0, out_) + (static_cast<std::size_t>(core) * sums + sum) * out_row();
    }
    static float value(std::size_t row, std::size_t column) {
        if (column == 3) return row % 2 == 0 ? std::numeric_limits<float>::infinity() : -0.0F;
        if (column == 5) return -0.0F;
        const bool is_nan = row == 0 || row == 2 || row == 5;  // one in each sum
        if (column == 6 && is_nan) return std::bit_cast<float>(0x7FC12345U + static_cast<std::uint32_t>(row));
        if (column == 7) return 1e-7F;
        return random_value(row_seed({3, 0, static_cast<std::uint32_t>(row), 7}), column);
    }
    void gather(std::size_t sum, WeightedRows& rows) {
        constexpr std::array<std::size_t, sums + 1> first{0, 0, 1, 3, 8};
        for (std::size_t i = first.at(sum); i < first.at(sum + 1); ++i)
            rows.add(job_->at(0, x_) + i * row(), 0.1F + 0.37F * static_cast<float>(i));
    }

    ElementType input_;
    ElementType output_;
    std::size_t columns_;
    std::unique_ptr<npu::CheckedJob> job_;
    std::byte* x_ = nullptr;
    std::byte* out_ = nullptr;
};

TEST(StagedSums, GiveTheBitsOfTheReductionAndNoHazard) {
    for (const ElementType input : {ElementType::bfloat16, ElementType::half, ElementType::float32}) {
        for (const ElementType output : {ElementType::bfloat16, ElementType::half, ElementType::float32}) {
            for (const std::size_t columns : {1U, 17U, 64U, 1000U, 4096U, 8191U}) {
                SCOPED_TRACE(::testing::Message() << name_of(input) << " to " << name_of(output) << ", " << columns);
                StagedCase sums(input, output, columns);
                ASSERT_EQ(sums.check(), "");
                for (int core = 0; core < 2; ++core)
                    for (std::size_t sum = 0; sum < StagedCase::sums; ++sum)
                        EXPECT_TRUE(sums.is_equal(core, sum)) << "core " << core << ", sum " << sum;
            }
        }
    }
}

TEST(StagedSums, WithoutSumsNoCopyRuns) {
    npu::CheckedJobConfig config{.pes = 1, .heap_bytes = 1 << 16};
    auto job = npu::CheckedJob::create(config).value();
    const Reduction reduction{nullptr, {8, 0}, true, ElementType::float32, ElementType::float32};
    const npu::CheckReport report = job->run(npu::LaunchConfig(1), [&](npu::Core& core) {
        staged_sums(
            core, reduction, 2, 2, [](std::uint64_t, WeightedRows&) { FAIL(); },
            [](std::uint64_t) -> std::byte* { return nullptr; });
    });
    EXPECT_TRUE(report.clean()) << report.text();
}

}  // namespace
}  // namespace npushmem::moe
