/* The native driver: takes random steps on a C target, from one thread or from several, with the oracle of oracle.h.

   The worker runs it, with the NAME=VALUE arguments of running.py, and watches whether its steps go on.  It does one
   campaign in one process.  All that it finds is in the journal, a file that others map too: so nothing is lost when the
   target ends the process. */

#include "oracle.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <time.h>

/* The numbers of the operations are those of OPERATIONS in finding.py; the last one is none for a single thread. */
enum operation { NOTHING, ALLOCATE, FREE, CHECK, CALLOC, RESIZE, TOO_MUCH = 11, HAND_OVER = 255 };

/* ------------------------------------------------------------------------------------------------- journal

   As in journal.py. */

enum state { RUNNING, DONE, WRONG, UNUSABLE };

struct header {
    uint64_t state, rounds, nanoseconds, busy, readable; /* busy: nanoseconds of processors */
    uint64_t unused[4];
    char requirement[24];
    char message[928];
};

struct record {
    uint16_t operation, stream;
    uint32_t alignment;
    uint64_t block, size, address;
};

/* What a thread has done.  Only this thread writes it. */
struct counts {
    uint64_t steps, moved, round_start, served, freed, zeroed, resized, refused, nothings, done, waits, unused[5];
};

static struct header *header;
static struct counts *all_counts;
static struct record *all_records;

/* ------------------------------------------------------------------------------------------------- options */

/* The options that are numbers and texts, by their names in running.py. */
#define NUMBERS(OPTION) \
    OPTION(seed) OPTION(first_round) OPTION(rounds) OPTION(steps) OPTION(threads) OPTION(capacity) OPTION(milliseconds) \
    OPTION(interrupts) OPTION(attempts) OPTION(deep)
#define TEXTS(OPTION) OPTION(journal) OPTION(library) OPTION(symbols) OPTION(calls) OPTION(unjudged) OPTION(make)

static struct {
#define NUMBER(name) uint64_t name;
    NUMBERS(NUMBER)
#define TEXT(name) const char *name;
    TEXTS(TEXT)
    size_t too_much[128], too_many;
} options = {.rounds = ~(uint64_t)0, .steps = ~(uint64_t)0, .threads = 1, .capacity = 1 << 14};

/* ----------------------------------------------------------------------------------------------- randomness */

static uint64_t mixed(uint64_t value) { /* splitmix64 */
    value += 0x9E3779B97F4A7C15u;
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9u;
    value = (value ^ value >> 27) * 0x94D049BB133111EBu;
    return value ^ value >> 31;
}

static uint64_t drawn(uint64_t *state) { return mixed(*state += 0x9E3779B97F4A7C15u); }

static uint64_t below(uint64_t *state, uint64_t end) { return (drawn(state) >> 32) * end >> 32; }

/* ------------------------------------------------------------------------------------------------------ mix

   Each round has a mix of its own: some steps, some sizes, some number of live blocks.  All threads have the same mix, so
   that they meet. */

#define SIZES 1024
#define STEPS 256
#define MOST_LIVE 4096
#define LARGEST ((size_t)1 << 19)

enum order { ANY, LAST, FIRST };

struct mix {
    size_t sizes[SIZES];
    uint8_t steps[STEPS]; /* NOTHING: allocate or free, as the number of live blocks wants */
    uint32_t most, growth, length;
    enum order order;
    int hands_over, yields;
};

static size_t drawn_size(uint64_t *state, unsigned kind, size_t only) {
    uint64_t chance = below(state, 64), power = below(state, 17);
    if (chance == 0) return 0;
    switch (kind) {
    case 0: return only;
    case 1: return 1 + below(state, 256);
    case 2: return ((size_t)1 << power) + below(state, 3) - (power > 0);
    case 3: return 1 + below(state, (uint64_t)1 << below(state, 14));
    default: return chance == 1 && power < 4 ? 1 + below(state, LARGEST) : 1 + below(state, (uint64_t)1 << power);
    }
}

