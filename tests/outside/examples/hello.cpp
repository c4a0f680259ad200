// SPDX-License-Identifier: BSD-3-Clause
// hello.c in C++: the library starts and ends with an object, and the symmetric memory has an owner.
//
//     $ npushmem-run -n 3 ./hello_cpp
//     PE 0 received 2
//     PE 1 received 0
//     PE 2 received 1
//
// The lines may appear in any order.
#include <npushmem.h>

#include <iostream>
#include <memory>
#include <string>

namespace {

struct Library {
    Library() { npushmem_init(); }
    ~Library() { npushmem_finalize(); }
    Library(const Library&) = delete;
    Library& operator=(const Library&) = delete;
};

// Frees symmetric memory. npushmem_free is collective: all PEs must destroy their objects in the same order.
struct Free {
    void operator()(void* object) const { npushmem_free(object); }
};

// One value on every PE. Null, with a report of the library, if the symmetric heap is full.
template <class T>
std::unique_ptr<T, Free> make_symmetric() {
    return std::unique_ptr<T, Free>(static_cast<T*>(npushmem_calloc(1, sizeof(T))));
}

}  // namespace

int main() {
    const Library library;  // constructed first, so destroyed after `slot`
    const int me = npushmem_my_pe();
    const auto slot = make_symmetric<long>();
    if (slot == nullptr) return 1;
    npushmem_long_p(slot.get(), me, (me + 1) % npushmem_n_pes());
    npushmem_barrier_all();
    // One string, so that the lines of two PEs do not mix.
    std::cout << "PE " + std::to_string(me) + " received " + std::to_string(*slot) + "\n";
}
