// SPDX-License-Identifier: BSD-3-Clause
#include "core/plugin/plugin_table.hpp"

#include <gmock/gmock.h>

#include "npushmem/plugin/transport_export.hpp"

namespace npushmem {
namespace {

using Traits = TableTraits<npushmem_transport_v1>;
using ::testing::HasSubstr;

npushmem_transport_v1 full_table() {
    npushmem_transport_v1 table{};
    detail::TransportTrampolines::fill(table);
    table.open = [](const npushmem_host*, const npushmem_transport_params*, void**, npushmem_error*) -> std::int32_t {
        return NPUSHMEM_E_STATE;
    };
    table.capabilities = NPUSHMEM_CAP_PUT;
    return table;
}

// Sets one function pointer to null and returns the finding.
template <class Function>
std::string missing_without(Function npushmem_transport_v1::*function) {
    npushmem_transport_v1 table = full_table();
    table.*function = nullptr;
    return Traits::missing_function(table);
}

TEST(TransportTable, ReportsEachMissingMandatoryFunction) {
    using T = npushmem_transport_v1;
    EXPECT_EQ(Traits::missing_function(full_table()), "");
    EXPECT_EQ(missing_without(&T::open), "open");
    EXPECT_EQ(missing_without(&T::close), "close");
    EXPECT_EQ(missing_without(&T::reach), "reach");
    EXPECT_EQ(missing_without(&T::register_memory), "register_memory");
    EXPECT_EQ(missing_without(&T::deregister_memory), "deregister_memory");
    EXPECT_EQ(missing_without(&T::import_memory), "import_memory");
    EXPECT_EQ(missing_without(&T::release_memory), "release_memory");
    EXPECT_EQ(missing_without(&T::create_queue), "create_queue");
    EXPECT_EQ(missing_without(&T::destroy_queue), "destroy_queue");
    EXPECT_EQ(missing_without(&T::fence), "fence");
    EXPECT_EQ(missing_without(&T::quiet), "quiet");
    EXPECT_EQ(missing_without(&T::map), "") << "optional";
}

template <class Function>
std::string conflict_without(std::uint64_t capabilities, Function npushmem_transport_v1::*function) {
    npushmem_transport_v1 table = full_table();
    table.capabilities = capabilities;
    table.*function = nullptr;
    return Traits::capability_conflict(table);
}

TEST(TransportTable, EachCapabilityNeedsItsFunction) {
    using T = npushmem_transport_v1;
    EXPECT_THAT(conflict_without(NPUSHMEM_CAP_MAP, &T::map), HasSubstr("'map'"));
    EXPECT_THAT(conflict_without(NPUSHMEM_CAP_PUT, &T::put), HasSubstr("'put'"));
    EXPECT_THAT(conflict_without(NPUSHMEM_CAP_GET, &T::get), HasSubstr("'get'"));
    EXPECT_THAT(conflict_without(NPUSHMEM_CAP_ATOMIC, &T::atomic), HasSubstr("'atomic'"));
    EXPECT_THAT(conflict_without(NPUSHMEM_CAP_PUT_SIGNAL, &T::put_signal), HasSubstr("'put_signal'"));
    constexpr auto devices = NPUSHMEM_CAP_PUT | NPUSHMEM_CAP_DEVICES;
    EXPECT_THAT(conflict_without(devices, &T::devices), HasSubstr("'devices'"));
    EXPECT_THAT(conflict_without(devices, &T::use_devices), HasSubstr("'use_devices'"));
    EXPECT_EQ(conflict_without(NPUSHMEM_CAP_PUT, &T::get), "") << "not declared, not needed";
    EXPECT_THAT(conflict_without(0, &T::get), HasSubstr("move data"));
}

TEST(TransportTable, DefaultsFillMissingFunctionsOnly) {
    npushmem_transport_v1 table = full_table();
    const auto put = table.put;
    table.get = nullptr;
    table.progress = nullptr;
    table.forget = nullptr;
    table.report_arrivals = nullptr;
    Traits::fill_defaults(table);
    EXPECT_EQ(table.put, put);
    EXPECT_EQ(table.get(nullptr, 0, nullptr, nullptr), NPUSHMEM_E_UNSUPPORTED);
    EXPECT_EQ(table.progress(nullptr), NPUSHMEM_AGAIN);
    EXPECT_EQ(table.forget(nullptr, 1), NPUSHMEM_OK);
    EXPECT_EQ(table.report_arrivals(nullptr, nullptr, nullptr), NPUSHMEM_E_UNSUPPORTED);
    EXPECT_STREQ(table.summary, "");
}

// Plugins were compiled against this layout: a change breaks every existing plugin.
TEST(TransportTable, LayoutIsLocked) {
    EXPECT_EQ(offsetof(npushmem_transport_v1, major), 4U);
    EXPECT_EQ(offsetof(npushmem_transport_v1, minor), 6U);
    EXPECT_EQ(offsetof(npushmem_transport_v1, name), 8U);
    EXPECT_EQ(offsetof(npushmem_transport_v1, capabilities), 24U);
    EXPECT_EQ(offsetof(npushmem_transport_v1, open), 48U);
    EXPECT_EQ(offsetof(npushmem_transport_v1, devices), 136U);
    EXPECT_EQ(offsetof(npushmem_transport_v1, forget), 232U);
    EXPECT_EQ(offsetof(npushmem_transport_v1, report_arrivals), 248U);
    EXPECT_EQ(sizeof(npushmem_transport_v1), 256U);
    EXPECT_EQ(sizeof(npushmem_rma), 40U);
    EXPECT_EQ(sizeof(npushmem_atomic), 48U);
    EXPECT_EQ(sizeof(npushmem_put_signal), 72U);
    EXPECT_EQ(sizeof(npushmem_host_id), 24U);
    EXPECT_EQ(offsetof(npushmem_bootstrap_v1, recognise), 96U);
    EXPECT_EQ(sizeof(npushmem_bootstrap_v1), 112U);
    EXPECT_EQ(sizeof(npushmem_host), 32U);
}

TEST(BootstrapTable, MissingOptionalFunctionsReturnUnsupported) {
    npushmem_bootstrap_v1 table{};
    TableTraits<npushmem_bootstrap_v1>::fill_defaults(table);
    npushmem_error error{};
    EXPECT_EQ(table.get_uniqueid(nullptr, nullptr, &error), NPUSHMEM_E_UNSUPPORTED);
    EXPECT_EQ(table.rank_ended(nullptr, nullptr, 1, 2, "PE 1 ended", &error), NPUSHMEM_E_UNSUPPORTED);
    EXPECT_THAT(error.message, HasSubstr("waits for every rank"));
    EXPECT_EQ(table.check(nullptr, &error), NPUSHMEM_OK);
    EXPECT_EQ(table.recognise(nullptr, nullptr, &error), 0);
}

TEST(CapabilityNames, PrintUnknownBitsAsNumbers) {
    EXPECT_EQ(capability_names(0), "none");
    EXPECT_EQ(capability_names(NPUSHMEM_CAP_MAP | NPUSHMEM_CAP_ATOMIC), "map, atomic");
    EXPECT_EQ(capability_names(NPUSHMEM_CAP_REPORTS_DEATH | NPUSHMEM_CAP_TARGET_PROGRESS),
              "reports_death, target_progress");
    EXPECT_EQ(capability_names(NPUSHMEM_CAP_GET | std::uint64_t{1} << 40), "get, 0x10000000000");
}

TEST(ConfigRows, RejectsImplausibleCountsWithoutReadingTheRows) {
    const npushmem_config_row row{"A", "1", "uint", "a"};
    EXPECT_EQ(config_row_error(&row, 1), "");
    EXPECT_EQ(config_row_error(nullptr, 0), "");
    EXPECT_THAT(config_row_error(&row, 4'000'000'000U), HasSubstr("garbage"));
}

}  // namespace
}  // namespace npushmem