static void draw_mix(struct mix *mix, uint64_t state) {
    static const uint32_t live[] = {4, 8, 16, 64, 256, 1024, MOST_LIVE};
    unsigned kind = (unsigned)below(&state, 5), at = 0;
    size_t only = below(&state, 2) ? (size_t)8 << below(&state, 8) : 1 + below(&state, 1024);
    for (int i = 0; i < SIZES; i++) mix->sizes[i] = drawn_size(&state, kind, only);
    memset(mix->steps, NOTHING, sizeof mix->steps);
    for (unsigned i = below(&state, 8); i; i--) mix->steps[at++] = CHECK;
    if (target.take_zeroed.address) for (unsigned i = below(&state, 3) * 24; i; i--) mix->steps[at++] = CALLOC;
    if (target.change.address) for (unsigned i = below(&state, 3) * 24; i; i--) mix->steps[at++] = RESIZE;
    if (options.too_many && below(&state, 8) == 0) mix->steps[at++] = TOO_MUCH;
    mix->hands_over = options.threads > 1 && below(&state, 2);
    if (mix->hands_over) for (unsigned i = 1 + below(&state, 32); i; i--) mix->steps[at++] = HAND_OVER;
    mix->most = live[below(&state, sizeof live / sizeof *live)];
    mix->growth = 128 + 16 * below(&state, 4);
    mix->order = (enum order)below(&state, 3);
    mix->yields = options.threads > 1 ? (int)below(&state, 3) : 0;
    mix->length = 128u << below(&state, 7);
}

/* -------------------------------------------------------------------------------------------------- threads */

struct worker {
    pthread_t thread;
    struct counts *counts;
    struct record *records;
    struct block *live; /* a ring: blocks leave at any place, and the last one moves there */
    uint32_t first, last, next;
    uint64_t random;
    size_t largest; /* that was served */
    struct mix mix;
};

static struct worker *workers;
static int stopping; /* the threads end after their step */
static _Thread_local struct worker *self;

static int must_stop(void) { return __atomic_load_n(&stopping, __ATOMIC_RELAXED); }
static void stop(void) { __atomic_store_n(&stopping, 1, __ATOMIC_RELAXED); }

/* Blocks that a thread has put down for any other thread: so blocks are freed by threads that did not allocate them. */
#define PLACES 16
static struct {
    int taken, full;
    struct block block;
    char unused[24];
} exchange[PLACES];

static void swap_block(struct block *block, uint64_t draw, int *has) {
    struct block mine = *block;
    unsigned at = draw % PLACES;
    if (__atomic_exchange_n(&exchange[at].taken, 1, __ATOMIC_ACQUIRE)) return;
    int full = exchange[at].full;
    *block = exchange[at].block;
    exchange[at].block = mine;
    exchange[at].full = *has;
    *has = full;
    __atomic_store_n(&exchange[at].taken, 0, __ATOMIC_RELEASE);
}

static void pause_a_while(uint64_t draw) {
    static volatile unsigned turns;
    if (draw % 4) for (unsigned i = draw / 4 % 256; i; i--) (void)turns;
    else sched_yield();
}

/* Stops a thread wherever it is, also between two instructions of the target. */
static void interrupted(int signal) {
    (void)signal;
    int before = errno;
    uint64_t draw = self ? mixed(self->counts->steps ^ self->random) : 0;
    struct timespec moment = {0, (long)(draw >> 8) % 200000};
    if (draw % 4) sched_yield();
    else nanosleep(&moment, NULL);
    errno = before;
}

/* Wait for the other threads; false if the run is over. */
static int meet(void) {
    static uint64_t arrived;
    uint64_t turn = __atomic_fetch_add(&arrived, 1, __ATOMIC_ACQ_REL) / options.threads + 1;
    __atomic_store_n(&self->counts->waits, 1, __ATOMIC_RELAXED);
    while (__atomic_load_n(&arrived, __ATOMIC_ACQUIRE) < turn * options.threads && !must_stop()) sched_yield();
    __atomic_store_n(&self->counts->waits, 0, __ATOMIC_RELAXED);
    return !must_stop();
}

/* ------------------------------------------------------------------------------------------------- findings */

static const char *const NAMES[] = {
    "nothing", "allocate", "free", "check", "calloc", "resize", [TOO_MUCH] = "request_too_much", [HAND_OVER] = "hand over",
};

static int takes(uint32_t operation) { return operation == ALLOCATE || operation == CALLOC || operation == RESIZE; }

