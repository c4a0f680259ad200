// SPDX-License-Identifier: BSD-3-Clause
// With hooks, the same kernel source describes every operation to them, and they decide when it runs.
#include "npushmem/npu/hooks.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "npushmem/testing/array_fabric.hpp"

namespace npushmem::npu {
namespace {

using fakes::ArrayPe;
using fakes::SymmetricArray;

using Trace = std::vector<std::string>;

// Records all operations. Like a lazy device, runs commands only at a flag, a barrier, quiet or the kernel's end.
class LazyTrace final : public CoreHooks {
public:
    explicit LazyTrace(Trace& trace) : trace_(trace) {}

    void issue(const Command& command, std::function<void()> run) override {
        note(std::string(command.name) + "@" + std::string(name_of(command.pipe)));
        queue_.push_back(std::move(run));
    }
    void set_flag(Pipe, Pipe, int id, Where) override { note("set" + std::to_string(id)); }
    void wait_flag(Pipe, Pipe, int id, Where) override {
        note("wait" + std::to_string(id));
        drain();
    }
    void pipe_barrier(Pipe pipe, Where) override {
        note("barrier " + std::string(name_of(pipe)));
        drain();
    }
    void load(const void* address, void* value, std::size_t bytes, Where) override {
        note("load");
        std::memcpy(value, address, bytes);
    }
    void store(void* address, const void* value, std::size_t bytes, Where) override {
        note("store");
        std::memcpy(address, value, bytes);
    }
    void dcci(const void*, std::size_t, Where) override { note("dcci"); }
    void quiet(Where) override {
        note("quiet");
        drain();
    }
    void fence(Where) override { note("fence"); }
    void signal(const Signal& signal, Where) override {
        note(signal.add ? "add" : "signal");
        *signal.word = signal.add ? *signal.word + signal.value : signal.value;
    }
    void before_atomic(const void*, std::size_t, Where) override { note("atomic"); }
    void after_atomic(const AtomicResult&, Where) override { note("atomic done"); }
    void before_wait() override { note("wait"); }
    void after_wait(const void*, std::uint64_t seen, Where) override { note("saw " + std::to_string(seen)); }
    void enter_core_barrier(Where) override { note("arrive"); }
    void leave_core_barrier() override { note("leave"); }
    void ub_allocated(std::size_t offset, std::size_t bytes, bool placed, Where) override {
        note((placed ? "ub at " : "ub ") + std::to_string(offset) + "+" + std::to_string(bytes));
    }
    void ub_released(std::size_t mark) override { note("release " + std::to_string(mark)); }
    void atomic_mode(bool on, Where) override { note(on ? "atomic on" : "atomic off"); }
    void barrier_begin(const BarrierDescriptor&, Where) override { note("barrier begins"); }
    void barrier_observed(std::uint64_t, const BarrierDescriptor&, int, Where) override { note("barrier saw"); }
    void failed(const KernelError&) override { note("failed"); }
    void kernel_begin() override { note("begin"); }
    void kernel_end() override {
        note("end");
        drain();
    }

private:
    void note(std::string what) { trace_.push_back(std::move(what)); }
    void drain() {
        for (auto& run : queue_) run();
        queue_.clear();
    }

    Trace& trace_;
    std::vector<std::function<void()>> queue_;
};

TEST(Hooks, SeeEveryOperationAndDecideWhenItRuns) {
    SymmetricArray array(1, 4096);
    Trace trace;
    DeviceConfig config{.blocks = 1, .vector_cores = 1};
    config.hooks = [&](Core&) { return std::make_unique<LazyTrace>(trace); };
    const ArrayPe pe(array, 0, config);
    auto* values = array.at<float>(0);
    auto* word = array.at<std::uint64_t>(0, 1024);
    std::fill_n(values, 8, 1.0F);
    const Status status = pe.run(1, [&](Core& core) {
        const auto a = core.ub_alloc<float>(8);
        core.data_copy(a, gm(values, 8), 8);
        core.set_flag<Pipe::copy_in, Pipe::vector>(1);
        core.wait_flag<Pipe::copy_in, Pipe::vector>(1);
        core.add(a, a, a, 8);
        core.pipe_barrier<Pipe::all>();
        core.data_copy_pad(gm(values, 8), a, PadShape{.block_bytes = 4});
        EXPECT_EQ(core.get(a, 0), 2.0F);
        EXPECT_EQ(values[0], 1.0F);
        core.quiet();
        EXPECT_EQ(values[0], 2.0F);
        core.put_signal(values + 8, values, 2, word, 5, 0);
        core.signal_wait_until(word, Compare::equal, 5);
        core.store(values + 100, 1.0F);
        core.dcci(values);
        core.core_barrier();
        core.atomic_fetch_add(word, 1);
        core.signal_add(word, 1);
        core.set_atomic_add<float>();
        core.clear_atomic();
        static_cast<void>(core.ub_at<float>(64, 8));
        core.ub_release(0);
    });
    EXPECT_EQ(*word, 7U);
    EXPECT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(values[9], 1.0F);
    EXPECT_THAT(trace,
                testing::ElementsAre("begin", "ub 0+32", "data_copy@MTE2", "set1", "wait1", "add@V", "barrier all",
                                     "data_copy_pad@MTE3", "load", "quiet", "put@MTE3", "fence", "signal", "saw 5",
                                     "store", "dcci", "arrive", "leave", "atomic", "atomic done", "add", "atomic on",
                                     "atomic off", "ub at 64+32", "release 0", "end"));
}

}  // namespace
}  // namespace npushmem::npu
