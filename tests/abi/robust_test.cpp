// SPDX-License-Identifier: BSD-3-Clause
// Unchecked answers of a plugin are not trusted, and repeated loading leaves nothing behind.
#include <gmock/gmock.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <thread>

#include "core/plugin/bootstrap_choice.hpp"
#include "core/plugin/loader.hpp"
#include "core/plugin/opened_plugin.hpp"
#include "core/plugin/plugin_catalogue.hpp"
#include "core/plugin/plugin_finder.hpp"
#include "npushmem/testing/fake_host.hpp"
#include "tests/fakes/fake_os.hpp"
#include "tests/fakes/open_descriptors.hpp"

namespace npushmem {
namespace {

using ::testing::HasSubstr;

PluginFinder wrong_plugins() { return PluginFinder({ABI_PLUGIN_DIR}); }

std::unique_ptr<OpenedTransport> opened(const char* name, const fakes::FakeHost& host) {
    auto loaded = load_transport(wrong_plugins(), name);
    npushmem_transport_params params{};
    params.struct_size = sizeof params;
    auto out = open_transport(loaded.value(), host.table(), params);
    return std::move(out).value();
}

TEST(Robust, AbsentFunctionsBehaveAsTheHeaderSpecifies) {
    const fakes::FakeHost host;
    const auto sound = opened("sound", host);
    EXPECT_TRUE(sound->devices().value().empty());
    EXPECT_TRUE(sound->use_devices({}).ok());
    EXPECT_TRUE(sound->address().value().empty());
    EXPECT_TRUE(sound->connect(npushmem_peer{}).ok());
    EXPECT_EQ(sound->map(1).status().code(), Code::unsupported);
    EXPECT_THAT(sound->map(1).status().message(), HasSubstr("cannot map"));
    EXPECT_EQ(sound->get(1, {}, nullptr), Code::unsupported);
    EXPECT_EQ(sound->atomic(1, {}, nullptr), Code::unsupported);
    EXPECT_EQ(sound->put_signal(1, {}, nullptr), Code::unsupported);
    EXPECT_EQ(sound->put_strided(1, {}, nullptr), Code::unsupported);
    EXPECT_EQ(sound->test(1, 0), Code::ok);
    EXPECT_EQ(sound->progress(), Code::again);
    npushmem_event event{};
    EXPECT_EQ(sound->poll_event(event), Code::again);
    EXPECT_EQ(sound->forget(1), Code::ok);
    EXPECT_EQ(sound->report_arrivals([](void*) {}, nullptr), Code::unsupported);
}

TEST(Robust, DropsUndeclaredCapabilitiesAndTruncatesLongAnswers) {
    const fakes::FakeHost host;
    const auto sound = opened("sound", host);
    const Reach reach = sound->reach(npushmem_peer{});
    EXPECT_EQ(reach.capabilities, NPUSHMEM_CAP_PUT);
    EXPECT_EQ(reach.why, std::string(sizeof(npushmem_reach::why), 'y'));
    const auto memory = sound->register_memory(npushmem_memory{});
    EXPECT_EQ(memory.status().code(), Code::protocol);
    EXPECT_THAT(memory.status().message(), HasSubstr("100000"));
}

TEST(Robust, ThrowingFunctionsBecomeCodes) {
    const fakes::FakeHost host;
    const auto throwing = opened("throwing", host);
    EXPECT_FALSE(throwing->reach(npushmem_peer{}).reachable());
    EXPECT_EQ(throwing->reach(npushmem_peer{}).why, "reach failed: reach");
    EXPECT_EQ(throwing->create_queue().status().message(), "no queue today");
    EXPECT_EQ(throwing->import_memory(0, {}).status().code(), Code::memory);
    EXPECT_EQ(throwing->register_memory(npushmem_memory{}).status().code(), Code::system);
    EXPECT_EQ(throwing->put(0, {}, nullptr), Code::system);
    EXPECT_EQ(throwing->quiet(0), Code::system);
}

TEST(Robust, AnEventDeliversTheMessageOfAThrowingFunction) {
    const fakes::FakeHost host;
    const auto throwing = opened("throwing", host);
    npushmem_event event{};
    EXPECT_EQ(throwing->poll_event(event), Code::again);
    npushmem_rma op{};
    op.pe = 3;
    EXPECT_EQ(throwing->get(0, op, nullptr), Code::system);
    EXPECT_EQ(throwing->put(0, op, nullptr), Code::system) << "its message is dropped: the first one is kept";
    ASSERT_EQ(throwing->poll_event(event), Code::ok);
    EXPECT_EQ(event.struct_size, sizeof event);
    EXPECT_EQ(event.pe, 3);
    EXPECT_EQ(event.code, NPUSHMEM_E_SYSTEM);
    EXPECT_EQ(text_of(event.message), "get of the plugin threw: the wire broke");
    EXPECT_EQ(throwing->poll_event(event), Code::again) << "reported twice";
    EXPECT_EQ(throwing->forget(1), Code::memory);
    EXPECT_EQ(throwing->poll_event(event), Code::again) << "calls that release resources leave no event";
    EXPECT_EQ(throwing->quiet(0), Code::system);
    ASSERT_EQ(throwing->poll_event(event), Code::ok);
    EXPECT_THAT(text_of(event.message), HasSubstr("something that is no std::exception"));
}

// Threads that fail at the same time: every delivered event is whole.
TEST(Robust, MessagesOfThrowingFunctionsAreWholeWhenThreadsFailTogether) {
    const fakes::FakeHost host;
    const auto throwing = opened("throwing", host);
    constexpr int calls = 2000;
    std::atomic<int> running{2};
    const auto fail = [&](int pe) {
        npushmem_rma op{};
        op.pe = pe;
        for (int i = 0; i < calls; ++i) EXPECT_EQ(throwing->get(0, op, nullptr), Code::system);
        running.fetch_sub(1, std::memory_order_relaxed);
    };
    std::thread first(fail, 1);
    std::thread second(fail, 2);
    int delivered = 0;
    npushmem_event event{};
    for (bool last = false; !last;) {
        last = running.load(std::memory_order_relaxed) == 0;
        while (throwing->poll_event(event) == Code::ok) {
            ++delivered;
            EXPECT_TRUE(event.pe == 1 || event.pe == 2);
            EXPECT_EQ(text_of(event.message), "get of the plugin threw: the wire broke");
        }
    }
    first.join();
    second.join();
    while (throwing->poll_event(event) == Code::ok) ++delivered;
    EXPECT_GE(delivered, 1);
}

bool is_loaded(const std::string& file) {
    struct Search {
        const std::string& file;
        bool found = false;
    } search{file};
    dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* data) {
            auto& wanted = *static_cast<Search*>(data);
            wanted.found = wanted.found || std::string_view(info->dlpi_name).ends_with(wanted.file);
            return 0;
        },
        &search);
    return search.found;
}