/* Describe a call: "allocate(3, 64) of thread 1". */
static void describe_call(char *text, size_t room, const struct record *record, uint64_t thread) {
    int has_size = takes(record->operation), length;
    length = snprintf(text, room, "%s(%u", NAMES[record->operation], (unsigned)record->block);
    if (has_size) length += snprintf(text + length, room - (size_t)length, ", %zu", (size_t)record->size);
    if (options.threads > 1) snprintf(text + length, room - (size_t)length, ") of thread %d", (int)thread);
    else snprintf(text + length, room - (size_t)length, ")");
}

/* What a call is looked for as: one that had memory and was not followed by a free, any call of another thread, or a free,
   which may have given the memory to two threads. */
enum role { OWNER, OTHER, FREER };

/* The last call that had memory of a block in a role; the call that is judged now is only a free. */
static const struct record *met(const struct block *block, enum role role, uint64_t *thread) {
    const struct record *found = NULL;
    uint64_t nearest = ~(uint64_t)0;
    for (uint64_t i = 0; i < options.threads; i++) {
        struct worker *worker = &workers[i];
        uint64_t steps = worker->counts->steps, oldest = steps > options.capacity ? steps - options.capacity : 0;
        for (uint64_t at = steps - (worker == self && role != FREER); at > oldest && steps - at < nearest; at--) {
            const struct record *record = &worker->records[(at - 1) % options.capacity];
            if (!record->size || !record->address || (role == OTHER && worker == self)) continue;
            if (record->address >= block->address + block->size) continue;
            if (block->address >= record->address + record->size) continue;
            if (role == FREER && record->operation != FREE) continue;
            if (role == OWNER && !takes(record->operation)) break; /* this thread has freed it */
            found = record, nearest = steps - at, *thread = i;
            break;
        }
    }
    return found;
}

static void wrong(const char *requirement, const struct block *block, const char *what) {
    static int taken;
    char call[96], other[96] = "", cause[96] = "";
    uint64_t me = (uint64_t)(self - workers), thread = 0;
    if (strstr(options.unjudged, requirement)) return;
    if (!__atomic_exchange_n(&taken, 1, __ATOMIC_ACQ_REL)) {
        int overlap = !strcmp(requirement, "A02-no-overlap");
        const struct record *before = met(block, overlap ? OWNER : OTHER, &thread);
        if (!before) before = met(block, OTHER, &thread);
        if (overlap && before && before->address == block->address) requirement = "A01-distinct-pointers";
        describe_call(call, sizeof call, &self->records[(self->counts->steps - 1) % options.capacity], me);
        if (before) describe_call(other, sizeof other, before, thread);
        const struct record *blame = options.threads > 1 ? met(block, FREER, &thread) : NULL;
        if (blame && blame != before) describe_call(cause, sizeof cause, blame, thread);
        snprintf(header->requirement, sizeof header->requirement, "%s", requirement);
        snprintf(
            header->message, sizeof header->message, "block %u of %zu bytes at 0x%zx: %s; in %s%s%s%s%s", block->number,
            block->size, (size_t)block->address, what, call, before ? ", which met " : "", other,
            *cause ? "; its memory was last given back by " : "", cause
        );
        __atomic_store_n(&header->state, WRONG, __ATOMIC_RELEASE);
        stop();
    }
    __atomic_store_n(&self->counts->done, 1, __ATOMIC_RELEASE);
    for (;;) pause();
}

/* ---------------------------------------------------------------------------------------------------- steps */

/* Each call is in the journal before it is made. */
static struct record *note(enum operation operation, uint32_t number, size_t size, uintptr_t address) {
    uint64_t steps = self->counts->steps;
    struct record *record = &self->records[steps & (options.capacity - 1)];
    *record = (struct record){.operation = operation, .block = number, .size = size, .address = address};
    __atomic_store_n(&self->counts->steps, steps + 1, __ATOMIC_RELEASE);
    return record;
}

/* A null pointer.  Without live blocks there is room for what has been served before. */
static void judge_refusal(const struct block *asked) {
    if (!asked->size) self->counts->nothings++;
    judge_null(asked);
    if (!asked->size || !promises.reuse || options.threads > 1 || self->first != self->last || asked->size > self->largest) return;
    for (uint64_t i = 0; i < options.attempts; i++) {
        if (must_stop()) return;
        void *pointer = take(asked->size);
        if (!pointer) continue;
        give(pointer, asked->size);
        return;
    }
    wrong("A16-no-leaks", asked, "it is refused with nothing in use; as many bytes were served before");
}

