// SPDX-License-Identifier: BSD-3-Clause
// The binary form of the plugin tables: no field of a published structure moves, and no structure shrinks. A change of
// the headers comes with a new minor version and a kept copy (headers/README.md).
#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "npushmem/plugin/bootstrap.h"
#include "npushmem/plugin/collectives.h"
#include "npushmem/plugin/transport.h"

namespace npushmem {
namespace {

#define FIELD(type, field, offset, bytes)                                                                          \
    static_assert(offsetof(type, field) == (offset), #type                                                         \
                  "::" #field " has moved: plugins that exist were compiled with its offset; only append fields"); \
    static_assert(sizeof(type::field) == (bytes), #type "::" #field " has another size: only append fields")
// Structures may grow only where struct_size says so; the minor version and the kept headers change with them.
#define SIZE(type, bytes) static_assert(sizeof(type) == (bytes), #type " has another size: append its new fields here")

SIZE(npushmem_error, 2048);
FIELD(npushmem_error, code, 0, 4);
FIELD(npushmem_error, message, 4, 2044);

SIZE(npushmem_config_row, 32);
FIELD(npushmem_config_row, name, 0, 8);
FIELD(npushmem_config_row, default_value, 8, 8);
FIELD(npushmem_config_row, type, 16, 8);
FIELD(npushmem_config_row, meaning, 24, 8);

SIZE(npushmem_host, 32);
FIELD(npushmem_host, struct_size, 0, 4);
FIELD(npushmem_host, major, 4, 2);
FIELD(npushmem_host, minor, 6, 2);
FIELD(npushmem_host, context, 8, 8);
FIELD(npushmem_host, log, 16, 8);
FIELD(npushmem_host, config, 24, 8);

SIZE(npushmem_host_id, 24);
FIELD(npushmem_host_id, machine, 0, 8);
FIELD(npushmem_host_id, space, 8, 8);
FIELD(npushmem_host_id, emulated, 16, 4);
FIELD(npushmem_host_id, user, 20, 4);

SIZE(npushmem_transport_params, 64);
FIELD(npushmem_transport_params, struct_size, 0, 4);
FIELD(npushmem_transport_params, pe, 4, 4);
FIELD(npushmem_transport_params, npes, 8, 4);
FIELD(npushmem_transport_params, local_index, 12, 4);
FIELD(npushmem_transport_params, local_count, 16, 4);
FIELD(npushmem_transport_params, process_id, 20, 4);
FIELD(npushmem_transport_params, host, 24, 24);
FIELD(npushmem_transport_params, inner, 48, 8);
FIELD(npushmem_transport_params, inner_self, 56, 8);

SIZE(npushmem_peer, 56);
FIELD(npushmem_peer, struct_size, 0, 4);
FIELD(npushmem_peer, pe, 4, 4);
FIELD(npushmem_peer, host, 8, 24);
FIELD(npushmem_peer, process_id, 32, 4);
FIELD(npushmem_peer, address_bytes, 36, 4);
FIELD(npushmem_peer, address, 40, 8);
FIELD(npushmem_peer, host_name, 48, 8);

SIZE(npushmem_reach, 296);
FIELD(npushmem_reach, struct_size, 0, 4);
FIELD(npushmem_reach, reserved, 4, 4);
FIELD(npushmem_reach, capabilities, 8, 8);
FIELD(npushmem_reach, atomic_32, 16, 4);
FIELD(npushmem_reach, atomic_64, 20, 4);
FIELD(npushmem_reach, why, 24, 256);
FIELD(npushmem_reach, latency_ns, 280, 8);
FIELD(npushmem_reach, bytes_per_second, 288, 8);

SIZE(npushmem_device, 128);
FIELD(npushmem_device, struct_size, 0, 4);
FIELD(npushmem_device, port, 4, 4);
FIELD(npushmem_device, state, 8, 4);
FIELD(npushmem_device, reserved, 12, 4);
FIELD(npushmem_device, bits_per_second, 16, 8);
FIELD(npushmem_device, name, 24, 64);
FIELD(npushmem_device, pci_address, 88, 32);
FIELD(npushmem_device, rail, 120, 4);
FIELD(npushmem_device, reserved_1, 124, 4);

SIZE(npushmem_memory, 56);
FIELD(npushmem_memory, struct_size, 0, 4);
FIELD(npushmem_memory, fd, 4, 4);
FIELD(npushmem_memory, fd_offset, 8, 8);
FIELD(npushmem_memory, base, 16, 8);
FIELD(npushmem_memory, bytes, 24, 8);
FIELD(npushmem_memory, mapping, 32, 8);
FIELD(npushmem_memory, mapping_offset, 40, 8);
FIELD(npushmem_memory, mapping_bytes, 48, 8);

SIZE(npushmem_rma, 40);
FIELD(npushmem_rma, pe, 0, 4);
FIELD(npushmem_rma, reserved, 4, 4);
FIELD(npushmem_rma, remote, 8, 8);
FIELD(npushmem_rma, offset, 16, 8);
FIELD(npushmem_rma, local, 24, 8);
FIELD(npushmem_rma, bytes, 32, 8);

SIZE(npushmem_atomic, 48);
FIELD(npushmem_atomic, pe, 0, 4);
FIELD(npushmem_atomic, operation, 4, 1);
FIELD(npushmem_atomic, width, 5, 1);
FIELD(npushmem_atomic, reserved, 6, 2);
FIELD(npushmem_atomic, remote, 8, 8);
FIELD(npushmem_atomic, offset, 16, 8);
FIELD(npushmem_atomic, operand, 24, 8);
FIELD(npushmem_atomic, compare, 32, 8);
FIELD(npushmem_atomic, result, 40, 8);

SIZE(npushmem_put_signal, 72);
FIELD(npushmem_put_signal, data, 0, 40);
FIELD(npushmem_put_signal, signal_remote, 40, 8);
FIELD(npushmem_put_signal, signal_offset, 48, 8);
FIELD(npushmem_put_signal, signal, 56, 8);
FIELD(npushmem_put_signal, operation, 64, 4);
FIELD(npushmem_put_signal, reserved, 68, 4);

SIZE(npushmem_put_strided, 64);
FIELD(npushmem_put_strided, block, 0, 40);
FIELD(npushmem_put_strided, count, 40, 8);
FIELD(npushmem_put_strided, remote_stride, 48, 8);
FIELD(npushmem_put_strided, local_stride, 56, 8);

SIZE(npushmem_event, 512);
FIELD(npushmem_event, struct_size, 0, 4);
FIELD(npushmem_event, code, 4, 4);
FIELD(npushmem_event, pe, 8, 4);
FIELD(npushmem_event, message, 12, 500);

SIZE(npushmem_transport_v1, 256);
FIELD(npushmem_transport_v1, struct_size, 0, 4);
FIELD(npushmem_transport_v1, major, 4, 2);
FIELD(npushmem_transport_v1, minor, 6, 2);
FIELD(npushmem_transport_v1, name, 8, 8);
FIELD(npushmem_transport_v1, summary, 16, 8);
FIELD(npushmem_transport_v1, capabilities, 24, 8);
FIELD(npushmem_transport_v1, config, 32, 8);
FIELD(npushmem_transport_v1, config_count, 40, 4);
FIELD(npushmem_transport_v1, reserved, 44, 4);
FIELD(npushmem_transport_v1, open, 48, 8);
FIELD(npushmem_transport_v1, close, 56, 8);
FIELD(npushmem_transport_v1, reach, 64, 8);
FIELD(npushmem_transport_v1, register_memory, 72, 8);
FIELD(npushmem_transport_v1, deregister_memory, 80, 8);
FIELD(npushmem_transport_v1, import_memory, 88, 8);
FIELD(npushmem_transport_v1, release_memory, 96, 8);
FIELD(npushmem_transport_v1, create_queue, 104, 8);
FIELD(npushmem_transport_v1, destroy_queue, 112, 8);
FIELD(npushmem_transport_v1, fence, 120, 8);
FIELD(npushmem_transport_v1, quiet, 128, 8);
FIELD(npushmem_transport_v1, devices, 136, 8);
FIELD(npushmem_transport_v1, use_devices, 144, 8);
FIELD(npushmem_transport_v1, map, 152, 8);
FIELD(npushmem_transport_v1, put, 160, 8);
FIELD(npushmem_transport_v1, get, 168, 8);
FIELD(npushmem_transport_v1, atomic, 176, 8);
FIELD(npushmem_transport_v1, put_signal, 184, 8);
FIELD(npushmem_transport_v1, address, 192, 8);
FIELD(npushmem_transport_v1, connect, 200, 8);
FIELD(npushmem_transport_v1, test, 208, 8);
FIELD(npushmem_transport_v1, progress, 216, 8);
FIELD(npushmem_transport_v1, poll_event, 224, 8);
FIELD(npushmem_transport_v1, forget, 232, 8);
FIELD(npushmem_transport_v1, put_strided, 240, 8);
FIELD(npushmem_transport_v1, report_arrivals, 248, 8);

SIZE(npushmem_bootstrap_params, 32);
FIELD(npushmem_bootstrap_params, struct_size, 0, 4);
FIELD(npushmem_bootstrap_params, rank, 4, 4);
FIELD(npushmem_bootstrap_params, nranks, 8, 4);
FIELD(npushmem_bootstrap_params, reserved, 12, 4);
FIELD(npushmem_bootstrap_params, uniqueid, 16, 8);
FIELD(npushmem_bootstrap_params, attribute, 24, 8);

SIZE(npushmem_bootstrap_v1, 112);
FIELD(npushmem_bootstrap_v1, struct_size, 0, 4);
FIELD(npushmem_bootstrap_v1, major, 4, 2);
FIELD(npushmem_bootstrap_v1, minor, 6, 2);
FIELD(npushmem_bootstrap_v1, name, 8, 8);
FIELD(npushmem_bootstrap_v1, summary, 16, 8);
FIELD(npushmem_bootstrap_v1, config, 24, 8);
FIELD(npushmem_bootstrap_v1, config_count, 32, 4);
FIELD(npushmem_bootstrap_v1, reserved, 36, 4);
FIELD(npushmem_bootstrap_v1, open, 40, 8);
FIELD(npushmem_bootstrap_v1, close, 48, 8);
FIELD(npushmem_bootstrap_v1, allgather, 56, 8);
FIELD(npushmem_bootstrap_v1, barrier, 64, 8);
FIELD(npushmem_bootstrap_v1, abort, 72, 8);
FIELD(npushmem_bootstrap_v1, check, 80, 8);
FIELD(npushmem_bootstrap_v1, get_uniqueid, 88, 8);
FIELD(npushmem_bootstrap_v1, recognise, 96, 8);
FIELD(npushmem_bootstrap_v1, rank_ended, 104, 8);

SIZE(npushmem_collectives_params, 16);
FIELD(npushmem_collectives_params, struct_size, 0, 4);
FIELD(npushmem_collectives_params, pe, 4, 4);
FIELD(npushmem_collectives_params, npes, 8, 4);

SIZE(npushmem_coll_team, 40);
FIELD(npushmem_coll_team, struct_size, 0, 4);
FIELD(npushmem_coll_team, size, 4, 4);
FIELD(npushmem_coll_team, index, 8, 4);
FIELD(npushmem_coll_team, number, 12, 4);
FIELD(npushmem_coll_team, pes, 16, 8);
FIELD(npushmem_coll_team, context, 24, 8);
FIELD(npushmem_coll_team, allgather, 32, 8);

SIZE(npushmem_coll_call, 56);
FIELD(npushmem_coll_call, struct_size, 0, 4);
FIELD(npushmem_coll_call, collective, 4, 4);
FIELD(npushmem_coll_call, operation, 8, 4);
FIELD(npushmem_coll_call, type, 12, 4);
FIELD(npushmem_coll_call, root, 16, 4);
FIELD(npushmem_coll_call, source, 24, 8);
FIELD(npushmem_coll_call, dest, 32, 8);
FIELD(npushmem_coll_call, count, 40, 8);
FIELD(npushmem_coll_call, counts, 48, 8);

SIZE(npushmem_collectives_v1, 112);
FIELD(npushmem_collectives_v1, struct_size, 0, 4);
FIELD(npushmem_collectives_v1, major, 4, 2);
FIELD(npushmem_collectives_v1, minor, 6, 2);
FIELD(npushmem_collectives_v1, name, 8, 8);
FIELD(npushmem_collectives_v1, summary, 16, 8);
FIELD(npushmem_collectives_v1, config, 24, 8);
FIELD(npushmem_collectives_v1, config_count, 32, 4);
FIELD(npushmem_collectives_v1, open, 40, 8);
FIELD(npushmem_collectives_v1, close, 48, 8);
FIELD(npushmem_collectives_v1, supports, 56, 8);
FIELD(npushmem_collectives_v1, create_team, 64, 8);
FIELD(npushmem_collectives_v1, destroy_team, 72, 8);
FIELD(npushmem_collectives_v1, start, 80, 8);
FIELD(npushmem_collectives_v1, test, 88, 8);
FIELD(npushmem_collectives_v1, abandon, 96, 8);
FIELD(npushmem_collectives_v1, describe, 104, 8);

// The text without comments, and with each run of blanks and line ends as one blank: what a compiler sees.
std::string code_of(const std::filesystem::path& file) {
    std::ifstream in(file);
    EXPECT_TRUE(in.is_open()) << "cannot open " << file;
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text.compare(i, 2, "/*") == 0) {
            const std::size_t end = text.find("*/", i + 2);
            if (end == std::string::npos) break;
            i = end + 1;
            continue;
        }
        const bool blank = text[i] == ' ' || text[i] == '\n' || text[i] == '\t';
        if (!blank)
            out += text[i];
        else if (!out.empty() && out.back() != ' ')
            out += ' ';
    }
    return out;
}

std::filesystem::path kept_folder(int major, int minor) {
    return std::filesystem::path(ABI_KEPT_HEADERS_DIR) / (std::to_string(major) + "." + std::to_string(minor)) /
           "npushmem/plugin";
}

TEST(KeptCopies, TheNewestIsThatOfTheCurrentVersion) {
    EXPECT_TRUE(std::filesystem::exists(kept_folder(NPUSHMEM_TRANSPORT_MAJOR, NPUSHMEM_TRANSPORT_MINOR)))
        << "NPUSHMEM_TRANSPORT_MINOR is " << NPUSHMEM_TRANSPORT_MINOR
        << ": keep a copy of include/npushmem/plugin in tests/abi/headers (README.md there)";
    EXPECT_FALSE(std::filesystem::exists(kept_folder(NPUSHMEM_TRANSPORT_MAJOR, NPUSHMEM_TRANSPORT_MINOR + 1)))
        << "a copy of a later version is kept: raise NPUSHMEM_TRANSPORT_MINOR";
}

TEST(KeptCopies, TheHeadersHaveNotChangedSince) {
    const auto kept = kept_folder(NPUSHMEM_TRANSPORT_MAJOR, NPUSHMEM_TRANSPORT_MINOR);
    for (const char* header : {"abi.h", "bootstrap.h", "transport.h"})
        EXPECT_EQ(code_of(std::filesystem::path(ABI_CURRENT_HEADERS_DIR) / header), code_of(kept / header))
            << header << " changed: raise the minor version and keep a copy (tests/abi/headers/README.md)";
}

TEST(KeptCopies, CommentsDoNotCount) {
    const std::filesystem::path file = ::testing::TempDir() + "npushmem_abi_header.h";
    std::ofstream(file) << "/* one\n * comment */\nint a; /* and\tanother */  int b;\n";
    EXPECT_EQ(code_of(file), "int a; int b; ");
    std::filesystem::remove(file);
}

}  // namespace
}  // namespace npushmem
