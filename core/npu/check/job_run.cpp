#include "core/npu/check/job_run.hpp"

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

// All that runs is in the ring.
class NoWork final : public detail::WorkSource {
public:
    [[nodiscard]] bool has_work() const override { return false; }
    bool adopt() override { return false; }
    [[nodiscard]] bool stopping() const override { return false; }
};

// Never asked: the scheduler sees to it that somebody can go on.
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
    control.attach(*domain_, parts.check && !launch.config.hooks, [this] { deadlock(); });
    for (std::size_t pe = 0; pe < pes_.size(); ++pe) add_pe(parts, launch, static_cast<int>(pe));
}

JobRun::~JobRun() = default;

void JobRun::add_pe(JobParts& parts, const JobLaunch& launch, int number) {
    const auto at = static_cast<std::size_t>(number);
    Pe& pe = pes_[at];
    pe.device = parts.device;
    pe.device.hooks = {};
    if (parts.check)
        pe.device.hooks = [this, &pe](Core& core) {
            const detail::UbRegion ub{core.ub_at<std::byte>(0, 0).data(), core.ub_free(), pe.device.ub_reserved};
            return std::make_unique<CoreChecker>(domain_, core, ub, [&pe, index = core.index()] {
                CoreContext& self = pe.run->core(index);
                self.runner->reschedule(self);
            });
        };
    LaunchConfig config = launch.config;
    config.block_dim = launch.blocks[at];
    pe.job = std::make_unique<detail::LaunchJob>(
        detail::LaunchJob{std::move(config), std::make_unique<SharedKernel>(launch.kernel)});
    pe.run = std::make_unique<detail::LaunchRun>(*pe.job, pe.device, *parts.fabrics[at], *parts.cores[at]);
}

void JobRun::run() {
    NoWaiting waiting;
    NoWork source;
    detail::Runner runner(waiting, source, &control_);
    for (std::size_t pe = 0; pe < pes_.size(); ++pe) runner.add(*pes_[pe].run, *cores_[pe]);
    runner.run([](const detail::LaunchRun&) {});
}

Status JobRun::status() const {
    for (const Pe& pe : pes_) {
        if (!pe.run->failure().ok()) return pe.run->failure();
    }
    return {};
}

std::string JobRun::describe(const CoreContext& core) const {
    const std::string who = fmt::format("PE {} core {}", core.core->my_pe(), core.core->index());
    switch (core.status) {
        case CoreStatus::awaiting_cores: return fmt::format("{} waits in core_barrier ({})", who, text_of(core.where));
        case CoreStatus::polling: return fmt::format("{} polls memory that nobody changes any more", who);
        case CoreStatus::runnable: return fmt::format("{} could go on", who);
        // In a job of one process every PE is mapped.
        case CoreStatus::awaiting_event: return fmt::format("{} waits for a transport ({})", who, text_of(core.where));
        case CoreStatus::awaiting_word: break;
    }
    const Access writer = domain_->memory().writer_of(number_of(core.condition.word));
    const FindingSide last = domain_->side_of(writer);
    const std::string written = writer.exists() ? fmt::format("last written by PE {} core {} with {} at {}", last.pe,
                                                              last.core, last.what, text_of(last.where))
                                                : std::string("never written in this launch");
    const std::string from = core.condition.pe < 0 ? "" : fmt::format(" from PE {}", core.condition.pe);
    return fmt::format("{} waits{} at {} for {} {} in {}, which is {}, {}", who, from, text_of(core.where),
                       name_of(core.condition.compare), core.condition.value,
                       domain_->names().name_of(number_of(core.condition.word)),
                       __atomic_load_n(core.condition.word, __ATOMIC_RELAXED), written);
}

// The wait graph: every core that has not ended, and what it waits for.
void JobRun::deadlock() {
    const Status cause = status();
    for (Pe& pe : pes_) {
        if (!cause.ok() && pe.run->live() > 0) pe.run->fail(nullptr, cause.within("another PE failed"));
    }
    if (!cause.ok()) return;
    std::string graph = "nobody can go on:";
    const CoreContext* first = nullptr;
    for (Pe& pe : pes_) {
        for (int i = 0; i < pe.run->size(); ++i) {
            const CoreContext& core = pe.run->core(i);
            if (core.next == nullptr) continue;
            if (first == nullptr ||
                (first->status != CoreStatus::awaiting_word && core.status == CoreStatus::awaiting_word))
                first = &core;
            graph += "\n    " + describe(core);
        }
    }
    const FindingSide here{first->core->my_pe(), first->core->index(), Pipe::scalar, "the wait", first->where};
    const Access writer = first->status == CoreStatus::awaiting_word
                              ? domain_->memory().writer_of(number_of(first->condition.word))
                              : Access{};
    domain_->report(Hazard::deadlock, here, writer, "", graph);
    for (Pe& pe : pes_) {
        if (pe.run->live() > 0) pe.run->fail(nullptr, {Code::timeout, graph + " [" + id_of(Hazard::deadlock) + "]"});
    }
}

}  // namespace npushmem::npu::check
