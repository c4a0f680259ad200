#include "bootstrap/shmem/calls.hpp"

#include <dlfcn.h>

#include <string_view>

namespace npushmem::shmem {
namespace {

template <class Function>
bool look_up(const char* name, Function& into) {
    into = reinterpret_cast<Function>(::dlsym(RTLD_DEFAULT, name));
    return into != nullptr;
}

// npushmem offers the same names to programs: they would lead back here.
bool is_own(const void* function) {
    Dl_info where{};
    return ::dladdr(function, &where) != 0 && where.dli_fname != nullptr &&
           std::string_view(where.dli_fname).find("libnpushmem") != std::string_view::npos;
}

// The standard's question is young; Open MPI's library has a flag of its own.
Calls::Running ask_whether_running() {
    void (*query)(int*) = nullptr;
    if (look_up("shmem_query_initialized", query)) {
        int answer = 0;
        query(&answer);
        return answer != 0 ? Calls::Running::yes : Calls::Running::no;
    }
    const auto* flag = static_cast<const bool*>(::dlsym(RTLD_DEFAULT, "oshmem_shmem_initialized"));
    if (flag == nullptr) return Calls::Running::unknown;
    return *flag ? Calls::Running::yes : Calls::Running::no;
}

}  // namespace

Result<Calls> Calls::of_process() {
    Calls calls;
    const bool all = look_up("shmem_my_pe", calls.my_pe) && look_up("shmem_n_pes", calls.n_pes) &&
                     look_up("shmem_malloc", calls.malloc) && look_up("shmem_barrier_all", calls.barrier_all) &&
                     look_up("shmem_putmem", calls.putmem) && look_up("shmem_fence", calls.fence) &&
                     look_up("shmem_quiet", calls.quiet) && look_up("shmem_longlong_p", calls.longlong_p) &&
                     look_up("shmem_longlong_g", calls.longlong_g);
    if (!all || is_own(reinterpret_cast<const void*>(calls.my_pe)))
        return Status{Code::state,
                      "this process has no other OpenSHMEM library: link the program with one, or choose "
                      "another NPUSHMEM_BOOTSTRAP"};
    calls.running = ask_whether_running();
    return calls;
}

}  // namespace npushmem::shmem
