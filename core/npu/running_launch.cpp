// SPDX-License-Identifier: BSD-3-Clause
#include "core/npu/running_launch.hpp"

#include <fmt/format.h>

#include <boost/context/detail/exception.hpp>
#include <exception>

#include "core/npu/runner.hpp"
#include "core/npu/source_line.hpp"

namespace npushmem::npu::detail {

std::string QueuedLaunch::title() const {
    const std::string place = text_of(config.where);
    if (config.name.empty()) return fmt::format("the kernel launched at {}", place);
    return config.where.line() == 0 ? fmt::format("kernel '{}'", config.name)
                                    : fmt::format("kernel '{}' launched at {}", config.name, place);
}

RunningLaunch::RunningLaunch(const QueuedLaunch& job, const DeviceConfig& device, const Fabric& fabric, CoreSet& cores)
    : job_(job),
      device_(device),
      fabric_(fabric),
      cores_(cores),
      size_(job.config.block_dim * device.vector_cores),
      live_(size_),
      timeout_(job.config.timeout.count() != 0 ? job.config.timeout : device.launch_timeout) {
    const Window window = fabric.window();
    for (int i = 0; i < size_; ++i) prepare(i, window);
}

void RunningLaunch::prepare(int index, const Window& window) {
    CoreContext& context = cores_[index];
    context.run = this;
    context.status = CoreStatus::runnable;
    context.failure = {};
    context.polls = context.polled_version = 0;
    context.idle_polls = 0;
    context.polled = nullptr;
    context.in_wait_loop = context.may_time_out = context.loop_used_up = false;
    context.granted_polls = context.polls_alone = 0;
    context.ended_grants = 0;
    context.where = {};
    context.used_transport = false;
    if (context.remote) context.remote->begin_launch();
    const CorePosition position{index / device_.vector_cores, job_.config.block_dim, index % device_.vector_cores,
                                device_.vector_cores};
    CoreState state{position,
                    cores_.ub(index),
                    window,
                    fabric_.my_pe(),
                    fabric_.n_pes(),
                    &fabric_,
                    fabric_.remote_operations(device_.remote_mode),
                    &context,
                    nullptr,
                    &device_.print};
    context.core.emplace(state);
    const HooksFactory& hooks = job_.config.hooks ? job_.config.hooks : device_.hooks;
    if (!hooks) return;
    context.hooks = hooks(*context.core);
    state.hooks = context.hooks.get();
    context.core.emplace(state);
}

bool RunningLaunch::awaits_peer() {
    for (int i = 0; i < size_; ++i) {
        const CoreStatus status = cores_[i].status;
        if (status == CoreStatus::awaiting_word || status == CoreStatus::awaiting_predicate) return true;
    }
    return false;
}

void RunningLaunch::execute(CoreContext& context) {
    if (!failed()) run_body(context);
    end(context);
}

void RunningLaunch::run_body(CoreContext& context) {
    try {
        if (context.hooks) context.hooks->kernel_begin();
        job_.body->run(*context.core);
        if (context.hooks) context.hooks->kernel_end();
        complete(context);
    } catch (const boost::context::detail::forced_unwind&) {
        throw;
    } catch (const KernelError& error) {
        if (context.hooks) context.hooks->failed(error);
        fail(&context, {error.code(), error.what()});
    } catch (const std::bad_alloc&) {
        fail(&context, {Code::memory, "the kernel ran out of host memory (std::bad_alloc)"});
    } catch (const std::exception& error) {
        fail(&context, {Code::aborted, fmt::format("the kernel threw: {}", error.what())});
    } catch (...) {
        fail(&context, {Code::aborted, "the kernel threw an object that is not a std::exception"});
    }
}

// The end of a kernel completes the operations that it started, as quiet does. Operations on mapped memory are complete
// already. A core that used no transport skips this, so failures of other cores' operations do not reach it.
void RunningLaunch::complete(CoreContext& context) {
    RemoteOperations* const unmapped = fabric_.remote_operations(device_.remote_mode);
    if (unmapped == nullptr || !context.used_transport) return;
    CoreWait wait(context, job_.config.where);
    if (Status done = unmapped->quiet(wait); !done.ok()) throw KernelError(done);
}

void RunningLaunch::end(CoreContext& context) {
    --live_;
    if (arrived_ > 0 && !failed()) fail_barrier(context);
    if (context.hooks) add_findings(context.hooks->launch_ended());
    context.hooks.reset();
}

void RunningLaunch::add_findings(const Status& found) {
    if (found.ok()) return;
    if (!failed()) return fail(nullptr, found);
    failure_ = {failure_.code(), failure_.message() + "; " + found.message()};
}

bool RunningLaunch::arrive(CoreContext& context) {
    if (live_ < size_ && !failed()) fail_barrier(context);
    if (++arrived_ < size_) return false;
    arrived_ = 0;
    ++barriers_passed_;
    return true;
}

void RunningLaunch::fail_barrier(const CoreContext& context) {
    fail(&context,
         {Code::mismatch, fmt::format("core_barrier was reached by {} of {} cores, and {} ended the kernel without "
                                      "calling it; every core must call it equally often",
                                      arrived_, size_, size_ - live_)});
}

void RunningLaunch::fail(const CoreContext* context, const Status& why) {
    if (failed()) return;
    const std::string who = context == nullptr ? std::string{}
                                               : fmt::format(", block {} sub-core {}", context->core->block_index(),
                                                             context->core->sub_core_index());
    failure_ = why.within(fmt::format("{}, on PE {}{}", job_.title(), fabric_.my_pe(), who));
}

}  // namespace npushmem::npu::detail
