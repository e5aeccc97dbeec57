/* Seeded races: pools of small blocks that one thread can use, and several cannot.  The window of each but one is a few
   instructions long, and nothing in it waits.  tests/spec/fuzz/test_fuzz_native.py compiles this file, and the fuzzer's
   native driver finds each.  Blocks of other sizes come from the C library. */

#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define BLOCKS 4096
#define ROOM 64

struct slot { struct slot *next; char rest[ROOM - sizeof(struct slot *)]; };

static int is_in(const struct slot *slots, const void *pointer) {
    return (uintptr_t)pointer - (uintptr_t)slots < BLOCKS * sizeof *slots;
}

/* A free list that is locked when a block comes back, and not when one leaves. */
static struct slot pop_slots[BLOCKS], *volatile pop_head;
static volatile int pop_used;
static pthread_mutex_t pop_lock = PTHREAD_MUTEX_INITIALIZER;
void *pop_malloc(size_t size) {
    if (size > ROOM) return malloc(size);
    struct slot *head = pop_head;
    if (head) {
        pop_head = head->next;
        return head;
    }
    int at = __atomic_fetch_add(&pop_used, 1, __ATOMIC_RELAXED);
    return at < BLOCKS ? &pop_slots[at] : malloc(ROOM);
}
void pop_free(void *pointer) {
    if (!is_in(pop_slots, pointer)) { free(pointer); return; }
    struct slot *slot = pointer;
    pthread_mutex_lock(&pop_lock);
    slot->next = pop_head;
    pop_head = slot;
    pthread_mutex_unlock(&pop_lock);
}

/* The same free list, where a thread gives way in the window: another one comes in, on one busy processor too. */
void *yield_malloc(size_t size) {
    struct slot *head = size > ROOM ? NULL : pop_head;
    if (!head) return pop_malloc(size);
    sched_yield();
    pop_head = head->next;
    return head;
}

/* A ring of free blocks, whose position is a counter that no lock guards: two threads can read the same value. */
static struct slot count_slots[BLOCKS], *count_ring[BLOCKS];
static volatile uint32_t count_taken, count_given;
static pthread_mutex_t count_lock = PTHREAD_MUTEX_INITIALIZER;
static void __attribute__((constructor)) count_begin(void) {
    for (int i = 0; i < BLOCKS; i++) count_ring[i] = &count_slots[i];
    count_given = BLOCKS;
}
void *count_malloc(size_t size) {
    if (size > ROOM || count_given - count_taken < BLOCKS / 2) return malloc(size < ROOM ? ROOM : size);
    return count_ring[count_taken++ % BLOCKS];
}
void count_free(void *pointer) {
    if (!is_in(count_slots, pointer)) { free(pointer); return; }
    pthread_mutex_lock(&count_lock);
    count_ring[count_given % BLOCKS] = pointer;
    count_given++;
    pthread_mutex_unlock(&count_lock);
}

/* A free list without locks that forgets that its head may have left and come back: ABA. */
static struct slot aba_slots[BLOCKS], *aba_head;
static int aba_used;
void *aba_malloc(size_t size) {
    if (size > ROOM) return malloc(size);
    struct slot *head = __atomic_load_n(&aba_head, __ATOMIC_ACQUIRE);
    while (head) {
        struct slot *next = __atomic_load_n(&head->next, __ATOMIC_RELAXED);
        if (is_in(aba_slots, next) || !next) {
            if (__atomic_compare_exchange_n(&aba_head, &head, next, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) return head;
        } else {
            head = __atomic_load_n(&aba_head, __ATOMIC_ACQUIRE); /* it is in use by now */
        }
    }
    int at = __atomic_fetch_add(&aba_used, 1, __ATOMIC_RELAXED);
    return at < BLOCKS ? &aba_slots[at] : malloc(ROOM);
}
void aba_free(void *pointer) {
    if (!is_in(aba_slots, pointer)) { free(pointer); return; }
    struct slot *slot = pointer, *head = __atomic_load_n(&aba_head, __ATOMIC_RELAXED);
    do __atomic_store_n(&slot->next, head, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&aba_head, &head, slot, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED));
}

