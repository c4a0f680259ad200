// SPDX-License-Identifier: BSD-3-Clause
#include "core/npu/check/job/job_run.hpp"

#include <fmt/format.h>

#include <chrono>

namespace npushmem::npu::check {
namespace {

using detail::CoreContext;
using detail::CoreStatus;

class SharedKernel final : public detail::KernelBody {
public:
    explicit SharedKernel(const std::function<void(Core&)>& kernel) : kernel_(kernel) {}
    void run(Core& core) const override { kernel_(core); }

private:
    const std::function<void(Core&)>& kernel_;
};

// All launches are in the ring from the beginning.
class NoWork final : public detail::WorkSource {
public:
    [[nodiscard]] bool has_work() const override { return false; }
    bool adopt() override { return false; }
    [[nodiscard]] bool stopping() const override { return false; }
};

// Never called: the scheduler makes sure that a core can continue.
class NoWaiting final : public WaitPolicy {
public:
    Code until(const std::function<bool()>& ready, std::chrono::nanoseconds) override {
        return ready() ? Code::ok : Code::timeout;
    }
    void pause(std::uint64_t) override {}
};

}  // namespace

JobRun::JobRun(JobParts& parts, const JobLaunch& launch, JobControl& control)
    : control_(control),
      domain_(std::make_shared<Domain>(control, *parts.heap,
                                       launch.config.name.empty()
                                           ? "the kernel launched at " + text_of(launch.config.where)
                                           : "kernel '" + launch.config.name + "'")),
      pes_(parts.fabrics.size()),
      cores_(parts.cores) {
    // Hooks of the launch take the place of the checker's.
    const bool watched = parts.check && !launch.config.hooks;
    JobControl::Ends ends{[this] { deadlock(); }, {}, {}, [this] { abandon(); }};
    if (watched) ends.on_deadline = [this] { on_deadline(); };
    ends.on_step_limit = [this](std::uint64_t steps) {
        fail_all(fmt::format("the launch has not ended within {} steps", steps));
    };
    control.attach(*domain_, watched, std::move(ends));
    for (std::size_t pe = 0; pe < pes_.size(); ++pe) add_pe(parts, launch, static_cast<int>(pe));
    if (!watched) return;
    watched_ = parts.watchdog->watch(pes_.front().run->timeout(), [this](double limit) {
        return domain_->calls.describe_stuck(pes_.front().job->title(), limit);
    });
}

JobRun::~JobRun() = default;

void JobRun::add_pe(JobParts& parts, const JobLaunch& launch, int number) {
    const auto at = static_cast<std::size_t>(number);
    Pe& pe = pes_[at];
    pe.device = parts.device;
    pe.device.hooks = {};
    if (parts.check && pe.device.launch_timeout.count() == 0) pe.device.launch_timeout = checked_launch_timeout;
    if (parts.check)
        pe.device.hooks = [this, &pe](Core& core) {
            const detail::UbRegion ub{core.ub_at<std::byte>(0, 0).data(), core.ub_free(), pe.device.ub_reserved};
            return std::make_unique<CoreChecker>(domain_, core, ub);
        };
    LaunchConfig config = launch.config;
    config.block_dim = launch.blocks[at];
    pe.job = std::make_unique<detail::QueuedLaunch>(
        detail::QueuedLaunch{std::move(config), std::make_unique<SharedKernel>(launch.kernel), 0});
    pe.run = std::make_unique<detail::RunningLaunch>(*pe.job, pe.device, *parts.fabrics[at], *parts.cores[at]);
}

void JobRun::run() {
    NoWaiting waiting;
    NoWork source;
    detail::Runner runner(waiting, source, &control_);
    for (std::size_t pe = 0; pe < pes_.size(); ++pe) runner.add(*pes_[pe].run, *cores_[pe]);
    runner.run([](const detail::RunningLaunch&) {});
}

Status JobRun::status() const {
    if (abandoned_) return {};
    for (const Pe& pe : pes_) {
        if (!pe.run->failure().ok()) return pe.run->failure();
    }
    return {};
}

std::string JobRun::describe(const CoreContext& core) const {
    const std::string who = fmt::format("PE {} core {}", core.core->my_pe(), core.core->index());
    switch (core.status) {
        case CoreStatus::awaiting_core_barrier:
            return fmt::format("{} waits in core_barrier ({})", who, text_of(core.where));
        case CoreStatus::polling: {
            const std::string word = core.polled == nullptr ? "" : ": " + describe_word(core.polled, core.polled_value);
            return fmt::format("{} polls memory that nobody changes any more ({}){}", who, text_of(core.where), word);
        }
        case CoreStatus::runnable: return fmt::format("{} could continue ({})", who, text_of(core.where));
        // In a job of one process every PE is mapped.
        case CoreStatus::awaiting_predicate:
            return fmt::format("{} waits for a transport ({})", who, text_of(core.where));
        case CoreStatus::awaiting_word: break;
    }
    const std::string from = core.condition.from.pe < 0 ? "" : fmt::format(" from PE {}", core.condition.from.pe);
    return fmt::format("{} waits{} at {} for {} {} in {}", who, from, text_of(core.where),
                       name_of(core.condition.compare), core.condition.value,
                       describe_word(core.condition.word, word_in_memory(number_of(core.condition.word))));
}

std::string JobRun::describe_word(const void* address, std::uint64_t value) const {
    const Access writer = domain_->memory.writer_of(number_of(address));
    const FindingSide last = domain_->findings.side_of(writer);
    const std::string written = writer.exists() ? fmt::format("last written by PE {} core {} with {} at {}", last.pe,
                                                              last.core, last.what, text_of(last.where))
                                                : std::string("never written in this launch");
    return fmt::format("{}, which is {}, {}", domain_->names.name_of(number_of(address)), value, written);
}

bool JobRun::time_out_wait() {
    CoreContext* first = nullptr;
    for (Pe& pe : pes_)
        for (int i = 0; i < pe.run->size(); ++i)
            if (CoreContext& core = pe.run->core(i);
                core.next != nullptr && core.may_time_out && (first == nullptr || core.timeout < first->timeout))
                first = &core;
    if (first != nullptr) detail::time_out(*first);
    return first != nullptr;
}

void JobRun::deadlock() {
    const Status cause = status();
    if (cause.ok() && time_out_wait()) return;
    for (Pe& pe : pes_) {
        if (!cause.ok() && pe.run->live() > 0) pe.run->fail(nullptr, cause.within("another PE failed"));
    }
    if (cause.ok()) fail_all("no core can continue");
}

void JobRun::abandon() {
    abandoned_ = true;
    for (Pe& pe : pes_)
        if (pe.run->live() > 0) pe.run->fail(nullptr, {Code::aborted, "the run repeats others"});
}

void JobRun::on_deadline() {
    const std::chrono::duration<double> limit = pes_.front().run->timeout();
    fail_all(fmt::format("the launch has not ended within its deadline of {} s", limit.count()));
}

const CoreContext* JobRun::first_waiting() {
    const auto rank = [](const CoreContext& core) {
        if (core.status == CoreStatus::awaiting_word) return 3;
        return core.status == CoreStatus::polling ? 2 : 1;
    };
    const CoreContext* first = nullptr;
    for (Pe& pe : pes_) {
        for (int i = 0; i < pe.run->size(); ++i) {
            const CoreContext& core = pe.run->core(i);
            if (core.next != nullptr && (first == nullptr || rank(core) > rank(*first))) first = &core;
        }
    }
    return first;
}

void JobRun::record_waiting(const CoreContext& core) {
    const bool awaits = core.status == CoreStatus::awaiting_word;
    domain_->events.record_waiting(core.core->my_pe(), core.core->index(), core.where,
                                   awaits ? core.condition.word : core.polled, awaits ? core.condition.value : 0);
}

void JobRun::fail_all(const std::string& why) {
    std::string graph = why + ":";
    for (Pe& pe : pes_)
        for (int i = 0; i < pe.run->size(); ++i)
            if (const CoreContext& core = pe.run->core(i); core.next != nullptr) {
                graph += "\n    " + describe(core);
                record_waiting(core);
            }
    const CoreContext* first = first_waiting();
    const bool awaits = first->status == CoreStatus::awaiting_word;
    const void* word = awaits ? first->condition.word : first->polled;
    const Access writer = word != nullptr ? domain_->memory.writer_of(number_of(word)) : Access{};
    domain_->findings.report(
        Hazard::deadlock,
        {first->core->my_pe(), first->core->index(), Pipe::scalar, awaits ? "the wait" : "the loop", first->where},
        writer, "", graph);
    for (Pe& pe : pes_) {
        if (pe.run->live() > 0) pe.run->fail(nullptr, {Code::timeout, graph + " [" + id_of(Hazard::deadlock) + "]"});
    }
}

}  // namespace npushmem::npu::check
