// SPDX-License-Identifier: BSD-3-Clause
// Base of the subcommands about MoE layers: makes a case from the options, and prints and writes the result.
#pragma once

#include <optional>
#include <string>

#include "bench/perf/moe/combine_case.hpp"
#include "bench/perf/moe/payload_run.hpp"
#include "bench/perf/subcommand.hpp"

namespace npushmem::perf {

class LayerCommand : public Subcommand {
public:
    CLI::App* declare(CLI::App& program) override;
    int run() override;

protected:
    struct Outcome {
        std::optional<PeDifference> difference;
        std::string report;
        std::string csv;
        std::string svg;
    };

    // `receive_buffers`: number of buffers of a PE's rows in its symmetric heap.
    LayerCommand(std::string name, std::string description, int receive_buffers)
        : name_(std::move(name)), description_(std::move(description)), receive_buffers_(receive_buffers) {}

    // Of commands with a dispatch.
    void declare_slots(CLI::App& app);
    [[nodiscard]] const CombineOptions& options() const { return options_; }
    // A type of quantized rows to measure, too; empty: none.
    [[nodiscard]] const std::string& quantize() const { return quantize_; }
    // Collective.
    virtual Result<Outcome> measure(const Job& job, const CombineCase& c) = 0;

private:
    [[nodiscard]] int fail(const std::string& who, const Status& status) const;
    [[nodiscard]] int run_layers(const Job& job);
    [[nodiscard]] int run_case(const Job& job);
    // Collective. Whether the status of any PE is a failure; the lowest such PE prints it.
    [[nodiscard]] bool any_refused(const Job& job, const Status& status) const;
    [[nodiscard]] Status write_outcome(const Outcome& outcome) const;

    std::string name_;
    std::string description_;
    int receive_buffers_;
    CombineOptions options_;
    std::string quantize_;
};

}  // namespace npushmem::perf