/* A block of zero bytes does not have the memory of another block. */
static void judge_nothing(const struct block *block) {
    self->counts->nothings++;
    if (options.threads > 1 || !claimed(block->address)) return;
    for (uint32_t i = self->first; i != self->last; i++) {
        const struct block *other = &self->live[i % MOST_LIVE];
        if (block->address >= other->address && block->address - other->address < other->size)
            wrong("A09-zero-size", block, "a request for zero bytes gave the memory of a live block");
    }
}

/* The result of a request becomes a live block, or is judged as null. */
static void admit(struct block *block, void *pointer, struct record *record, int zeroed) {
    block->address = record->address = (uintptr_t)pointer;
    if (!pointer) {
        judge_refusal(block);
        return;
    }
    if (block->size) self->counts->served++, self->counts->zeroed += (uint64_t)zeroed;
    else judge_nothing(block);
    if (block->size > self->largest) self->largest = block->size;
    judge_block(block, zeroed);
    self->live[self->last++ % MOST_LIVE] = *block;
}

static void allocate(size_t size, int zeroed) {
    struct block block = {.size = size, .number = self->next++, .key = drawn(&self->random)};
    struct record *record = note(zeroed ? CALLOC : ALLOCATE, block.number, size, 0);
    admit(&block, called(zeroed ? &target.take_zeroed : &target.take, NULL, size, 0), record, zeroed);
}

static void give_back(const struct block *block) {
    note(FREE, block->number, block->size, block->address);
    judge_contents("A04-contents-kept", block, block->size);
    unclaim(block->address, block->size);
    give((void *)block->address, block->size);
    self->counts->freed++;
}

/* Change the size of a block; what it had must still be there, wherever it is now. */
static void resize(struct block *block, size_t size) {
    if (!size || !block->size) return;
    struct record *record = note(RESIZE, block->number, size, 0);
    struct block moved = *block;
    judge_contents("A04-contents-kept", block, block->size);
    unclaim(block->address, block->size);
    void *pointer = called(&target.change, (void *)block->address, size, block->size);
    record->address = (uintptr_t)pointer;
    if (!pointer) {
        judge_null(&(struct block){.size = size, .number = block->number});
        if (!claim(block->address, block->size)) wrong("A02-no-overlap", block, "it was refused a resize, and has gone");
        judge_contents("A04-contents-kept", block, block->size);
        return;
    }
    self->counts->resized++;
    moved.address = (uintptr_t)pointer;
    block->address = moved.address;
    block->size = size;
    judge_contents("A14-resize-keeps", &moved, moved.size < size ? moved.size : size);
    block->key = drawn(&self->random);
    judge_block(block, 0);
}

static void request_too_much(uint64_t draw) {
    size_t size = options.too_much[draw % options.too_many];
    struct block block = {.size = size};
    note(TOO_MUCH, 0, size, 0);
    self->counts->refused++;
    block.address = (uintptr_t)take(size);
    if (block.address) wrong("A06-out-of-memory", &block, "a request for more than there can be was met");
    else if (!promises.null) wrong("A06-out-of-memory", &block, "the request gave null, which was not promised");
}

static struct block *any_live(uint64_t draw) {
    uint64_t live = self->last - self->first;
    return &self->live[(self->first + ((draw & 0xFFFFFFFF) * live >> 32)) % MOST_LIVE];
}

static void take_out(struct block *place) {
    *place = self->live[--self->last % MOST_LIVE];
}

static void give_one_back(uint64_t draw) {
    struct block block;
    if (self->mix.order == FIRST) {
        block = self->live[self->first++ % MOST_LIVE];
    } else {
        struct block *place = self->mix.order == LAST ? &self->live[(self->last - 1) % MOST_LIVE] : any_live(draw);
        block = *place;
        take_out(place);
    }
    give_back(&block);
}

/* Put a block down for another thread, and take up what lies there. */
static void hand_over(uint64_t draw) {
    struct block block = {0}, *place = self->first != self->last ? any_live(draw) : NULL;
    int has = place != NULL;
    if (place) {
        block = *place;
        take_out(place);
    }
    note(HAND_OVER, block.number, 0, 0);
    swap_block(&block, draw >> 32, &has);
    if (!has) return;
    if (self->last - self->first < self->mix.most) self->live[self->last++ % MOST_LIVE] = block;
    else give_back(&block);
}