TEST(Robust, UnloadsTheLibraryWithItsLastInstance) {
    const fakes::FakeHost host;
    const std::string file = plugin_file_name(PluginKind::transport, "sound");
    ASSERT_FALSE(is_loaded(file));
    auto instance = opened("sound", host);
    EXPECT_TRUE(is_loaded(file));
    instance.reset();
    EXPECT_FALSE(is_loaded(file));
}

void own_handler(int /*signal*/) {}

TEST(Robust, RestoresSignalHandlersThatAPluginReplaces) {
    const auto before_fpe = std::signal(SIGFPE, own_handler);
    const auto before_int = std::signal(SIGINT, SIG_DFL);
    ASSERT_TRUE(load_transport(wrong_plugins(), "takes_signals").ok());
    EXPECT_EQ(std::signal(SIGFPE, before_fpe), own_handler);
    EXPECT_EQ(std::signal(SIGINT, before_int), SIG_DFL);
}

TEST(Robust, ASignalDuringALoadIsHandledByTheProgram) {
    const auto load = [] {
        (void)setenv("WRONG_PLUGIN_IS_SIGNALLED", "1", 1);
        (void)std::signal(SIGTERM, SIG_DFL);
        (void)load_transport(wrong_plugins(), "takes_signals");
        _exit(0);
    };
    EXPECT_EXIT(load(), ::testing::KilledBySignal(SIGTERM), "");
}

TEST(Robust, AFaultDuringALoadIsHandledByTheProgram) {
    const auto load = [] {
        (void)std::signal(SIGSEGV, [](int) { _exit(7); });
        (void)load_transport(PluginFinder({ABI_FATAL_PLUGIN_DIR}), "faults");
        _exit(0);
    };
    EXPECT_EXIT(load(), ::testing::ExitedWithCode(7), "");
}

std::size_t loaded_objects() {
    std::size_t count = 0;
    dl_iterate_phdr([](dl_phdr_info*, std::size_t, void* data) { return ++*static_cast<std::size_t*>(data), 0; },
                    &count);
    return count;
}

