#include "core/plugin/shared_library.hpp"

#include <dlfcn.h>
#include <link.h>
#include <signal.h>

#include <array>

#include "core/plugin/elf_file.hpp"

namespace npushmem {
namespace {

std::string last_error() {
    const char* text = dlerror();
    return text != nullptr ? text : "the dynamic linker gave no reason";
}

// Network libraries take over the signals of crashes, and some those of an interruption, in the moment they are loaded;
// they are the program's, its debugger's or its language's. Given back when this goes; a handler that another thread
// sets meanwhile is lost. Loading takes up to 200 ms, and the handlers of libinfinipath make every signal an exit with
// status 1: a signal that comes meanwhile waits for the program's own handler. Signals of faults are not blocked: the
// kernel ends a process without its handler when a fault raises a blocked signal. A thread that the library starts
// keeps this mask; process-directed signals then go to the program's threads.
class SignalHandlerGuard {
public:
    SignalHandlerGuard() {
        sigset_t blocked;
        ::sigfillset(&blocked);
        for (const int fault : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS}) ::sigdelset(&blocked, fault);
        blocked_ = ::pthread_sigmask(SIG_BLOCK, &blocked, &mask_) == 0;
        for (int signal = 1; signal < NSIG; ++signal)
            known_[signal] = ::sigaction(signal, nullptr, &before_[signal]) == 0;
    }
    ~SignalHandlerGuard() {
        for (int signal = 1; signal < NSIG; ++signal) {
            struct sigaction now {};
            if (!known_[signal] || ::sigaction(signal, nullptr, &now) != 0) continue;
            const bool same =
                now.sa_sigaction == before_[signal].sa_sigaction && now.sa_flags == before_[signal].sa_flags;
            if (!same) (void)::sigaction(signal, &before_[signal], nullptr);
        }
        if (blocked_) (void)::pthread_sigmask(SIG_SETMASK, &mask_, nullptr);
    }
    SignalHandlerGuard(const SignalHandlerGuard&) = delete;
    SignalHandlerGuard& operator=(const SignalHandlerGuard&) = delete;

private:
    std::array<struct sigaction, NSIG> before_{};
    std::array<bool, NSIG> known_{};
    sigset_t mask_{};
    bool blocked_ = false;
};

}  // namespace

void SharedLibrary::Closer::operator()(void* handle) const { dlclose(handle); }

Result<SharedLibrary> SharedLibrary::open(const std::string& path) {
    if (Status whole = check_elf_file(path); !whole.ok()) return whole;
    const SignalHandlerGuard guard;
    void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) return Status{Code::plugin_refused, last_error()};
    return SharedLibrary(handle);
}

std::optional<SharedLibrary::Symbol> SharedLibrary::find(const char* name) const {
    // dlsym also searches what the library depends on, hence the question whose symbol it is.
    void* address = dlsym(handle_.get(), name);
    if (address == nullptr) return std::nullopt;
    link_map* self = nullptr;
    link_map* owner = nullptr;
    Dl_info info{};
    dlinfo(handle_.get(), RTLD_DI_LINKMAP, &self);
    if (dladdr1(address, &info, reinterpret_cast<void**>(&owner), RTLD_DL_LINKMAP) == 0) owner = nullptr;
    return Symbol{address, owner != nullptr && owner == self, info.dli_fname != nullptr ? info.dli_fname : "?"};
}

}  // namespace npushmem
