// SPDX-License-Identifier: BSD-3-Clause
#include "bench/simulate/sweep.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "core/tools/info/svg.hpp"

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

// Maps values to pixels; both axes are logarithmic.
class Frame {
public:
    static constexpr info::Rect area{70, 40, 760, 460};

    Frame(double x_min, double x_max, double y_min, double y_max)
        : x0_(std::log10(x_min)), x1_(std::log10(x_max)), y0_(std::log10(y_min)), y1_(std::log10(y_max)) {}
    [[nodiscard]] info::Point at(double x, double y) const {
        const double right = x1_ > x0_ ? (std::log10(x) - x0_) / (x1_ - x0_) : 0;
        const double up = y1_ > y0_ ? (std::log10(y) - y0_) / (y1_ - y0_) : 0;
        return {area.x + right * area.width, area.y + (1 - up) * area.height};
    }

private:
    double x0_, x1_, y0_, y1_;
};

constexpr std::array<std::string_view, 10> colours{"#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e",
                                                   "#17becf", "#8c564b", "#e377c2", "#7f7f7f", "#bcbd22"};

void draw_axes(info::Svg& svg, const Frame& frame, const Sweep& sweep, double least, double most) {
    svg.rect(Frame::area, "none", "#444", {}, 0);
    for (const int members : sweep.members) {
        const info::Point at = frame.at(members, least);
        svg.line({{at.x, Frame::area.y}, {at.x, at.y}}, "#eee", 1);
        svg.text({at.x, at.y + 16}, fmt::to_string(members), {.size = 9});
    }
    for (double tick = least; tick <= most * 1.0001; tick *= 10) {
        const info::Point at = frame.at(sweep.members.front(), tick);
        svg.line({{at.x, at.y}, {at.x + Frame::area.width, at.y}}, "#ddd", 1);
        svg.text({at.x - 6, at.y + 4}, fmt::format("{:g}", tick), {.anchor = "end"});
    }
    svg.text({Frame::area.x + Frame::area.width / 2, Frame::area.y + Frame::area.height + 36}, "PEs");
    svg.text({Frame::area.x - 6, Frame::area.y - 10}, "us", {.anchor = "end"});
}

void draw_series(info::Svg& svg, const Frame& frame, const Sweep& sweep, std::size_t index) {
    const Series& one = sweep.series[index];
    const std::string_view colour = colours[index % colours.size()];
    std::vector<info::Point> points;
    for (std::size_t i = 0; i < sweep.members.size(); ++i)
        if (one.outcomes[i].nanoseconds > 0)
            points.push_back(frame.at(sweep.members[i], microseconds(one.outcomes[i])));
    svg.line(points, colour, 1.8, one.name);
    const double y = Frame::area.y + 10 + 18 * static_cast<double>(index);
    const double x = Frame::area.x + Frame::area.width + 16;
    svg.line({{x, y}, {x + 22, y}}, colour, 3);
    svg.text({x + 28, y + 4}, one.name, {.anchor = "start"});
}

void draw_crossovers(info::Svg& svg, const Frame& frame, const Sweep& sweep) {
    int last = -1;
    const std::vector<int> best = fastest(sweep);
    for (std::size_t i = 0; i < best.size(); ++i) {
        if (best[i] == last || best[i] < 0) continue;
        last = best[i];
        const Series& one = sweep.series[static_cast<std::size_t>(last)];
        const info::Point at = frame.at(sweep.members[i], microseconds(one.outcomes[i]));
        const std::string tip = fmt::format("from {} PEs {} is the fastest", sweep.members[i], one.name);
        svg.rect({at.x - 4, at.y - 4, 8, 8}, "white", "#000", tip, 4);
    }
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
    double least = 1e300;
    double most = 0;
    for (const Series& one : sweep.series)
        for (const Outcome& outcome : one.outcomes)
            if (outcome.nanoseconds > 0)
                least = std::min(least, microseconds(outcome)), most = std::max(most, microseconds(outcome));
    if (most == 0) least = most = 1;
    least = std::pow(10.0, std::floor(std::log10(least)));
    most = std::pow(10.0, std::ceil(std::log10(most)));
    const Frame frame(sweep.members.front(), sweep.members.back(), least, most);
    info::Svg svg(title);
    svg.text({Frame::area.x, 20}, title, {.size = 14, .anchor = "start", .bold = true});
    draw_axes(svg, frame, sweep, least, most);
    for (std::size_t i = 0; i < sweep.series.size(); ++i) draw_series(svg, frame, sweep, i);
    draw_crossovers(svg, frame, sweep);
    constexpr double legend = 210;
    return svg.document(Frame::area.x + Frame::area.width + legend,
                        std::max(Frame::area.y + Frame::area.height + 60,
                                 Frame::area.y + 30 + 18 * static_cast<double>(sweep.series.size())));
}

}  // namespace npushmem::simulate