/* A flag for each block, which is tested and then set. */
static struct slot flag_slots[BLOCKS];
static volatile char flag_busy[BLOCKS];
void *flag_malloc(size_t size) {
    if (size > ROOM) return malloc(size);
    for (int i = 0; i < 64; i++) {
        if (flag_busy[i]) continue;
        flag_busy[i] = 1;
        return &flag_slots[i];
    }
    return malloc(ROOM);
}
void flag_free(void *pointer) {
    if (!is_in(flag_slots, pointer)) { free(pointer); return; }
    flag_busy[(struct slot *)pointer - flag_slots] = 0;
}

/* A lock that is tested and then taken. */
static struct slot lock_slots[BLOCKS], *lock_head;
static volatile int lock_taken;
static int lock_used;
static void lock(void) {
    while (lock_taken) sched_yield();
    lock_taken = 1;
}
void *lock_malloc(size_t size) {
    if (size > ROOM) return malloc(size);
    lock();
    struct slot *found = lock_head;
    if (found) lock_head = found->next;
    else if (lock_used < BLOCKS) found = &lock_slots[lock_used++];
    lock_taken = 0;
    return found ? found : malloc(ROOM);
}
void lock_free(void *pointer) {
    if (!is_in(lock_slots, pointer)) { free(pointer); return; }
    struct slot *slot = pointer;
    lock();
    slot->next = lock_head;
    lock_head = slot;
    lock_taken = 0;
}

/* Each thread has a free list of its own; a block goes back to the list of the thread that has made it, from any thread,
   without a lock.  Only a block that another thread frees shows it. */
static struct owned { struct slot slot; struct slot **home; } home_slots[BLOCKS];
static int home_used;
static _Thread_local struct slot *home_list;
void *home_malloc(size_t size) {
    if (size > ROOM) return malloc(size);
    struct slot *found = home_list;
    if (found) {
        home_list = found->next;
        return found;
    }
    int at = __atomic_fetch_add(&home_used, 1, __ATOMIC_RELAXED);
    if (at >= BLOCKS) return malloc(ROOM);
    home_slots[at].home = &home_list;
    return &home_slots[at].slot;
}
void home_free(void *pointer) {
    if ((uintptr_t)pointer - (uintptr_t)home_slots >= sizeof home_slots) { free(pointer); return; }
    struct slot *slot = pointer, **home = ((struct owned *)pointer)->home;
    slot->next = *home;
    *home = slot;
}

/* Two locks, taken in one order by malloc and in the other by free. */
static pthread_mutex_t order_first = PTHREAD_MUTEX_INITIALIZER, order_second = PTHREAD_MUTEX_INITIALIZER;
void *order_malloc(size_t size) {
    pthread_mutex_lock(&order_first);
    pthread_mutex_lock(&order_second);
    void *pointer = malloc(size);
    pthread_mutex_unlock(&order_second);
    pthread_mutex_unlock(&order_first);
    return pointer;
}
void order_free(void *pointer) {
    pthread_mutex_lock(&order_second);
    pthread_mutex_lock(&order_first);
    free(pointer);
    pthread_mutex_unlock(&order_first);
    pthread_mutex_unlock(&order_second);
}

/* The same pool as it should be, as a control. */
static struct slot good_slots[BLOCKS], *good_head;
static int good_used;
static pthread_mutex_t good_lock = PTHREAD_MUTEX_INITIALIZER;
void *good_malloc(size_t size) {
    if (size > ROOM) return malloc(size);
    pthread_mutex_lock(&good_lock);
    struct slot *found = good_head;
    if (found) good_head = found->next;
    else if (good_used < BLOCKS) found = &good_slots[good_used++];
    pthread_mutex_unlock(&good_lock);
    return found ? found : malloc(ROOM);
}
void good_free(void *pointer) {
    if (!is_in(good_slots, pointer)) { free(pointer); return; }
    struct slot *slot = pointer;
    pthread_mutex_lock(&good_lock);
    slot->next = good_head;
    good_head = slot;
    pthread_mutex_unlock(&good_lock);
}
