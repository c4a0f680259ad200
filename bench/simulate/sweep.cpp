// SPDX-License-Identifier: BSD-3-Clause
#include "bench/simulate/sweep.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "bench/chart/chart.hpp"

namespace npushmem::simulate {
namespace {

double microseconds(const Outcome& outcome) { return outcome.nanoseconds / 1000.0; }

std::string crossovers(const Sweep& sweep) {
    std::string text = "fastest:";
    int last = -1;
    const std::vector<int> best = fastest(sweep);
    for (std::size_t i = 0; i < best.size(); ++i) {
        if (best[i] == last || best[i] < 0) continue;
        last = best[i];
        text += fmt::format("{} from {} PEs {}", text.back() == ':' ? "" : ",", sweep.members[i],
                            sweep.series[static_cast<std::size_t>(last)].name);
    }
    return text + "\n";
}

std::string rows(const Sweep& sweep, std::string_view title, std::string (*cell)(const Outcome&)) {
    std::string text = fmt::format("{}\n{:>9}", title, "PEs");
    for (const Series& one : sweep.series)
        text += fmt::format(" {:>{}}", one.name, std::max<std::size_t>(one.name.size(), 10));
    text += '\n';
    for (std::size_t i = 0; i < sweep.members.size(); ++i) {
        text += fmt::format("{:>9}", sweep.members[i]);
        for (const Series& one : sweep.series)
            text += fmt::format(" {:>{}}", one.outcomes[i].nanoseconds > 0 ? cell(one.outcomes[i]) : "-",
                                std::max<std::size_t>(one.name.size(), 10));
        text += '\n';
    }
    return text;
}

// A ring at each size from which another algorithm is the fastest.
std::vector<chart::Ring> rings(const Sweep& sweep) {
    std::vector<chart::Ring> out;
    int last = -1;
    const std::vector<int> best = fastest(sweep);
    for (std::size_t i = 0; i < best.size(); ++i) {
        if (best[i] == last || best[i] < 0) continue;
        last = best[i];
        const Series& one = sweep.series[static_cast<std::size_t>(last)];
        out.push_back({{static_cast<double>(sweep.members[i]), microseconds(one.outcomes[i])},
                       fmt::format("from {} PEs {} is the fastest", sweep.members[i], one.name)});
    }
    return out;
}

}  // namespace

Result<Sweep> sweep(const std::vector<barrier::Plan>& plans, const std::vector<int>& members, int per_node,
                    const Model& model, const std::function<void(const SweepStep&)>& on_step) {
    Sweep all{members, per_node, {}};
    SweepStep step;
    step.total = plans.size() * members.size();
    const double weight = static_cast<double>(plans.size()) * std::accumulate(members.begin(), members.end(), 0.0);
    double weight_done = 0;
    for (const barrier::Plan& plan : plans) {
        Series series{plan, name_of(plan), {}};
        for (const int n : members) {
            step.algorithm = series.name;
            step.members = n;
            step.share = weight_done / weight;
            if (on_step) on_step(step);
            ++step.done;
            weight_done += n;
            if (!barrier::check_members(plan, n).ok()) {
                series.outcomes.emplace_back();
                continue;
            }
            auto outcome = simulate(plan, {n, per_node}, model);
            if (!outcome.ok()) return outcome.status();
            series.outcomes.push_back(outcome.value());
        }
        all.series.push_back(std::move(series));
    }
    return all;
}

std::vector<int> fastest(const Sweep& sweep) {
    std::vector<int> best(sweep.members.size(), -1);
    for (std::size_t i = 0; i < best.size(); ++i) {
        double least = 0;
        for (std::size_t s = 0; s < sweep.series.size(); ++s) {
            const double time = sweep.series[s].outcomes[i].nanoseconds;
            if (time <= 0 || (best[i] >= 0 && time >= least)) continue;
            best[i] = static_cast<int>(s);
            least = time;
        }
    }
    return best;
}

std::string table(const Sweep& sweep) {
    return rows(sweep, "time in us", [](const Outcome& one) { return fmt::format("{:.3f}", microseconds(one)); }) +
           rows(sweep, "messages", [](const Outcome& one) { return fmt::to_string(one.messages); }) +
           rows(sweep, "memory of a PE in bytes", [](const Outcome& one) { return fmt::to_string(one.slots * 64); }) +
           crossovers(sweep);
}

std::string csv(const Sweep& sweep) {
    std::string text = "algorithm,pes,pes_per_node,time_us,messages,network_messages,turns,bytes_per_pe\n";
    for (const Series& one : sweep.series)
        for (std::size_t i = 0; i < sweep.members.size(); ++i) {
            const Outcome& outcome = one.outcomes[i];
            if (outcome.nanoseconds > 0)
                text += fmt::format("{},{},{},{:.4f},{},{},{},{}\n", one.name, sweep.members[i], sweep.per_node,
                                    microseconds(outcome), outcome.messages, outcome.network, outcome.turns,
                                    outcome.slots * 64);
        }
    return text;
}

std::string to_svg(const Sweep& sweep, const std::string& title) {
    chart::CurveChart chart{.title = title,
                            .x_title = "number of PEs",
                            .y_title = "time of a barrier (µs)",
                            .curves = {},
                            .rings = rings(sweep),
                            .ring_meaning = "fastest from here on"};
    for (const Series& one : sweep.series) {
        chart::Curve& curve = chart.curves.emplace_back(chart::Curve{one.name, {}});
        for (std::size_t i = 0; i < sweep.members.size(); ++i)
            if (one.outcomes[i].nanoseconds > 0)
                curve.points.push_back({static_cast<double>(sweep.members[i]), microseconds(one.outcomes[i])});
    }
    return chart::draw(chart);
}

}  // namespace npushmem::simulate
