// SPDX-License-Identifier: BSD-3-Clause
// npushmem-perf estimate: estimates the time of a layer's dispatch and combine on servers of NPUs, and the load of
// their links. Runs without a launcher.
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iostream>

#include "bench/moe/layer_estimate.hpp"
#include "bench/moe/routing_file.hpp"
#include "bench/moe/routing_generator.hpp"
#include "bench/perf/moe/report_text.hpp"
#include "bench/perf/moe/workloads.hpp"
#include "bench/perf/subcommand.hpp"
#include "npushmem/npu/device_config.hpp"

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
            "estimate",
            "Estimate in virtual time how long NPUs take for a dispatch and a combine, and how busy their links are");
        app->add_option("--model", model_, "Workload by name: " + workload_names())->capture_default_str();
        app->add_option("--routing", routing_file_, "Routing file; default: generated for --ranks with --tokens each");
        app->add_option("--ranks", ranks_, "NPUs")->check(CLI::Range(1, 64))->capture_default_str();
        app->add_option("--tokens", tokens_, "Tokens per NPU; all rows of all NPUs must fit into this host's memory")
            ->check(CLI::Range(1, 1 << 20))
            ->capture_default_str();
        app->add_option("--zipf", zipf_, "Skew of generated routing")->capture_default_str();
        app->add_option("--seed", seed_, "Seed of generated routing")->capture_default_str();
        app->add_option("--quantize", quantize_,
                        "Type of the rows of the dispatch, with scales; the time does not include the "
                        "conversion")
            ->check(CLI::IsMember({"e4m3", "e5m2", "int8"}));
        app->add_option(
               "--slots", slots_,
               "Places of the rows at their experts: contiguous, by counts that travel first, or fixed, for all "
               "tokens of each NPU")
            ->check(CLI::IsMember({"packed", "fixed"}))
            ->capture_default_str();
        blocks_ = app->add_option("--blocks", cores_.blocks, "Blocks of the launch on each NPU")
                      ->check(CLI::Range(1, 4096))
                      ->capture_default_str();
        vector_cores_ = app->add_option("--vector-cores", cores_.vector_cores, "Cores of a block")
                            ->check(CLI::Range(1, 16))
                            ->capture_default_str();
        app->add_option(
               "--device", device_file_,
               "Device model, with or without its cores; `npushmem-perf npu-barrier --print-model` prints the default "
               "model")
            ->type_name("FILE");
        app->add_option("--timeline", timeline_, "Write the pipes' activity in the combine, for a trace viewer")
            ->type_name("FILE");
        app->add_option("--dispatch-timeline", dispatch_timeline_, "The same of the dispatch")->type_name("FILE");
        return app;
    }

    int run() override {
        const Workload* workload = find_workload(model_);
        if (workload == nullptr)
            return fail("estimate", fmt::format("no model is named '{}'; use {}", model_, workload_names()));
        auto device =
            device_file_.empty() ? Result<npu::DeviceModel>(npu::DeviceModel{}) : npu::DeviceModel::read(device_file_);
        if (!device.ok()) return fail("estimate", device.status().message());
        if (Status cores = read_cores(); !cores.ok()) return fail("estimate", cores.message());
        auto routing = routing_of(*workload);
        if (!routing.ok()) return fail("estimate", routing.status().message());
        const moe::EstimateRows rows{workload->hidden, workload->type, !quantize_.empty(), slots_ == "fixed"};
        npu::VirtualTime of_dispatch(device.value());
        const Status dispatched = moe::estimate_dispatch(of_dispatch, routing.value(), rows, cores_);
        if (!dispatched.ok()) return fail("estimate", dispatched.message());
        npu::VirtualTime of_combine(device.value());
        const auto sent = moe::estimate_combine(of_combine, routing.value(), rows, cores_);
        if (!sent.ok()) return fail("estimate", sent.status().message());
        const auto& model = device.value();
        std::cout << heading(routing.value(), rows, model)
                  << call("dispatch", of_dispatch.report(), routing.value(), model)
                  << call("rows of the combine", sent.value(), routing.value(), model)
                  << field("combine", time_text(of_combine.report().seconds()) + ", with the sums") << "\ndispatch\n"
                  << of_dispatch.report().text() << "\ncombine\n"
                  << of_combine.report().text();
        const int written = write_timeline(of_dispatch, dispatch_timeline_);
        return written == EXIT_SUCCESS ? write_timeline(of_combine, timeline_) : written;
    }

