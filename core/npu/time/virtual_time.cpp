#include "npushmem/npu/virtual_time.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "core/npu/time/timed_core.hpp"

namespace npushmem::npu {
namespace {

constexpr double ns_per_second = 1e9;
constexpr double ns_per_us = 1e3;  // the unit of the trace format

constexpr std::array every_pipe{Pipe::scalar, Pipe::vector, Pipe::copy_in, Pipe::copy_out};

int thread_of(int core, Pipe pipe) { return core * static_cast<int>(time::pipes) + static_cast<int>(pipe); }

// Names are those of operations: no character of them needs an escape.
std::string trace_event(const time::TraceEvent& event) {
    return fmt::format(R"({{"name":"{}","ph":"X","pid":{},"tid":{},"ts":{:.3f},"dur":{:.3f}}})", event.name, event.pe,
                       thread_of(event.core, event.pipe), event.begin / ns_per_us,
                       (event.end - event.begin) / ns_per_us);
}

std::string name_event(const char* kind, int process, int thread, const std::string& name) {
    return fmt::format(R"({{"name":"{}","ph":"M","pid":{},"tid":{},"args":{{"name":"{}"}}}})", kind, process, thread,
                       name);
}

}  // namespace

double VirtualReport::seconds() const {
    double longest = 0;
    for (const Pe& pe : pes) longest = std::max(longest, pe.seconds);
    return longest;
}

std::string VirtualReport::text() const {
    std::string out = "virtual time  PE  cores      us     S %     V %  MTE2 %  MTE3 %\n";
    for (const Pe& pe : pes) {
        out += fmt::format("{:16}  {:5}  {:6.2f}", pe.pe, pe.cores, pe.seconds * 1e6);
        for (const double share : pe.busy) out += fmt::format("  {:6.1f}", share * 100);
        out += '\n';
    }
    return out;
}

class VirtualTime::Impl {
public:
    explicit Impl(const DeviceModel& model) : simulation(std::make_shared<time::SimulationState>(model)) {}
    std::shared_ptr<time::SimulationState> simulation;
};

VirtualTime::VirtualTime(const DeviceModel& model) : impl_(std::make_unique<Impl>(model)) {}
VirtualTime::~VirtualTime() = default;

HooksFactory VirtualTime::hooks() {
    return [this](Core& core) { return std::make_unique<time::TimedCore>(impl_->simulation, core); };
}

VirtualReport VirtualTime::report() const {
    VirtualReport report;
    for (const auto& [number, pe] : impl_->simulation->pes()) {
        VirtualReport::Pe row{number, pe.cores, pe.end / ns_per_second, {}};
        for (std::size_t i = 0; i < time::pipes; ++i)
            row.busy.at(i) = pe.core_time > 0 ? pe.busy.at(i) / pe.core_time : 0;
        report.pes.push_back(row);
    }
    const DeviceModel& model = impl_->simulation->model;
    for (const auto& [ends, bytes] : impl_->simulation->links()) {
        const double rate = ends.first < 0 || ends.second < 0 ? model.switch_rate : model.hccs_rate;
        report.links.push_back({ends.first, ends.second, bytes, bytes / rate / ns_per_second / report.seconds()});
    }
    return report;
}

void VirtualTime::write_timeline(std::ostream& out) const {
    out << R"({"displayTimeUnit":"ns","traceEvents":[)";
    const char* separator = "\n";
    const auto write = [&](const std::string& event) { out << std::exchange(separator, ",\n") << event; };
    for (const auto& [number, pe] : impl_->simulation->pes()) {
        write(name_event("process_name", number, 0, fmt::format("PE {}", number)));
        for (int core = 0; core < pe.cores; ++core)
            for (const Pipe pipe : every_pipe)
                write(name_event("thread_name", number, thread_of(core, pipe),
                                 fmt::format("core {} {}", core, name_of(pipe))));
    }
    for (const time::TraceEvent& event : impl_->simulation->events()) write(trace_event(event));
    out << "\n]}\n";
}

void VirtualTime::reset() { impl_->simulation = std::make_shared<time::SimulationState>(impl_->simulation->model); }

}  // namespace npushmem::npu
