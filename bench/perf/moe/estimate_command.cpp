// SPDX-License-Identifier: BSD-3-Clause
// npushmem-perf estimate: estimates the time in which servers of NPUs send the rows of a combine, and the load of their
// links. Runs without a launcher.
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iostream>

#include "bench/moe/routing_file.hpp"
#include "bench/moe/routing_generator.hpp"
#include "bench/moe/send_estimate.hpp"
#include "bench/perf/moe/report_text.hpp"
#include "bench/perf/moe/workloads.hpp"
#include "bench/perf/subcommand.hpp"

namespace npushmem::perf {

namespace {

std::string busy_fields(const char* name, const moe::LinksBusy& busy) {
    if (busy.links == 0) return {};
    return field(name, fmt::format("{:.1f} % on average, the busiest {:.1f} %, the idlest {:.1f} %", busy.mean * 100,
                                   busy.max * 100, busy.min * 100));
}

class EstimateCommand final : public Subcommand {
public:
    CLI::App* declare(CLI::App& program) override {
        CLI::App* app = program.add_subcommand(
            "estimate", "Estimate in virtual time how fast NPUs send a combine's rows, and how busy their links are");
        app->add_option("--model", model_, "Workload by name: " + workload_names())->capture_default_str();
        app->add_option("--routing", routing_file_, "Routing file; default: generated for --ranks with --tokens each");
        app->add_option("--ranks", ranks_, "NPUs")->check(CLI::Range(1, 64))->capture_default_str();
        app->add_option("--tokens", tokens_, "Tokens per NPU; all rows of all NPUs must fit into this host's memory")
            ->check(CLI::Range(1, 1 << 20))
            ->capture_default_str();
        app->add_option("--zipf", zipf_, "Skew of generated routing")->capture_default_str();
        app->add_option("--seed", seed_, "Seed of generated routing")->capture_default_str();
        app->add_option("--blocks", cores_.blocks, "Blocks of the launch on each NPU")
            ->check(CLI::Range(1, 4096))
            ->capture_default_str();
        app->add_option("--vector-cores", cores_.vector_cores, "Cores of a block")
            ->check(CLI::Range(1, 16))
            ->capture_default_str();
        app->add_option("--device", device_file_,
                        "Device model; `npushmem-perf npu-barrier --print-model` prints the default model")
            ->type_name("FILE");
        app->add_option("--timeline", timeline_, "Write the pipes' activity, for a trace viewer")->type_name("FILE");
        return app;
    }

    int run() override {
        const Workload* workload = find_workload(model_);
        if (workload == nullptr)
            return fail("estimate", fmt::format("no model is named '{}'; use {}", model_, workload_names()));
        auto device =
            device_file_.empty() ? Result<npu::DeviceModel>(npu::DeviceModel{}) : npu::DeviceModel::read(device_file_);
        if (!device.ok()) return fail("estimate", device.status().message());
        auto routing = routing_of(*workload);
        if (!routing.ok()) return fail("estimate", routing.status().message());
        npu::VirtualTime time(device.value());
        const moe::Elements hidden{static_cast<std::uint64_t>(workload->hidden)};
        const moe::Bytes row = moe::bytes_of(hidden, moe::size_of(workload->type));
        const Status sent = moe::estimate_send(time, routing.value(), row, cores_);
        if (!sent.ok()) return fail("estimate", sent.message());
        std::cout << report(routing.value(), row, device.value(), time.report());
        return timeline_.empty() ? EXIT_SUCCESS : write_timeline(time);
    }

private:
    [[nodiscard]] Result<moe::Routing> routing_of(const Workload& workload) const {
        if (!routing_file_.empty()) return moe::read_routing_file(routing_file_);
        moe::GeneratorOptions options = generator_of(workload);
        options.ranks = ranks_;
        options.tokens = tokens_;
        options.zipf = zipf_;
        options.seed = seed_;
        return moe::generate_routing(options);
    }

    [[nodiscard]] std::string report(const moe::Routing& routing, moe::Bytes row, const npu::DeviceModel& device,
                                     const npu::VirtualReport& time) const {
        std::string out = fmt::format(
            "npushmem-perf estimate: virtual time of a device model, not a measurement; the sender alone, mode direct, "
            "rows staged through the unified buffer\n\n");
        out += field("workload",
                     fmt::format("{}: {} experts, top-{}, {} NPUs with up to {} tokens, rows of {}", model_,
                                 routing.experts, routing.top_k, routing.ranks(), moe::max_tokens_per_rank(routing),
                                 bytes_text(static_cast<double>(row.value()))));
        out += field("routing", routing.origin);
        out += field("device", fmt::format("{} cores, links of {} GB/s and {} us, memory of {} GB/s",
                                           cores_.blocks * cores_.vector_cores, device.hccs_rate,
                                           device.hccs_latency / 1e3, device.gm_rate));
        out += field("time", time_text(time.seconds()));
        out += busy_fields("links busy", moe::links_busy(time, routing.ranks(), device.group));
        out += busy_fields("ports busy", moe::ports_busy(time, routing.ranks(), device.group));
        if (routing.ranks() > 1)
            out += field("", "the busiest one's share is the sender's doing, the others' below it the routing's");
        return out + '\n' + time.text();
    }

    [[nodiscard]] int write_timeline(const npu::VirtualTime& time) const {
        std::ofstream file(timeline_);
        time.write_timeline(file);
        file.close();
        return file ? EXIT_SUCCESS : fail("estimate", fmt::format("cannot write '{}'", timeline_));
    }

    std::string model_ = "deepseek-v3-prefill";
    std::string routing_file_;
    int ranks_ = 8;
    int tokens_ = 512;
    double zipf_ = 0;
    std::uint64_t seed_ = 1;
    moe::EstimateCores cores_;
    std::string device_file_;
    std::string timeline_;
};

}  // namespace

std::unique_ptr<Subcommand> make_estimate_command() { return std::make_unique<EstimateCommand>(); }

}  // namespace npushmem::perf
