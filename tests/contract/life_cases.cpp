// SPDX-License-Identifier: BSD-3-Clause
// Opening, reach queries, closing.
#include <gtest/gtest.h>

#include "tests/contract/fabric.hpp"

namespace npushmem::contract {
namespace {

void opens_and_closes_repeatedly(Fabric& fabric) {
    const Subject& subject = fabric.subject();
    for (int i = 0; i < 20; ++i) {
        auto opened = subject.open(params_of(0, 1));
        ASSERT_TRUE(opened.ok()) << opened.status().message();
    }
}

void closes_with_everything_in_use(Fabric& fabric) {
    const Subject& subject = fabric.subject();
    const auto slices = make_slices(subject.layout, 1, 4096);
    auto opened = subject.open(params_of(0, 1));
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    Transport& transport = *opened.value();
    ASSERT_TRUE(transport.create_queue().ok());
    const auto registered = transport.register_memory(slices[0]->describe());
    ASSERT_TRUE(registered.ok()) << registered.status().message();
    if (transport.reach(peer_of(0)).reachable()) {
        EXPECT_TRUE(transport.import_memory(0, registered.value().handle).ok());
    }
}

void promises_are_consistent(Fabric& fabric) {
    for (int from = 0; from < fabric.npes(); ++from) {
        for (int to = 0; to < fabric.npes(); ++to) {
            const Reach& reach = fabric.pe(from).reach(to);
            EXPECT_FALSE(reach.why.empty()) << "PE " << from << " to " << to << ": no reason given";
            EXPECT_EQ(reach.capabilities & ~fabric.subject().declared_capabilities(), 0U) << "more than is declared";
            EXPECT_EQ(reach.capabilities, fabric.pe(to).reach(from).capabilities) << "reach is not symmetrical";
            if (!reach.has(NPUSHMEM_CAP_ATOMIC)) {
                EXPECT_EQ(reach.atomic_32 | reach.atomic_64, 0U);
            }
            if (reach.has(NPUSHMEM_CAP_ATOMIC)) {
                EXPECT_NE(reach.atomic_32 | reach.atomic_64, 0U) << "atomics without an operation";
            }
        }
    }
}

void reaches_someone(Fabric& fabric) {
    int reachable = 0;
    for (int from = 0; from < fabric.npes(); ++from)
        for (int to = 0; to < fabric.npes(); ++to) reachable += fabric.pe(from).reach(to).reachable() ? 1 : 0;
    EXPECT_GT(reachable, 0) << "no PE can be reached, not even by itself: " << fabric.pe(0).reach(0).why;
}

void another_machine_is_not_mapped(Fabric& fabric) {
    npushmem_peer other_host = peer_of(fabric.npes());
    other_host.host.machine ^= 1;
    const Reach reach = fabric.pe(0).transport().reach(other_host);
    EXPECT_FALSE(reach.has(NPUSHMEM_CAP_MAP)) << "memory of another machine";
    EXPECT_FALSE(reach.why.empty()) << "no reason given";
    if ((fabric.subject().declared_capabilities() & NPUSHMEM_CAP_REMOTE) == 0) {
        EXPECT_FALSE(reach.reachable());
    }
}

void another_emulated_host_is_not_mapped(Fabric& fabric) {
    npushmem_peer other_host = peer_of(fabric.npes());
    other_host.host.emulated = 3;
    other_host.host.space ^= 1;
    const Reach reach = fabric.pe(0).transport().reach(other_host);
    EXPECT_FALSE(reach.has(NPUSHMEM_CAP_MAP)) << "memory of another emulated host";
    EXPECT_FALSE(reach.why.empty()) << "no reason given";
}

void waiting_calls_do_not_block_when_idle(Fabric& fabric) {
    for (int i = 0; i < fabric.npes(); ++i) {
        Transport& transport = fabric.pe(i).transport();
        for (int n = 0; n < 100; ++n) EXPECT_GE(static_cast<int>(transport.progress()), 0) << "progress has failed";
        npushmem_event event{};
        EXPECT_EQ(transport.poll_event(event), Code::again) << text_of(event.message);
        EXPECT_EQ(fabric.pe(i).quiet(), Code::ok);
    }
}

void devices_are_named(Fabric& fabric) {
    auto devices = fabric.pe(0).transport().devices();
    ASSERT_TRUE(devices.ok()) << devices.status().message();
    for (const auto& device : devices.value()) EXPECT_FALSE(text_of(device.name).empty()) << "no name";
}

}  // namespace

std::vector<Case> life_cases() {
    return {{"opens_and_closes_repeatedly", 0, opens_and_closes_repeatedly},
            {"closes_with_everything_in_use", 0, closes_with_everything_in_use},
            {"promises_are_consistent", 0, promises_are_consistent},
            {"reaches_someone", 0, reaches_someone},
            {"another_machine_is_not_mapped", 0, another_machine_is_not_mapped},
            {"another_emulated_host_is_not_mapped", 0, another_emulated_host_is_not_mapped},
            {"waiting_calls_do_not_block_when_idle", 0, waiting_calls_do_not_block_when_idle},
            {"devices_are_named", 0, devices_are_named}};
}

}  // namespace npushmem::contract