static void step(void) {
    const struct mix *mix = &self->mix;
    uint64_t draw = drawn(&self->random);
    uint32_t live = self->last - self->first;
    enum operation operation = (enum operation)mix->steps[draw & (STEPS - 1)];
    size_t size = mix->sizes[draw >> 8 & (SIZES - 1)];
    int grows = live < mix->most && ((draw >> 18 & 255) < mix->growth || !live);
    draw >>= 26;
    if (mix->yields && !(draw & (mix->yields == 1 ? 15 : 255))) pause_a_while(draw >> 8);
    switch (operation) {
    case CHECK:
        if (!live) break;
        struct block *looked = any_live(draw);
        note(CHECK, looked->number, 0, 0);
        judge_contents("A04-contents-kept", looked, looked->size);
        return;
    case CALLOC:
        if (live >= mix->most) break;
        allocate(size, 1);
        return;
    case RESIZE:
        if (!live) break;
        resize(any_live(draw), size);
        return;
    case TOO_MUCH: request_too_much(draw); return;
    case HAND_OVER: hand_over(draw); return;
    default: break;
    }
    if (grows) allocate(size, 0);
    else if (live) give_one_back(draw);
}

/* --------------------------------------------------------------------------------------------------- rounds */

static void give_all_back(void) {
    while (self->first != self->last && !must_stop()) give_one_back(0);
}

/* What was put down belongs to nobody: the first thread frees it while the others wait. */
static void clear_exchange(void) {
    if (self != workers) return;
    for (int i = 0; i < PLACES; i++) {
        if (exchange[i].full) give_back(&exchange[i].block);
        exchange[i].full = 0;
    }
}

static void take_round(uint64_t number) {
    uint64_t state = mixed(options.seed ^ mixed(number)), me = (uint64_t)(self - workers);
    draw_mix(&self->mix, state);
    self->random = mixed(state ^ mixed(~me));
    self->next = 0;
    self->counts->round_start = self->counts->steps;
    uint32_t length = options.threads > 1 ? self->mix.length * 4 : self->mix.length;
    for (uint32_t i = 0; i < length && !must_stop(); i++) step();
    give_all_back();
}

static void *work(void *argument) {
    self = argument;
    for (uint64_t i = 0; i < options.rounds && meet(); i++) {
        /* By each thread, because any of them may end the process before another one has begun. */
        __atomic_store_n(&header->rounds, i + 1, __ATOMIC_RELAXED);
        take_round(options.first_round + i);
        if (options.threads > 1) {
            if (!meet()) break;
            clear_exchange();
        }
        if (self == workers && self->counts->steps * options.threads >= options.steps) stop();
    }
    __atomic_store_n(&self->counts->done, 1, __ATOMIC_RELEASE);
    return NULL;
}

/* ------------------------------------------------------------------------------------------------ main thread

   It watches the time of the others, and interrupts them at random. */

