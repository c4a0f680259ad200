// SPDX-License-Identifier: BSD-3-Clause
// Records and requests between PEs, host agents and npushmem-run, its options, and the results of examined plugins.
#include <algorithm>

#include "core/base/launcher_channel.hpp"
#include "core/tools/info/plugin_examination.hpp"
#include "core/tools/run/exit_record.hpp"
#include "core/tools/run/options.hpp"
#include "core/tools/run/remote_launch.hpp"
#include "tests/fuzz/targets.hpp"

namespace npushmem::fuzz {
namespace {

void check_record(std::string_view bytes) {
    if (bytes.find(LauncherRecord::end) != std::string_view::npos) return;  // where readers split the log
    const auto record = LauncherRecord::decode(bytes);
    if (!record) return;
    std::string written = record->encode();
    require(!written.empty() && written.back() == LauncherRecord::end, "a record without its last byte");
    written.pop_back();
    const auto again = LauncherRecord::decode(written);
    // Control characters in texts are replaced.
    const auto is_control = [](char byte) { return static_cast<unsigned char>(byte) < 0x20; };
    const bool whole =
        std::ranges::none_of(record->text, is_control) && std::ranges::none_of(record->prefix, is_control);
    require(!whole || (again && *again == *record), "a record changes by encoding and decoding");
}

void check_requests(std::string_view bytes) {
    run::ExitRequests requests;
    for (std::size_t at = 0; at < bytes.size(); at += 7)
        for (const auto& request : requests.take(bytes.substr(at, 7))) {
            const auto again = run::parse_exit_request(run::line_of(request));
            require(again && *again == request, "a request changes by formatting and parsing");
        }
}

void check_outcome(std::string_view text) {
    const auto outcome = run::parse_outcome(text);
    if (!outcome) return;
    const auto again = run::parse_outcome(run::text_of(*outcome));
    require(again && *again == *outcome, "an outcome changes by formatting and parsing");
}

void check_launch(std::string_view body) {
    require_message(run::LaunchRequest::body_bytes(body.substr(0, body.find('\n'))).status());
    const auto request = run::LaunchRequest::decode(body);
    if (!request.ok()) return require_message(request.status());
    require(request.value().pes.count >= 1 && !request.value().command.empty(), "a request that starts nothing");
    const std::string written = request.value().encode();
    const std::size_t line = written.find('\n');
    const auto bytes = run::LaunchRequest::body_bytes(std::string_view(written).substr(0, line));
    require(bytes.ok() && bytes.value() == written.size() - line - 1, "a wrong length");
    const auto again = run::LaunchRequest::decode(std::string_view(written).substr(line + 1));
    require(again.ok() && again.value().encode() == written, "a request changes by encoding and decoding");
}

void check_entry(std::string_view bytes) {
    const FoundPlugin found{PluginKind::transport, "mine", "/mine.so", {}};
    bool complete = false;
    const PluginEntry entry = info::decode_entry(found, bytes, complete);
    if (!complete) return;
    const std::string written = info::encode_entry(entry);
    const PluginEntry again = info::decode_entry(found, written, complete);
    require(complete && info::encode_entry(again) == written, "an entry changes by encoding and decoding");
}

// Each line is one argument.
void check_options(Taker& in) {
    std::vector<std::string> arguments;
    while (!in.empty()) arguments.push_back(in.line());
    const auto parsed = run::parse_options(arguments);
    if (const auto* options = std::get_if<run::Options>(&parsed))
        require(options->npes >= 1, "options for a job without PEs");
}

}  // namespace

// The first byte selects the check.
void launcher_records(Input input) {
    Taker in(input);
    switch (in.byte() % 6) {
        case 0: return check_record(text_of(in.rest()));
        case 1: return check_requests(text_of(in.rest()));
        case 2: return check_outcome(text_of(in.rest()));
        case 3: return check_launch(text_of(in.rest()));
        case 4: return check_entry(text_of(in.rest()));
        default: return check_options(in);
    }
}

}  // namespace npushmem::fuzz
