// SPDX-License-Identifier: BSD-3-Clause
#include "bench/engine/report.hpp"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

namespace npushmem::bench {
namespace {

std::string digits(double value) {
    if (value < 9.995) return fmt::format("{:.2f}", value);
    return fmt::format("{:.{}f}", value, value < 99.95 ? 1 : 0);
}

// Bytes per nanosecond are 10^9 bytes per second.
double rate(const PointResult& point, const VariantResult& variant) {
    return variant.time.median > 0 ? static_cast<double>(point.bytes) / variant.time.median : 0;
}

std::string rate_text(const PointResult& point, const VariantResult& variant) {
    return point.bytes == 0 ? "" : fmt::format("{:.2f} GB/s", rate(point, variant));
}

std::string ratio_text(const VariantResult& variant) {
    return variant.baseline ? fmt::format("{:.3f} ± {:.3f}", variant.ratio.median, variant.ratio.mad) : "";
}

constexpr const char* row = "{:<24} {:<26} {:>9} {:>9} {:>9} {:>9}  {:>15} {:>12}\n";

std::string table_row(const PointResult& point, const VariantResult& variant) {
    return fmt::format(fmt::runtime(row), variant.baseline ? "" : point.name, variant.name,
                       format_time(variant.time.median), format_time(variant.time.mad), format_time(variant.time.p10),
                       format_time(variant.time.p90), ratio_text(variant), rate_text(point, variant));
}

nlohmann::json json_of(const PointResult& point, const VariantResult& variant) {
    return {{"name", variant.name},
            {"baseline", variant.baseline},
            {"batch", variant.iterations},
            {"median_ns", variant.time.median},
            {"mad_ns", variant.time.mad},
            {"p10_ns", variant.time.p10},
            {"p90_ns", variant.time.p90},
            {"min_ns", variant.time.min},
            {"ratio", variant.ratio.median},
            {"ratio_mad", variant.ratio.mad},
            {"gb_per_s", rate(point, variant)}};
}

}  // namespace

std::string format_time(double nanoseconds) {
    constexpr std::array<const char*, 4> units{"ns", "us", "ms", "s"};
    constexpr double next_unit = 1000;
    std::size_t unit = 0;
    for (; nanoseconds >= next_unit && unit + 1 < units.size(); ++unit) nanoseconds /= next_unit;
    return fmt::format("{} {}", digits(nanoseconds), units[unit]);
}

std::string text_report(const ReportHead& head, const std::vector<PointResult>& points) {
    std::string text = fmt::format(
        "{}: {} PE{} on {}; {} rounds of batches of {}; reading the clock costs {}, taken off\n"
        "Times are medians per operation; ratio: npushmem's time divided by the baseline's, round by round\n",
        head.title, head.pes, head.pes == 1 ? "" : "s", head.machine, head.settings.rounds,
        format_time(static_cast<double>(head.settings.batch.count())), format_time(head.clock_ns));
    text += fmt::format(fmt::runtime(row), "", "", "median", "MAD", "p10", "p90", "ratio", "");
    for (const PointResult& point : points) {
        for (const VariantResult& variant : point.variants) text += table_row(point, variant);
    }
    for (const PointResult& point : points)
        if (!point.no_baseline.empty()) text += fmt::format("{}: no baseline: {}\n", point.name, point.no_baseline);
    return text;
}

std::string csv_report(const ReportHead& head, const std::vector<PointResult>& points) {
    std::string text =
        "title,pes,point,bytes,variant,baseline,batch,median_ns,mad_ns,p10_ns,p90_ns,min_ns,ratio,ratio_mad\n";
    for (const PointResult& point : points) {
        for (const VariantResult& v : point.variants)
            text +=
                fmt::format("{},{},\"{}\",{},\"{}\",{},{},{:.4f},{:.4f},{:.4f},{:.4f},{:.4f},{:.5f},{:.5f}\n",
                            head.title, head.pes, point.name, point.bytes, v.name, v.baseline ? 1 : 0, v.iterations,
                            v.time.median, v.time.mad, v.time.p10, v.time.p90, v.time.min, v.ratio.median, v.ratio.mad);
    }
    return text;
}

std::string json_report(const ReportHead& head, const std::vector<PointResult>& points) {
    nlohmann::json document{{"title", head.title},
                            {"machine", head.machine},
                            {"pes", head.pes},
                            {"clock_ns", head.clock_ns},
                            {"rounds", head.settings.rounds},
                            {"batch_ns", head.settings.batch.count()},
                            {"points", nlohmann::json::array()}};
    for (const PointResult& point : points) {
        nlohmann::json variants = nlohmann::json::array();
        for (const VariantResult& variant : point.variants) variants.push_back(json_of(point, variant));
        document["points"].push_back({{"name", point.name}, {"bytes", point.bytes}, {"variants", variants}});
        if (!point.no_baseline.empty()) document["points"].back()["no_baseline"] = point.no_baseline;
    }
    return document.dump(2) + "\n";
}

std::string json_report(const ResultTable& table) {
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    for (const auto& cells : table.rows) {
        nlohmann::ordered_json row = nlohmann::ordered_json::object();
        for (std::size_t i = 0; i < table.columns.size(); ++i)
            std::visit([&, i](const auto& cell) { row[table.columns[i]] = cell; }, cells.at(i));
        rows.push_back(std::move(row));
    }
    const nlohmann::ordered_json document{{"title", table.title}, {"rows", std::move(rows)}};
    return document.dump(2) + "\n";
}

}  // namespace npushmem::bench
