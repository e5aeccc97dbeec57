/* --- the harness */

#include <stdio.h>

extern void take_symbol(void) __asm__(SYMBOL(TAKE));
extern void give_symbol(void) __asm__(SYMBOL(GIVE));
#ifdef TAKE_ZEROED
extern void take_zeroed_symbol(void) __asm__(SYMBOL(TAKE_ZEROED));
#endif
#ifdef CHANGE
extern void change_symbol(void) __asm__(SYMBOL(CHANGE));
#endif
#ifdef RESET
extern void reset_symbol(void) __asm__(SYMBOL(RESET));
#endif

static const struct target target = {
    .abi = ABI,
    .take = (void *)take_symbol,
    .give = (void *)give_symbol,
#ifdef TAKE_ZEROED
    .take_zeroed = (void *)take_zeroed_symbol,
#endif
#ifdef CHANGE
    .change = (void *)change_symbol,
#endif
};
static const struct promises promises = PROMISES;

/* ------------------------------------------------------------------------------------------------- program

   The calls of one input, as they are shown. */

#define MOST_CALLS 65536
#define MOST_LIVE 256
#define MOST_BYTES ((size_t)16 << 20) /* of all requests of an input, because untouched pages are slow */

enum operation { ALLOCATE, FREE, CHECK, CALLOC, RESIZE, TOO_MUCH };

static const char *const NAMES[] = {"allocate", "free", "check", "calloc", "resize", "request_too_much"};
static const char *const FORMATS[] = {"%u, %zu", "%u", "%u", "%u, %zu", "%u, %zu", "%.0u%zu"};

static struct call {
    enum operation operation;
    uint32_t number;
    size_t size;
} calls[MOST_CALLS];
static uint32_t made;

static struct block live[MOST_LIVE];
static uint32_t count, following;
static size_t bytes, largest;
static int shows; /* each call before it is made: of a target that ends the process, this is what is left */

static void show(const struct call *call) {
    fprintf(stderr, "    driver.%s(", NAMES[call->operation]);
    fprintf(stderr, FORMATS[call->operation], call->number, call->size);
    fprintf(stderr, ")\n");
}

static void show_begin(void) {
    fprintf(stderr, "\nfrom syncedmem.spec.fuzz import driver_of\nwith driver_of(%s) as driver:\n", ARGUMENTS);
}

static void wrong(const char *requirement, const struct block *block, const char *what) {
    int overlaps = !strcmp(requirement, "A02-no-overlap");
    for (uint32_t i = 0; overlaps && i < count; i++)
        if (live[i].number != block->number && live[i].address == block->address) requirement = "A01-distinct-pointers";
    fprintf(stderr, "\n%s: block %u of %zu bytes: %s\n", requirement, block->number, block->size, what);
    if (!shows) {
        show_begin();
        for (uint32_t i = 0; i < made; i++) show(&calls[i]);
    }
    abort();
}

static void note(enum operation operation, uint32_t number, size_t size) {
    calls[made] = (struct call){operation, number, size};
    if (shows) show(&calls[made]);
    made++;
}

/* --------------------------------------------------------------------------------------------------- calls */

static uint64_t key_of(uint32_t number) { return (number + 1 + (uint64_t)made) * 0x9E3779B97F4A7C15u; }

static void allocate(size_t size, int zeroed) {
    struct block block = {.size = size, .number = following, .key = key_of(following)};
    if (count == MOST_LIVE || bytes + size > MOST_BYTES) return;
    bytes += size;
    following++;
    note(zeroed ? CALLOC : ALLOCATE, block.number, size);
    block.address = (uintptr_t)(zeroed ? target_take_zeroed(&target, size) : target_take(&target, size));
    if (!block.address) {
        judge_null(&promises, &block);
        if (size && !count && size <= largest) judge_room(&target, &block);
        return;
    }
    if (!size && claimed(block.address))
        for (uint32_t i = 0; i < count; i++)
            if (block.address - live[i].address < live[i].size)
                wrong("A09-zero-size", &block, "a request for zero bytes gave the memory of a live block");
    judge_block(&promises, &block, zeroed);
    largest = size > largest ? size : largest;
    live[count++] = block;
}

