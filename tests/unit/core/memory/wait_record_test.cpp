// SPDX-License-Identifier: BSD-3-Clause
#include "core/memory/wait_record.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace npushmem {

namespace {

TEST(WaitRecord, CutsLongTexts) {
    PeWait wait;
    set_text(wait.team, "a name that is longer than the forty bytes of the record");
    EXPECT_EQ(text_of(wait.team), "a name that is longer than the forty by");
    set_text(wait.team, nullptr);
    EXPECT_EQ(text_of(wait.team), "");
    wait.team.fill('x');  // a foreign record without a zero
    EXPECT_EQ(text_of(wait.team).size(), wait.team.size());
}

// The texts and numbers of one wait are never mixed with those of another.
TEST(WaitRecord, AReaderSeesOneWait) {
    constexpr std::int64_t writes = 20000;
    WaitRecord record;
    std::thread writer([&record] {
        for (std::int64_t i = 1; i <= writes; ++i) {
            PeWait wait;
            wait.since = i;
            wait.call_number = static_cast<std::uint64_t>(i);
            wait.call.fill(static_cast<char>(i % 100));
            wait.team.fill(static_cast<char>(i % 100));
            record.write(wait);
        }
    });
    std::int64_t last = 0;
    while (last < writes) {
        const auto read = record.read();
        if (!read) continue;
        EXPECT_GE(read->since, last);
        last = read->since;
        EXPECT_EQ(read->call_number, static_cast<std::uint64_t>(last));
        EXPECT_EQ(read->call.front(), static_cast<char>(last % 100));
        EXPECT_EQ(read->team.back(), static_cast<char>(last % 100));
    }
    writer.join();
    EXPECT_EQ(record.sequence(), 2U * writes);
}

}  // namespace

}  // namespace npushmem