private:
    // The device file may name the cores; the options precede it.
    Status read_cores() {
        if (device_file_.empty()) return {};
        npu::DeviceConfig file;
        if (Status applied = file.apply_file(device_file_); !applied.ok()) return applied;
        if (blocks_->count() == 0) cores_.blocks = file.blocks;
        if (vector_cores_->count() == 0) cores_.vector_cores = file.vector_cores;
        return {};
    }

    [[nodiscard]] Result<moe::Routing> routing_of(const Workload& workload) const {
        if (!routing_file_.empty()) return moe::read_routing_file(routing_file_);
        moe::GeneratorOptions options = generator_of(workload);
        options.ranks = ranks_;
        options.tokens = tokens_;
        options.zipf = zipf_;
        options.seed = seed_;
        return moe::generate_routing(options);
    }

    [[nodiscard]] std::string heading(const moe::Routing& routing, const moe::EstimateRows& rows,
                                      const npu::DeviceModel& device) const {
        std::string out =
            "npushmem-perf estimate: virtual time of a device model, not a measurement; mode direct, rows staged "
            "through "
            "the unified buffer, one for each choice\n\n";
        out += field("workload", fmt::format("{}: {} experts, top-{}, {} NPUs with up to {} tokens, rows of {} {}",
                                             model_, routing.experts, routing.top_k, routing.ranks(),
                                             moe::max_tokens_per_rank(routing), rows.hidden, name_of(rows.type)));
        out += field("routing", routing.origin);
        out +=
            field("rows dispatched",
                  fmt::format("{}, {} slots", quantize_.empty() ? std::string(name_of(rows.type)) : quantize_, slots_));
        out += field("device", fmt::format("{} cores, links of {} GB/s and {} us, memory of {} GB/s",
                                           cores_.blocks * cores_.vector_cores, device.hccs_rate,
                                           device.hccs_latency / 1e3, device.gm_rate));
        if (routing.ranks() > device.group)
            out += field("", fmt::format("ports of {} GB/s and {} us between groups of {}", device.switch_rate,
                                         device.switch_latency / 1e3, device.group));
        return out;
    }

    [[nodiscard]] static std::string call(const char* name, const npu::VirtualReport& time, const moe::Routing& routing,
                                          const npu::DeviceModel& device) {
        return field(name, time_text(time.seconds())) +
               busy_fields("links busy", moe::links_busy(time, routing.ranks(), device.group)) +
               busy_fields("ports busy", moe::ports_busy(time, routing.ranks(), device.group));
    }

    [[nodiscard]] static int write_timeline(const npu::VirtualTime& time, const std::string& path) {
        if (path.empty()) return EXIT_SUCCESS;
        std::ofstream file(path);
        time.write_timeline(file);
        file.close();
        return file ? EXIT_SUCCESS : fail("estimate", fmt::format("cannot write '{}'", path));
    }

    std::string model_ = "deepseek-v3-prefill";
    std::string routing_file_;
    int ranks_ = 8;
    int tokens_ = 512;
    double zipf_ = 0;
    std::uint64_t seed_ = 1;
    moe::EstimateCores cores_;
    CLI::Option* blocks_ = nullptr;
    CLI::Option* vector_cores_ = nullptr;
    std::string device_file_;
    std::string quantize_;
    std::string slots_ = "packed";
    std::string timeline_;
    std::string dispatch_timeline_;
};

}  // namespace

std::unique_ptr<Subcommand> make_estimate_command() { return std::make_unique<EstimateCommand>(); }

}  // namespace npushmem::perf