static void give_back(uint32_t at) {
    struct block block = live[at];
    note(FREE, block.number, 0);
    memmove(&live[at], &live[at + 1], (--count - at) * sizeof *live);
    judge_contents("A04-contents-kept", &block, block.size);
    unclaim(block.address, block.size);
    target_give(&target, (void *)block.address, block.size);
}

static void resize(struct block *block, size_t size) {
    uint64_t told;
    if (!size || !block->size || bytes + size > MOST_BYTES) return;
    bytes += size;
    note(RESIZE, block->number, size);
    change_judged(&target, &promises, block, size, key_of(block->number), &told);
}

static void request_too_much(unsigned which) {
    static const size_t sizes[] = {(size_t)1 << 50, (size_t)1 << 62, SIZE_MAX, SIZE_MAX - 63};
    struct block block = {.size = sizes[which], .number = following};
    note(TOO_MUCH, 0, block.size);
    block.address = (uintptr_t)target_take(&target, block.size);
    if (block.address) wrong("A06-out-of-memory", &block, "a request for more than there can be was met");
}

/* --------------------------------------------------------------------------------------------------- input

   A byte is a call.  Powers of two and sizes below 48 are in it, and others in the two bytes that follow, so that a
   fuzzer can compare them and copy them. */

static int take(const uint8_t **at, const uint8_t *end, size_t *size) {
    if (end - *at < 2) return 0;
    *size = (size_t)(*at)[0] | (size_t)(*at)[1] << 8;
    *at += 2;
    return 1;
}

static void step(uint8_t code, const uint8_t **at, const uint8_t *end) {
    size_t size = code & 0x3F;
    unsigned part = code & 7;
    if (code & 0x80) {
        if (count) give_back(code & 0x40 ? count - 1 : (code & 0x3F) % count);
    } else if (code < 0x40) {
        allocate(code < 0x30 ? size : (size_t)1 << (code & 15), 0);
    } else if (code < 0x78 && take(at, end, &size)) {
        if (code < 0x60) allocate(size, 0);
        else if (code < 0x68) allocate(size << part, 0);
        else if (code < 0x70) allocate(size, target.take_zeroed != NULL);
        else if (target.change && count) resize(&live[part % count], size);
    } else if (code < 0x7C && count) {
        struct block *block = &live[part % count];
        note(CHECK, block->number, 0);
        judge_contents("A04-contents-kept", block, block->size);
    } else if (code >= 0x7C) {
        request_too_much(code & 3);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length) {
    static int begun;
    const uint8_t *end = data + length;
    if (!begun) {
        begun = 1;
        readable = READABLE;
        shows = getenv("SYNCEDMEM_SHOW") != NULL;
        claims_begin(&promises, 1);
    }
#ifdef RESET
    reset_symbol();
    largest = 0;
#endif
    made = count = following = 0;
    bytes = 0;
    if (shows) show_begin();
    while (data < end && made < MOST_CALLS - MOST_LIVE) {
        uint8_t code = *data++;
        step(code, &data, end);
    }
    while (count) give_back(count - 1);
    return 0;
}

#ifdef STANDALONE

/* Each file is an input; without one, standard input is. */
static void take_file(FILE *file) {
    static uint8_t data[1 << 20];
    LLVMFuzzerTestOneInput(data, fread(data, 1, sizeof data, file));
}

int main(int number, char **names) {
    if (number < 2) take_file(stdin);
    for (int i = 1; i < number; i++) {
        FILE *file = fopen(names[i], "rb");
        if (!file) return perror(names[i]), 2;
        take_file(file);
        fclose(file);
    }
}

#endif
