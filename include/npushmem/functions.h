/* Every function of the interface, once, as rows for whoever needs all of them: declarations under a prefix,
 * definitions, forwarders, overloads. Included once for each use, after the includer has defined the row macros that it
 * wants (the others expand to nothing); they are undefined at the end.
 *
 *   NPUSHMEM_TYPED_CTX(NAME, TYPE, OP, RET, ARGS, PARAMETERS...)    <NAME>_<OP>, and ctx_<NAME>_<OP> with a context
 * first NPUSHMEM_TYPED(NAME, TYPE, OP, RET, ARGS, PARAMETERS...)        <NAME>_<OP> NPUSHMEM_SIZED_CTX(BITS, BYTES,
 * PRE, POST, RET, ARGS, ...)      <PRE><BITS><POST>, and ctx_... NPUSHMEM_UNTYPED_CTX(OP, RET, ARGS, PARAMETERS...)
 * <OP>, and ctx_<OP> NPUSHMEM_PLAIN(OP, RET, ARGS, PARAMETERS...)                    <OP> NPUSHMEM_OLD_REDUCTION(NAME,
 * TYPE, OP, ARGS, PARAMETERS...)     <NAME>_<OP>_to_all, returning void NPUSHMEM_OLD_ATOMIC(NAME, TYPE, OP, NEW, RET,
 * ARGS, ...)        <NAME>_<OP>, which does what <NAME>_<NEW> does NPUSHMEM_OLD_WAIT(NAME, TYPE, OP, RET, ARGS,
 * PARAMETERS...)     <NAME>_<OP> NPUSHMEM_OLD_WAIT_UNTIL(OP, RET, ARGS, PARAMETERS...)           <OP>, which C++ has as
 * an overload as well
 *
 * ARGS are the parameters' names in brackets. With NPUSHMEM_DISTINCT_TYPES defined, typed rows come once for each type
 * that the compiler tells apart. */
#ifdef NPUSHMEM_DISTINCT_TYPES
#define NPUSHMEM_RMA_TYPES NPUSHMEM_FOR_EACH_DISTINCT_RMA_TYPE
#define NPUSHMEM_ATOMIC_TYPES NPUSHMEM_FOR_EACH_DISTINCT_ATOMIC_TYPE
#define NPUSHMEM_EXTENDED_ATOMIC_TYPES NPUSHMEM_FOR_EACH_DISTINCT_EXTENDED_ATOMIC_TYPE
#define NPUSHMEM_BITWISE_TYPES NPUSHMEM_FOR_EACH_DISTINCT_BITWISE_TYPE
#define NPUSHMEM_BITWISE_REDUCTION_TYPES NPUSHMEM_FOR_EACH_DISTINCT_BITWISE_REDUCTION_TYPE
#define NPUSHMEM_ARITHMETIC_REDUCTION_TYPES NPUSHMEM_FOR_EACH_DISTINCT_ARITHMETIC_REDUCTION_TYPE
#else
#define NPUSHMEM_RMA_TYPES NPUSHMEM_FOR_EACH_RMA_TYPE
#define NPUSHMEM_ATOMIC_TYPES NPUSHMEM_FOR_EACH_ATOMIC_TYPE
#define NPUSHMEM_EXTENDED_ATOMIC_TYPES NPUSHMEM_FOR_EACH_EXTENDED_ATOMIC_TYPE
#define NPUSHMEM_BITWISE_TYPES NPUSHMEM_FOR_EACH_BITWISE_TYPE
#define NPUSHMEM_BITWISE_REDUCTION_TYPES NPUSHMEM_FOR_EACH_BITWISE_REDUCTION_TYPE
#define NPUSHMEM_ARITHMETIC_REDUCTION_TYPES NPUSHMEM_FOR_EACH_ARITHMETIC_REDUCTION_TYPE
#endif

#ifndef NPUSHMEM_TYPED_CTX
#define NPUSHMEM_TYPED_CTX(...)
#endif
#ifndef NPUSHMEM_TYPED
#define NPUSHMEM_TYPED(...)
#endif
#ifndef NPUSHMEM_SIZED_CTX
#define NPUSHMEM_SIZED_CTX(...)
#endif
#ifndef NPUSHMEM_UNTYPED_CTX
#define NPUSHMEM_UNTYPED_CTX(...)
#endif
#ifndef NPUSHMEM_PLAIN
#define NPUSHMEM_PLAIN(...)
#endif
#ifndef NPUSHMEM_OLD_REDUCTION
#define NPUSHMEM_OLD_REDUCTION(...)
#endif
#ifndef NPUSHMEM_OLD_ATOMIC
#define NPUSHMEM_OLD_ATOMIC(...)
#endif
#ifndef NPUSHMEM_OLD_WAIT
#define NPUSHMEM_OLD_WAIT(...)
#endif
#ifndef NPUSHMEM_OLD_WAIT_UNTIL
#define NPUSHMEM_OLD_WAIT_UNTIL(...)
#endif

#ifdef NPUSHMEM_ONLY
#include NPUSHMEM_ONLY
#else
#include "npushmem/functions/active_sets.h"
#include "npushmem/functions/atomics.h"
#include "npushmem/functions/collectives.h"
#include "npushmem/functions/deprecated.h"
#include "npushmem/functions/rma.h"
#include "npushmem/functions/setup.h"
#include "npushmem/functions/teams.h"
#include "npushmem/functions/waits.h"
#endif

#undef NPUSHMEM_RMA_TYPES
#undef NPUSHMEM_ATOMIC_TYPES
#undef NPUSHMEM_EXTENDED_ATOMIC_TYPES
#undef NPUSHMEM_BITWISE_TYPES
#undef NPUSHMEM_BITWISE_REDUCTION_TYPES
#undef NPUSHMEM_ARITHMETIC_REDUCTION_TYPES
#undef NPUSHMEM_TYPED_CTX
#undef NPUSHMEM_TYPED
#undef NPUSHMEM_SIZED_CTX
#undef NPUSHMEM_UNTYPED_CTX
#undef NPUSHMEM_PLAIN
#undef NPUSHMEM_OLD_REDUCTION
#undef NPUSHMEM_OLD_ATOMIC
#undef NPUSHMEM_OLD_WAIT
#undef NPUSHMEM_OLD_WAIT_UNTIL
