#include "bench/perf/measure_options.hpp"

#include <fmt/format.h>

#include <fstream>
#include <iostream>
#include <thread>

#include "bench/perf/positive.hpp"

namespace npushmem::perf {
namespace {

Status write_file(const std::string& path, const std::string& text) {
    if (path.empty()) return {};
    std::ofstream file(path, std::ios::binary);
    file << text;
    file.close();
    return file ? Status{} : Status{Code::system, fmt::format("cannot write '{}'", path)};
}

// The value of the first line that begins with `key`.
std::string processor(std::istream& facts, const std::string& key) {
    for (std::string line; std::getline(facts, line);) {
        const auto colon = line.find(": ");
        if (line.starts_with(key) && colon != std::string::npos) return line.substr(colon + 2);
    }
    return "an unnamed processor";
}

}  // namespace

bench::EngineSettings MeasureOptions::settings() const {
    bench::EngineSettings settings;
    settings.rounds = rounds;
    settings.batch = std::chrono::microseconds(batch_us);
    return settings;
}

void declare_options(CLI::App& app, MeasureOptions& options) {
    app.add_option("--rounds", options.rounds, "How often each variant is timed, in turn with the others")
        ->check(positive())
        ->capture_default_str();
    app.add_option("--batch", options.batch_us, "Microseconds of one timed batch")
        ->check(positive())
        ->capture_default_str();
    app.add_option("--csv", options.csv, "Write the results into this file, a line per variant");
    app.add_option("--json", options.json, "Write the results into this file, as JSON");
}

Status deliver(const bench::ReportHead& head, const std::vector<bench::PointResult>& points,
               const MeasureOptions& options) {
    std::cout << bench::text_report(head, points) << std::flush;
    Status written = write_file(options.csv, bench::csv_report(head, points));
    if (Status json = write_file(options.json, bench::json_report(head, points)); !json.ok()) written = json;
    return written;
}

std::string machine_name() {
    std::ifstream facts("/proc/cpuinfo");
    return fmt::format("{} x {}", std::thread::hardware_concurrency(), processor(facts, "model name"));
}

}  // namespace npushmem::perf
