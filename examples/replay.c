/* Replay test vectors on a port with the C ABI of syncedmem_port.h, and judge everything that they say.

       syncedmem diagram --format port-header -o build/syncedmem_port.h
       syncedmem vectors --out build/vectors
       cc -Ibuild -o build/replay examples/replay.c PORT.c && build/replay build/vectors/caffe/tour.jsonl

   docs/vectors.md defines the format; its lines have no spaces and their keys an order, so no JSON library is needed.
   A difference is one line: id, step, call, expected, seen.  What the port's level does not show is not judged.  If the
   port crashes or exits, the line says where.  If it may hang, run it as `timeout -s ABRT 60 build/replay FILE`. */
#include "judge.h"

enum { BUFFERS = 4096, ACTIONS = 2, FAILURES = 3 /* levels */ };
static const char *const CALLS[] = {"cpu_data", "mutable_cpu_data", "gpu_data", "mutable_gpu_data", /* SMP_CALL_... */
                                    "set_cpu_data", "set_gpu_data", "async_gpu_push", "release"};
static const char *const WHY[] = {"no reason", "null_data", "not_head_at_cpu", "no_gpu"}; /* SMP_REFUSED_... */
static const char *const FLAGS[] = {"own_cpu_data\":", "own_gpu_data\":", "cpu_malloc_use_cuda\":"};
static const uint32_t BITS[] = {SMP_FLAG_OWN_CPU_DATA, SMP_FLAG_OWN_GPU_DATA, SMP_FLAG_CPU_MALLOC_USE_CUDA};
static block *buffers[BUFFERS];
static mirrored memories[MEMORIES];
static uint32_t mode;

