/* Allocates and frees all the time, for the thread beside which a process is forked.

   In Python such a thread would be between two calls whenever the process is forked, because only one of them has the
   lock of the interpreter. */

#include <stddef.h>
#include <stdint.h>

void keep_busy(void *(*take)(size_t), void (*give)(void *), size_t turns, int *begun, const int *ended) {
    for (size_t i = 0; i < turns && !__atomic_load_n(ended, __ATOMIC_ACQUIRE); i++) {
        void *pointer = take(i % 1024 == 1023 ? 65536 : i % 16 == 15 ? 1000 : 64);
        if (pointer) give(pointer);
        __atomic_store_n(begun, 1, __ATOMIC_RELEASE);
    }
}
