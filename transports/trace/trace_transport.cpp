// SPDX-License-Identifier: BSD-3-Clause
#include "transports/trace/trace_transport.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/base/parse.hpp"

namespace npushmem::trace {

void CallStats::add(Code code, std::uint64_t bytes, std::chrono::nanoseconds duration) {
    calls_.fetch_add(1, std::memory_order_relaxed);
    nanoseconds_.fetch_add(duration.count(), std::memory_order_relaxed);
    if (code == Code::ok)
        bytes_.fetch_add(bytes, std::memory_order_relaxed);
    else if (code == Code::again)
        again_.fetch_add(1, std::memory_order_relaxed);
    else
        failed_.fetch_add(1, std::memory_order_relaxed);
}

std::string CallStats::summary(std::string_view function) const {
    const std::chrono::nanoseconds total(nanoseconds_.load(std::memory_order_relaxed));
    const auto each = calls() == 0 ? total : total / static_cast<std::int64_t>(calls());
    std::string out = fmt::format("{}: {} {}", function, calls(), calls() == 1 ? "call" : "calls");
    if (bytes() > 0) out += ", " + format_size(bytes());
    out += fmt::format(", {}, {} each", format_duration(total), format_duration(each));
    if (again() > 0) out += fmt::format(", {} times 'again'", again());
    if (failed() > 0) out += fmt::format(", {} failed", failed());
    return out;
}

}  // namespace npushmem::trace