TEST(Robust, AThousandRejectionsLeakNothing) {
    const PluginFinder finder = wrong_plugins();
    const auto all = finder.scan(PluginKind::transport);
    ASSERT_GE(all.size(), 20U);
    for (const auto& found : all) (void)examine_plugin(found);  // the first time makes one-time allocations
    const std::size_t descriptors = open_descriptors();
    const std::size_t objects = loaded_objects();
    for (std::size_t i = 0; i < 1000; ++i) (void)examine_plugin(all[i % all.size()]);
    EXPECT_EQ(open_descriptors(), descriptors);
    EXPECT_EQ(loaded_objects(), objects);
}

TEST(Robust, AThousandFailedOpensLeakNothing) {
    const fakes::FakeHost host;
    auto loaded = load_transport(wrong_plugins(), "no_open");
    ASSERT_TRUE(loaded.ok());
    for (int i = 0; i < 1000; ++i) EXPECT_FALSE(open_transport(loaded.value(), host.table(), {}).ok());
    EXPECT_EQ(loaded.value().use_count(), 1);
}

TEST(Robust, ASoundBootstrapInC) {
    const fakes::FakeHost host;
    auto loaded = load_bootstrap(wrong_plugins(), "sound");
    ASSERT_TRUE(loaded.ok()) << loaded.status().message();
    auto bootstrap = open_bootstrap(loaded.value(), host.table(), npushmem_bootstrap_params{});
    ASSERT_TRUE(bootstrap.ok()) << bootstrap.status().message();
    EXPECT_EQ(bootstrap.value()->nranks(), 1);
    EXPECT_TRUE(bootstrap.value()->barrier().ok());
    EXPECT_TRUE(bootstrap.value()->check().ok());
    bootstrap.value()->abort("nobody listens");
    std::array<std::byte, NPUSHMEM_UNIQUEID_BYTES> id{};
    EXPECT_EQ(make_uniqueid(*loaded.value(), host.table(), id).code(), Code::unsupported);
}

TEST(Catalogue, ShowsUsableAndRefusedPlugins) {
    const PluginCatalogue catalogue = PluginCatalogue::scan(wrong_plugins());
    ASSERT_NE(catalogue.find(PluginKind::transport, "with_row"), nullptr);
    const PluginEntry& usable = *catalogue.find(PluginKind::transport, "with_row");
    EXPECT_TRUE(usable.usable());
    ASSERT_EQ(usable.variables.size(), 1U);
    EXPECT_EQ(usable.variables[0].name, "FOO_A");
    EXPECT_EQ(usable.capabilities, NPUSHMEM_CAP_PUT);
    EXPECT_FALSE(catalogue.find(PluginKind::transport, "no_quiet")->usable());
    EXPECT_EQ(catalogue.find(PluginKind::transport, "no_such"), nullptr);
    EXPECT_TRUE(catalogue.find(PluginKind::bootstrap, "sound")->usable());
}

// AUTO queries plugins before the runtime knows their rows.
TEST(BuildTree, RecogniseReadsTheVariablesOfThePlugin) {
    const fakes::FakeHost host;
    const FakeEnvironment environment{{"NPUSHMEM_BOOTSTRAP_UID_SESSION_ID", "host:1"}};
    npushmem_bootstrap_params params{sizeof params, -1, -1, 0, nullptr, nullptr};
    const auto chosen = choose_bootstrap(PluginFinder(plugin_search_path("")), environment, host.table(), params);
    ASSERT_TRUE(chosen.ok()) << chosen.status().message();
    EXPECT_EQ(chosen.value().plugin->name(), "uid");
    EXPECT_EQ(chosen.value().confidence, NPUSHMEM_RECOGNISED_BY_USER);
    EXPECT_EQ(chosen.value().why, "NPUSHMEM_BOOTSTRAP_UID_SESSION_ID is set");
}

TEST(BuildTree, EveryPluginThatIsBuiltIsFoundAndUsable) {
    const PluginFinder finder(plugin_search_path(""));
    const PluginCatalogue catalogue = PluginCatalogue::scan(finder);
    for (const char* name : {"self", "p2p"}) {
        const PluginEntry* entry = catalogue.find(PluginKind::transport, name);
        ASSERT_NE(entry, nullptr) << name;
        EXPECT_TRUE(entry->usable());
    }
    for (const auto& entry : catalogue.entries())
        EXPECT_TRUE(entry.usable()) << entry.found.path << ": " << entry.refusal->text;
}

}  // namespace
}  // namespace npushmem