static uint64_t now(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void finish(enum state state, uint64_t began) __attribute__((noreturn));
static void finish(enum state state, uint64_t began) {
    uint64_t running = RUNNING;
    header->nanoseconds = now(CLOCK_MONOTONIC) - began;
    header->busy = now(CLOCK_PROCESS_CPUTIME_ID);
    header->readable = readable == 1;
    __atomic_compare_exchange_n(&header->state, &running, state, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
    _exit(0);
}

static int all_done(void) {
    for (uint64_t i = 0; i < options.threads; i++)
        if (!__atomic_load_n(&all_counts[i].done, __ATOMIC_ACQUIRE)) return 0;
    return 1;
}

#define INTERRUPTS SIGURG /* ignored by who does not expect it */

static void interrupt_one(uint64_t *random) {
    uint64_t chosen = below(random, options.threads);
    struct timespec moment = {0, 20000 + (long)below(random, 200000)};
    if (!__atomic_load_n(&all_counts[chosen].done, __ATOMIC_ACQUIRE)) pthread_kill(workers[chosen].thread, INTERRUPTS);
    nanosleep(&moment, NULL);
}

static void watch(void) {
    uint64_t began = now(CLOCK_MONOTONIC), random = mixed(options.seed), over = 0;
    struct timespec moment = {0, 1000000};
    while (!all_done()) {
        uint64_t time = now(CLOCK_MONOTONIC);
        if (time - began > options.milliseconds * 1000000u) stop();
        if (__atomic_load_n(&header->state, __ATOMIC_ACQUIRE) == WRONG && !over) over = time;
        if (over && time - over > 100000000u) break; /* the others may wait for the one that has stopped */
        if (options.interrupts && !must_stop()) interrupt_one(&random);
        else nanosleep(&moment, NULL);
    }
    finish(DONE, began);
}

/* -------------------------------------------------------------------------------------------------- opening */

static void unusable(const char *what) {
    snprintf(header->message, sizeof header->message, "%s", what);
    finish(UNUSABLE, now(CLOCK_MONOTONIC));
}

static void read_option(const char *name, char *value) {
    uint64_t number = strtoull(value, NULL, 10);
#define READ_NUMBER(option) if (!strcmp(name, #option)) options.option = number;
    NUMBERS(READ_NUMBER)
#define READ_TEXT(option) if (!strcmp(name, #option)) options.option = value;
    TEXTS(READ_TEXT)
#define READ(promise) if (!strcmp(name, #promise)) promises.promise = number;
    PROMISES(READ)
    if (!strcmp(name, "readable") && number < 2) readable = (int)number;
    if (!strcmp(name, "too_much"))
        for (; *value && options.too_many < 128; value += *value == ',')
            options.too_much[options.too_many++] = strtoull(value, &value, 10);
}

static int open_journal(void) {
    size_t each = sizeof(struct counts) + options.capacity * sizeof(struct record);
    size_t size = sizeof(struct header) + options.threads * each;
    int file = open(options.journal, O_RDWR | O_CLOEXEC);
    if (file < 0 || ftruncate(file, (off_t)size)) return 0;
    header = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (header == MAP_FAILED) return 0;
    all_counts = (struct counts *)(header + 1);
    all_records = (struct record *)(all_counts + options.threads);
    return 1;
}

/* The symbols and the calls are lists with commas; a call has a letter for each argument. */
static void open_target(void) {
    struct function *places[] = {&target.take, &target.give, &target.take_zeroed, &target.change};
    char name[256];
    const char *rest = options.symbols, *call = options.calls;
    void *library = dlopen(options.library, RTLD_NOW | RTLD_LOCAL | (options.deep ? RTLD_DEEPBIND : 0));
    if (!library) unusable(dlerror());
    for (int i = 0; i < 4 && *rest; i++) {
        size_t length = strcspn(rest, ",");
        if (length >= sizeof name) unusable("a symbol has too long a name");
        memcpy(name, rest, length);
        name[length] = 0;
        if (length && !(places[i]->address = dlsym(library, name))) unusable(dlerror());
        rest += length + (rest[length] == ',');
        for (; *call && *call != ','; call++)
            places[i]->arguments[places[i]->count++] = strchr(ARGUMENTS, *call) ? strchr(ARGUMENTS, *call) - ARGUMENTS : 0;
        call += *call == ',';
    }
    if (!options.make || !*options.make) return;
    void *(*make)(void) = (void *(*)(void))dlsym(library, options.make);
    if (!make) unusable(dlerror());
    object = (uintptr_t)make();
    if (!object) unusable("the library made no allocator");
}

int main(int count, char **arguments) {
    for (int i = 1; i < count; i++) {
        char *value = strchr(arguments[i], '=');
        if (value) *value = 0, read_option(arguments[i], value + 1);
    }
    if (!open_journal()) return 2;
    open_target();
    claims_begin(strstr(options.unjudged, "A03-aligned") ? 1 : promises.alignment, (int)options.threads);
    struct sigaction action = {.sa_handler = interrupted, .sa_flags = SA_RESTART};
    if (options.interrupts) sigaction(INTERRUPTS, &action, NULL);
    workers = calloc(options.threads, sizeof *workers);
    for (uint64_t i = 0; i < options.threads; i++) {
        workers[i].counts = &all_counts[i];
        workers[i].records = all_records + i * options.capacity;
        workers[i].live = calloc(MOST_LIVE, sizeof(struct block));
    }
    for (uint64_t i = 0; i < options.threads; i++)
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i])) unusable("no thread can be made");
    watch();
}