namespace npushmem {
namespace {

using Clock = std::chrono::steady_clock;

Code code_of(Code code) { return code; }
Code code_of(const Status& status) { return status.code(); }
template <class T>
Code code_of(const Result<T>& result) {
    return result.ok() ? Code::ok : result.status().code();
}

constexpr std::array<const char*, NPUSHMEM_ATOMIC_COUNT> atomic_names{
    "fetch", "set",          "add",       "and",       "or",       "xor",
    "swap",  "compare_swap", "fetch_add", "fetch_and", "fetch_or", "fetch_xor"};

std::string text_of_rma(std::uint64_t queue, const npushmem_rma& op) {
    return fmt::format("queue {}, pe {}, memory {} + {}, {} bytes", queue, op.pe, op.remote, op.offset, op.bytes);
}

std::string text_of_atomic(std::uint64_t queue, const npushmem_atomic& op) {
    const char* name = op.operation < atomic_names.size() ? atomic_names[op.operation] : "?";
    return fmt::format("queue {}, pe {}, {} {} on memory {} + {}, {} bits", queue, op.pe, name, op.operand, op.remote,
                       op.offset, op.width * 8);
}

}  // namespace

Result<std::unique_ptr<Transport>> TraceTransport::open(const Host& host, const npushmem_transport_params& params) {
    if (Status s = check_inner(params); !s.ok()) return s;
    const auto each_call = parse_bool(host.config("TRACE_CALLS", "true"));
    if (!each_call.ok()) return each_call.status().within("NPUSHMEM_TRACE_CALLS");
    return std::unique_ptr<Transport>(std::make_unique<TraceTransport>(host, params, each_call.value()));
}

TraceTransport::TraceTransport(const Host& host, const npushmem_transport_params& params, bool each_call)
    : DecoratorTransport(params, NPUSHMEM_CAP_MAP), host_(host), pe_(params.pe), each_call_(each_call) {
    if (each_call_)
        host_.log(LogLevel::trace,
                  fmt::format("pe {}: open(pe {} of {}, number {} of {} on this host, process {}) -> ok", pe_, pe_,
                              params.npes, params.local_index, params.local_count, params.process_id));
}

TraceTransport::~TraceTransport() {
    if (each_call_) host_.log(LogLevel::trace, fmt::format("pe {}: close()", pe_));
    for (std::size_t i = 0; i < function_count; ++i) {
        if (stats_[i].calls() == 0) continue;
        const std::string line = stats_[i].summary(name_of_function(static_cast<Function>(i)));
        host_.log(LogLevel::info, fmt::format("pe {}: {}", pe_, line));
    }
}

const char* TraceTransport::name_of_function(Function function) {
    constexpr std::array<const char*, function_count> names{"devices",
                                                            "use_devices",
                                                            "address",
                                                            "reach",
                                                            "connect",
                                                            "register_memory",
                                                            "deregister_memory",
                                                            "import_memory",
                                                            "release_memory",
                                                            "create_queue",
                                                            "destroy_queue",
                                                            "forget",
                                                            "put",
                                                            "get",
                                                            "atomic",
                                                            "put_signal",
                                                            "put_strided",
                                                            "fence",
                                                            "quiet",
                                                            "test",
                                                            "progress",
                                                            "poll_event"};
    return names[function];
}

void TraceTransport::write(Function function, Code code, std::chrono::nanoseconds duration,
                           const std::string& arguments) const {
    host_.log(LogLevel::trace, fmt::format("pe {}: {}({}) -> {}, {}", pe_, name_of_function(function), arguments,
                                           name_of(code), format_duration(duration)));
}

template <class Call, class Text>
auto TraceTransport::traced(Function function, std::uint64_t bytes, Call&& call, Text&& text) {
    const auto begin = Clock::now();
    auto result = call();
    const std::chrono::nanoseconds duration = Clock::now() - begin;
    const Code code = code_of(result);
    stats_[function].add(code, bytes, duration);
    const bool idle = code == Code::again && function >= quiet_;
    if (each_call_ && !idle) write(function, code, duration, text());
    return result;
}

Result<std::vector<npushmem_device>> TraceTransport::devices() {
    return traced(
        devices_, 0, [&] { return inner().devices(); }, [] { return std::string(); });
}

Status TraceTransport::use_devices(std::span<const std::uint32_t> index) {
    return traced(
        use_devices_, 0, [&] { return inner().use_devices(index); },
        [&] { return fmt::format("devices {}", fmt::join(index, ", ")); });
}

Result<Bytes> TraceTransport::address() {
    std::size_t bytes = 0;
    const auto call = [&] {
        auto result = inner().address();
        if (result.ok()) bytes = result.value().size();
        return result;
    };
    return traced(address_, 0, call, [&] { return fmt::format("{} bytes", bytes); });
}

Reach TraceTransport::reach(const npushmem_peer& peer) {
    const auto begin = Clock::now();
    Reach out = DecoratorTransport::reach(peer);
    const std::chrono::nanoseconds duration = Clock::now() - begin;
    stats_[reach_].add(Code::ok, 0, duration);
    if (each_call_) write(reach_, Code::ok, duration, fmt::format("pe {}: {}", peer.pe, out.why));
    if (out.reachable()) out.why += ", traced";
    return out;
}

Status TraceTransport::connect(const npushmem_peer& peer) {
    return traced(
        connect_, 0, [&] { return inner().connect(peer); }, [&] { return fmt::format("pe {}", peer.pe); });
}

Result<RegisteredMemory> TraceTransport::register_memory(const npushmem_memory& memory) {
    return traced(
        register_, memory.bytes, [&] { return inner().register_memory(memory); },
        [&] { return fmt::format("{} bytes at {}", memory.bytes, memory.base); });
}

Code TraceTransport::deregister_memory(std::uint64_t region) {
    return traced(
        deregister_, 0, [&] { return inner().deregister_memory(region); },
        [&] { return fmt::format("region {}", region); });
}

Result<std::uint64_t> TraceTransport::import_memory(int pe, std::span<const std::byte> handle) {
    return traced(
        import_, 0, [&] { return inner().import_memory(pe, handle); },
        [&] { return fmt::format("pe {}, handle of {} bytes", pe, handle.size()); });
}

Code TraceTransport::release_memory(std::uint64_t remote) {
    return traced(
        release_, 0, [&] { return inner().release_memory(remote); }, [&] { return fmt::format("memory {}", remote); });
}

Result<std::uint64_t> TraceTransport::create_queue() {
    return traced(
        create_queue_, 0, [&] { return inner().create_queue(); }, [] { return std::string(); });
}

Code TraceTransport::destroy_queue(std::uint64_t queue) {
    return traced(
        destroy_queue_, 0, [&] { return inner().destroy_queue(queue); },
        [&] { return fmt::format("queue {}", queue); });
}

Code TraceTransport::put(std::uint64_t queue, const npushmem_rma& op, std::uint64_t* token) {
    return traced(
        put_, op.bytes, [&] { return inner().put(queue, op, token); }, [&] { return text_of_rma(queue, op); });
}

Code TraceTransport::get(std::uint64_t queue, const npushmem_rma& op, std::uint64_t* token) {
    return traced(
        get_, op.bytes, [&] { return inner().get(queue, op, token); }, [&] { return text_of_rma(queue, op); });
}

Code TraceTransport::atomic(std::uint64_t queue, const npushmem_atomic& op, std::uint64_t* token) {
    return traced(
        atomic_, op.width, [&] { return inner().atomic(queue, op, token); }, [&] { return text_of_atomic(queue, op); });
}

Code TraceTransport::put_signal(std::uint64_t queue, const npushmem_put_signal& op, std::uint64_t* token) {
    return traced(
        put_signal_, op.data.bytes, [&] { return inner().put_signal(queue, op, token); },
        [&] {
            return fmt::format("{}; signal {} {} at memory {} + {}", text_of_rma(queue, op.data),
                               op.operation == NPUSHMEM_SIGNAL_ADD ? "add" : "set", op.signal, op.signal_remote,
                               op.signal_offset);
        });
}

Code TraceTransport::put_strided(std::uint64_t queue, const npushmem_put_strided& op, std::uint64_t* token) {
    return traced(
        put_strided_, op.count * op.block.bytes, [&] { return inner().put_strided(queue, op, token); },
        [&] {
            return fmt::format("{}, {} times, {} bytes apart there and {} here", text_of_rma(queue, op.block), op.count,
                               op.remote_stride, op.local_stride);
        });
}

Code TraceTransport::fence(std::uint64_t queue) {
    return traced(
        fence_, 0, [&] { return inner().fence(queue); }, [&] { return fmt::format("queue {}", queue); });
}

Code TraceTransport::quiet(std::uint64_t queue) {
    return traced(
        quiet_, 0, [&] { return inner().quiet(queue); }, [&] { return fmt::format("queue {}", queue); });
}

Code TraceTransport::test(std::uint64_t queue, std::uint64_t token) {
    return traced(
        test_, 0, [&] { return inner().test(queue, token); },
        [&] { return fmt::format("queue {}, token {}", queue, token); });
}

Code TraceTransport::progress() {
    return traced(
        progress_, 0, [&] { return inner().progress(); }, [] { return std::string(); });
}

Code TraceTransport::forget(int pe) {
    return traced(
        forget_, 0, [&] { return inner().forget(pe); }, [&] { return fmt::format("pe {}", pe); });
}

Code TraceTransport::poll_event(npushmem_event& out) {
    return traced(
        poll_event_, 0, [&] { return inner().poll_event(out); },
        [&] { return fmt::format("pe {}: {}", out.pe, text_of(out.message)); });
}

}  // namespace npushmem