static unsigned char byte_of(long content, size_t k) { return content ? (7 * (size_t)content + k) % 251 : 0; }
static void fill(void *at, long content, size_t size) {
    for (size_t k = 0; k < size; ++k) ((unsigned char *)at)[k] = byte_of(content, k);
}
static int differs(const char *what, const void *at, long content, size_t size) {
    for (size_t k = 0; k < size; ++k)
        if (((const unsigned char *)at)[k] != byte_of(content, k))
            WRONG("%u in byte %lu of %s, seen %u", byte_of(content, k), (unsigned long)k, what, ((const unsigned char *)at)[k]);
    return 0;
}
static int compare(const smp_port *port, const char *told, const mirrored *it) {
    const char *value = after(told, "\"head\":\""), *content = after(told, "\"bytes\":{\"cpu\":");
    smp_state seen = {0, 0, 0, 0};
    if (value == NULL) return 0;
    port->state(it->memory, &seen);
    const char *head = HEADS[seen.head < 4 ? seen.head : 4];
    if (strncmp(value, head, strlen(head)) != 0) WRONG("the head %.*s, seen %s", (int)strcspn(value, "\""), value, head);
    for (int k = 0; k < 3; ++k)
        if ((seen.known_flags & BITS[k]) && (value = after(told, FLAGS[k])) && (*value == 't') != !!(seen.flags & BITS[k]))
            WRONG("%.*s %s, seen the opposite", (int)strlen(FLAGS[k]) - 2, FLAGS[k], *value == 't' ? "true" : "false");
    for (int side = 0; port->level >= ACTIONS && side < 2; content = after(content, "\"gpu\":"), ++side)
        for (int k = 0; *content != 'n' && k < count; ++k)
            if (it->adopted[side] ? it->adopted[side] == &blocks[k] : blocks[k].owner == it && blocks[k].live && (blocks[k].kind == SMP_DEVICE) == side)
                if (differs(side ? "the gpu side" : "the cpu side", blocks[k].at, atol(content), it->size)) return 1;
    return 0;
}
static int play(const smp_port *port, char *told) {
    const char *argument = after(told, "\"argument\":"), *wanted = after(told, "\"refusal\":\""), *key = NULL;
    const long number_of = argument ? number(argument, "{\"buffer\":") : 0, fails = number(told, "\"fail\":");
    mirrored *it = &memories[number(told, "\"memory\":") % MEMORIES];
    const int side = strstr(call, "gpu") != NULL, set = strncmp(call, "set_", 4) == 0;
    smp_arguments asked = {0, mode, NULL, it->size, side ? SMP_DEVICE : SMP_HOST, NULL};
    smp_result got = {NULL, 0, NULL};
    if (strcmp(call, "set_mode") == 0) return mode = argument[1] == 'G' ? SMP_MODE_GPU : SMP_MODE_CPU, 0;
    block **buffer = argument && *argument == '{' ? &buffers[number_of % BUFFERS] : NULL;
    if (number_of && *buffer == NULL) *buffer = new_block(it->size, asked.data_kind, NULL);
    if (number_of && (key = after(argument, ",\"bytes\":")) && key < after(argument, "}"))
        fill((*buffer)->at, atol(key), (*buffer)->size);
    while (asked.call < 8 && strcmp(CALLS[asked.call], call) != 0) ++asked.call;
    if (asked.call == 8) return compare(port, told, it); /* look, write_buffer */
    if (set && argument && *argument == '{') asked.data = number_of ? (*buffer)->at : (unsigned char *)it->view[side] + number(argument, "{\"own\":true,\"offset\":");
    left = (int)fails, *done = *trouble = 0;
    const int status = port->call(it->memory, &asked, &got);
    synchronize(NULL, NULL);
    left = 0;
    if (fails ? status == SMP_OK : (status == SMP_REFUSED) != (wanted != NULL) || status == SMP_FAILED)
        WRONG("%.*s, seen %s", wanted ? (int)strcspn(wanted, "\"") : 9, wanted ? wanted : fails ? "a failure" : "an answer",
              status == SMP_OK ? "an answer" : status == SMP_FAILED ? "a failure" : status == SMP_REFUSED ? WHY[got.refusal % 4] : "an unknown status");
    if (wanted && got.refusal && got.refusal < 4 && strncmp(wanted, WHY[got.refusal], strlen(WHY[got.refusal])) != 0)
        WRONG("%.*s, seen %s", (int)strcspn(wanted, "\""), wanted, WHY[got.refusal]);
    if (status == SMP_OK) it->view[side] = got.view;
    if (status == SMP_OK && number_of) it->adopted[side] = *buffer;
    if (port->level < ACTIONS) return compare(port, told, it);
    if ((key = after(told, "\"shows\":")) != NULL) {
        if (it->size && !find(got.view, it->size)) WRONG("a view of %lu bytes, seen another pointer", (unsigned long)it->size);
        if (differs("the view", got.view, atol(key), it->size)) return 1;
        if ((key = after(told, "\"write\":")) != NULL) fill(got.view, atol(key), it->size);
    }
    if (compare(port, told, it)) return 1;
    if ((key = after(told, "\"actions\":[")) != NULL) {
        char names[256] = "", *end = names;
        for (; *key != ']'; key += strcspn(key + 1, ",]") + 1)
            if (!strstr(key, "adopt") || strstr(key, "adopt") > key + 2) end += sprintf(end, "%.*s", (int)strcspn(key + 1, ",]") + 1, key);
        if (strcmp(names + (*names == ','), done) != 0) WRONG("[%s], seen [%s]", names + (*names == ','), done);
        key = after(told, "cpu_malloc_use_cuda\":");
        if (strstr(done, "allocate_cpu") && key && (*key == 't') != (made == SMP_PINNED)) WRONG("%s, seen %s", KINDS[*key == 't'], KINDS[made]);
    }
    if (*trouble) WRONG("nothing but its actions, seen %s", trouble);
    for (int k = 0; k < count; ++k)
        if (asked.call == SMP_CALL_RELEASE && blocks[k].live && blocks[k].owner == it) WRONG("nothing left, seen %lu bytes", (unsigned long)blocks[k].size);
    return beside();
}
static int vector(const smp_port *port) {
    const char *sizes = after(line, "\"sizes\":["), *edition = after(line, "\"edition\":\"");
    if (!sizes || !edition || !after(line, "{\"call\":\"") || strcmp(strchr(line, '\0') - 2, "}\n") != 0) return printf("no vector of memories: %.60s\n", line), 1;
    if (strncmp(edition, port->edition, strlen(port->edition)) != 0) return printf("it is not for the edition %s: %.60s\n", port->edition, line), 1;
    if (strstr(line, "\"fail\":") && port->level < FAILURES) return 0;
    memset(memories, 0, sizeof memories);
    mode = SMP_MODE_GPU;
    for (int k = 0; k < MEMORIES && *sizes != ']'; ++k, sizes += strcspn(sizes, ",]"), sizes += *sizes == ',') {
        memories[k] = (mirrored){NULL, strtoul(sizes, NULL, 10), LENT, {NULL, NULL}, {NULL, NULL}};
        memories[k].lent.context = &memories[k];
        if (port->create(&memories[k].lent, memories[k].size, &memories[k].memory) != SMP_OK) return printf("no memory is made: %.60s\n", line), 1;
    }
    const int wrong = steps(port);
    for (int k = 0; k < MEMORIES; ++k) if (memories[k].memory) port->destroy(memories[k].memory);
    while (count > 0) free(blocks[--count].at - GUARD);
    memset(buffers, 0, sizeof buffers);
    return wrong;
}
int main(int files, char **names) { return judged(syncedmem_port(), files, names); }
