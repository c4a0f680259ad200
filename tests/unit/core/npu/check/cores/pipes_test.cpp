// SPDX-License-Identifier: BSD-3-Clause
// The order in which queued commands run.
#include "core/npu/check/cores/pipes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace npushmem::npu::check {
namespace {

using testing::ElementsAre;

struct CommandQueuesTest : testing::Test {
    void push(Pipe pipe, const std::string& name) {
        queues.push(pipe, [this, name] { ran.push_back(name); });
    }

    CommandQueues queues;
    std::vector<std::string> ran;
};

TEST_F(CommandQueuesTest, RunsTheOldestCommandOfAllPipesFirst) {
    push(Pipe::copy_out, "out");
    push(Pipe::copy_in, "in");
    push(Pipe::copy_out, "out again");
    queues.run_all();
    EXPECT_THAT(ran, ElementsAre("out", "in", "out again"));
    EXPECT_FALSE(queues.run_oldest());
}

TEST_F(CommandQueuesTest, RunsOnePipeUpToATicket) {
    push(Pipe::copy_in, "first");
    const CommandQueues::Ticket first = queues.last();
    push(Pipe::copy_out, "other pipe");
    push(Pipe::copy_in, "second");
    queues.run_until(Pipe::copy_in, first);
    EXPECT_THAT(ran, ElementsAre("first"));
    queues.run_pipe(Pipe::copy_in);
    EXPECT_THAT(ran, ElementsAre("first", "second"));
}

TEST_F(CommandQueuesTest, APipeThatWaitsRunsTheAwaitedCommandsFirst) {
    push(Pipe::copy_in, "awaited");
    const CommandQueues::Ticket flag = queues.last();
    push(Pipe::copy_in, "after the flag");
    queues.push_wait(Pipe::vector, Pipe::copy_in, flag);
    push(Pipe::vector, "waits");
    queues.run_pipe(Pipe::vector);
    EXPECT_THAT(ran, ElementsAre("awaited", "waits"));
}

}  // namespace
}  // namespace npushmem::npu::check
