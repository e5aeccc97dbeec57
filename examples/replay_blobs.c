/* Replay test vectors of blobs on a port with the C ABI of syncedmem_port.h, and judge everything that they say.

       syncedmem vectors --out build/vectors
       cc -Ibuild -o build/replay_blobs examples/replay_blobs.c PORT.c -lm
       build/replay_blobs build/vectors/caffe/blob-cells.jsonl

   It is used as replay.c, which runs the vectors of memories.  A port that has no blobs is not judged.  A copy within one
   side and a free are no actions of a vector; what was allocated has to be freed when the last blob is gone. */
#include "judge.h"
#include <math.h>

enum { BLOBS = MEMORIES, AXES = SMP_MOST_AXES + 1, KNOWN = SMP_BLOB_SCALE_DIFF + 1, ACTIONS = 2 /* a level */ };
static const char *const CALLS[] = {"reshape", "reshape_like", "shrink_to_fit", "shape_string", "canonical_axis_index", "count_axes", /* SMP_BLOB_... */
    "legacy_shape", "num", "channels", "height", "width", "offset", "data_at", "diff_at", "gpu_shape", "cpu_data", "mutable_cpu_data", "gpu_data",
    "mutable_gpu_data", "cpu_diff", "mutable_cpu_diff", "gpu_diff", "mutable_gpu_diff", "set_cpu_data", "set_gpu_data", "set_cpu_diff", "set_gpu_diff",
    "share_data", "share_diff", "copy_from", "update", "asum_data", "asum_diff", "sumsq_data", "sumsq_diff", "scale_data", "scale_diff"};
static const char *const TYPES[] = {"float32", "float64", "int32", "uint32"};
static const size_t WIDTHS[] = {4, 8, 4, 4};
#pragma weak syncedmem_blobs     /* a port need not have it */
static const smp_blobs *port_blobs;
static mirrored own; /* what is lent: the size is that of each action of a call, or 0 while blobs are made */
static void *blobs[BLOBS];
static size_t sizes[BLOBS]; /* in bytes */
static uint32_t mode, type, alive;

static int launch(void *context, void (*kernel)(void *), void *argument) { return (void)context, kernel(argument), 0; }
static double element(const unsigned char *at) {
    union { float single; double wide; int32_t whole; uint32_t natural; } it;
    memcpy(&it, at, WIDTHS[type]);
    return type == SMP_FLOAT32 ? it.single : type == SMP_FLOAT64 ? it.wide : type == SMP_INT32 ? it.whole : (double)it.natural;
}
static void put(unsigned char *at, double wide) {
    const float single = (float)wide;
    const int32_t whole = (int32_t)wide;
    memcpy(at, type == SMP_FLOAT32 ? (const void *)&single : type == SMP_FLOAT64 ? (const void *)&wide : (const void *)&whole, WIDTHS[type]);
}
static const char *next(const char *list) { return list += strcspn(list, ",]"), list + (*list == ','); }
static int differs(const char *what, const void *there, size_t size, const char *list) {
    const unsigned char *at = there;
    if (size && !find(there, size)) WRONG("%lu bytes in %s, seen another pointer", (unsigned long)size, what);
    for (size_t k = 0; k < size / WIDTHS[type]; ++k, list = next(list))
        if (element(at + k * WIDTHS[type]) != atof(list)) WRONG("%g at element %lu of %s, seen %g", atof(list), (unsigned long)k, what, element(at + k * WIDTHS[type]));
    return 0;
}
static int compare_part(const smp_port *port, const smp_blob_part *seen, const char **told, int n, const char *part, size_t size) {
    const char *head = HEADS[seen->head < 4 ? seen->head : 4], *wanted = after(*told, "\"head\":\"");
    char what[64];
    if (strncmp(wanted, head, strlen(head)) != 0) WRONG("the head %.*s of the %s of blob %d, seen %s", (int)strcspn(wanted, "\""), wanted, part, n, head);
    for (int side = 0; side < 2; ++side) {
        *told = after(*told, side ? "\"gpu\":" : "\"cpu\":");
        sprintf(what, "the %s side of the %s of blob %d", side ? "gpu" : "cpu", part, n);
        if (**told == '[' && port->level >= ACTIONS && differs(what, side ? seen->gpu : seen->cpu, size, *told + 1)) return 1;
    }
    return 0;
}
static int compare(const smp_port *port, const char *told) { /* every blob that is there */
    told = after(told, "\"blobs\":[");
    for (int n = 0; told && n < BLOBS && blobs[n]; ++n) {
        smp_blob_state seen;
        port_blobs->state(blobs[n], memset(&seen, 0, sizeof seen));
        const char *shape = told = after(told, "\"shape\":[");
        for (size_t axis = 0; axis < seen.axes || *shape != ']'; ++axis, shape = next(shape))
            if (axis >= seen.axes || *shape == ']' || atol(shape) != seen.shape[axis])
                WRONG("the shape [%.*s] of blob %d, seen %lu axes with %ld at axis %lu", (int)strcspn(told, "]"), told, n, (unsigned long)seen.axes, (long)seen.shape[axis % SMP_MOST_AXES], (unsigned long)axis);
        if (compare_part(port, &seen.data, &told, n, "data", sizes[n]) || compare_part(port, &seen.diff, &told, n, "diff", sizes[n])) return 1;
    }
    return 0;
}
static int acted(const char *told) { /* the lists of actions may come in any order: those of two memories, of which each is one list */
    char kept[1024] = "", orders[2][1024], *end = kept;
    const char *list = after(told, "\"actions\":["), *other = list + strcspn(list, "]");
    const int one = *list == '[' ? (int)(other - list) - 1 : 0, two = one && other[1] == ',' ? (int)strcspn(other + 3, "]") : 0;
    for (const char *at = done; *at; at += strcspn(at, ","), at += *at == ',')
        if (strncmp(at, "\"free_", 6) != 0 && strncmp(at, "\"copy within", 12) != 0) end += sprintf(end, "%s%.*s", *kept ? "," : "", (int)strcspn(at, ","), at);
    sprintf(orders[0], "%.*s%s%.*s", one, list + 1, two ? "," : "", two, other + 3);
    sprintf(orders[1], "%.*s%s%.*s", two, other + 3, two ? "," : "", one, list + 1);
    if (strcmp(kept, orders[0]) != 0 && strcmp(kept, orders[1]) != 0) WRONG("[%s], seen [%s]", orders[0], kept);
    if (*trouble) WRONG("nothing but its actions, seen %s", trouble);
    return 0;
}
static int release(int n) {
    port_blobs->destroy(blobs[n]), blobs[n] = NULL;
    for (int k = 0; k < count && alive == 1; ++k) if (blocks[k].live) WRONG("nothing left, seen %lu bytes", (unsigned long)blocks[k].size);
    return --alive, beside();
}
static int play(const smp_port *port, char *told) {
    const char *argument = after(told, "\"argument\":"), *wanted = after(told, "\"refusal\":\""), *key = strstr(told, ",\"blob\":");
    const int n = key && key < strstr(told, "\"refusal\"") ? atoi(key + 8) % BLOBS : 0;
    int64_t numbers[AXES];
    smp_blob_arguments asked = {0, mode, 0, 0, numbers, 0, NULL, NULL, sizes[n], strstr(call, "gpu") ? SMP_DEVICE : SMP_HOST};
    smp_blob_result got = {NULL, 0, NULL, NULL};
    if (strcmp(call, "set_mode") == 0) return mode = argument[1] == 'G' ? SMP_MODE_GPU : SMP_MODE_CPU, 0;
    if (strcmp(call, "release") == 0) return release(n);
    while (asked.call < KNOWN && strcmp(CALLS[asked.call], call) != 0) ++asked.call;
    if (asked.call == KNOWN) WRONG("a call of a blob, seen %s", call);
    if (argument && *argument == '[') {
        asked.options = SMP_OPTION_SEQUENCE;
        for (const char *at = argument + 1; *at != ']' && asked.count < AXES; at = next(at)) numbers[asked.count++] = atol(at);
    } else if (argument && *argument == '{') {
        asked.other = blobs[number(argument, "\"blob\":") % BLOBS];
        asked.options = strstr(argument, "\"copy_diff\":true") ? SMP_OPTION_COPY_DIFF : 0;
        asked.options |= strstr(argument, "\"reshape\":true") ? SMP_OPTION_RESHAPE : 0;
    } else if (argument) asked.factor = atof(argument);
    own.size = sizes[n], *done = *trouble = 0;
    const int status = port_blobs->call(blobs[n], &asked, &got);
    own.size = 0;
    if (status != (wanted ? SMP_REFUSED : SMP_OK))
        WRONG("%.*s, seen %s%s%s", wanted ? (int)strcspn(wanted, "\"") : 9, wanted ? wanted : "an answer", status == SMP_OK ? "an answer" : status == SMP_REFUSED ? "a refusal" : status == SMP_FAILED ? "a failure" : "an unknown status", got.message ? ": " : "", got.message ? got.message : "");
    if (port->level < ACTIONS) return compare(port, told);
    if ((key = after(told, "\"value\":")) != NULL && !(fabs(got.number - atof(key)) <= 1e-6 * fabs(atof(key)))) WRONG("%g, seen %g", atof(key), got.number);
    if ((key = after(told, "\"shows\":[")) != NULL) {
        if (differs("the view", got.view, sizes[n], key)) return 1;
        if ((key = after(told, "\"write\":[")) != NULL)
            for (size_t k = 0; k < sizes[n]; k += WIDTHS[type], key = next(key)) put((unsigned char *)got.view + k, atof(key));
    }
    return compare(port, told) || acted(told) || beside();
}
static int make(const char *shape) { /* a blob; its shape ends with a bracket */
    int64_t numbers[AXES];
    smp_blob_arguments asked = {SMP_BLOB_RESHAPE, mode, SMP_OPTION_SEQUENCE, 0, numbers, 0, NULL, NULL, 0, SMP_HOST};
    smp_blob_result got = {NULL, 0, NULL, NULL};
    for (sizes[alive] = WIDTHS[type]; *shape != ']' && asked.count < AXES; shape = next(shape)) sizes[alive] *= (size_t)(numbers[asked.count++] = atol(shape));
    const int status = port_blobs->create(&own.lent, launch, type, &blobs[alive]);
    return status != SMP_OK || port_blobs->call(blobs[alive++], &asked, &got) != SMP_OK;
}
static int vector(const smp_port *port) {
    const char *shapes = after(line, "\"shapes\":["), *edition = after(line, "\"edition\":\""), *named = after(line, "\"type\":\"");
    if (!shapes || !edition || !named || !after(line, "{\"call\":\"") || strcmp(strchr(line, '\0') - 2, "}\n") != 0) return printf("no vector of blobs: %.60s\n", line), 1;
    if (strncmp(edition, port->edition, strlen(port->edition)) != 0) return printf("it is not for the edition %s: %.60s\n", port->edition, line), 1;
    own = (mirrored){NULL, 0, LENT, {NULL, NULL}, {NULL, NULL}}, own.lent.context = &own;
    for (mode = SMP_MODE_GPU, alive = 0, type = 0; type < 4 && strncmp(named, TYPES[type], strlen(TYPES[type])) != 0;) ++type;
    for (; *shapes == '[' && alive < BLOBS; shapes = next(strchr(shapes, ']') + 1))
        if (type == 4 || make(shapes + 1)) return printf("no blob is made: %.60s\n", line), 1;
    const int wrong = steps(port);
    for (int n = 0; n < BLOBS; ++n) if (blobs[n]) port_blobs->destroy(blobs[n]), blobs[n] = NULL;
    while (count > 0) free(blocks[--count].at - GUARD);
    return wrong;
}
int replay_blobs(const smp_port *port, const smp_blobs *table, const char *path) { return port_blobs = table, replay(port, path); }
static int left_out(int files, char **names) {
    int vectors = 0;
    for (FILE *in; files > 1; in ? fclose(in) : 0)
        for (in = fopen(names[--files], "r"); in && fgets(line, sizeof line, in);) ++vectors;
    return printf("no blobs, %d vectors left out\n", vectors), vectors == 0;
}
int main(int files, char **names) {
    if (!syncedmem_blobs) return left_out(files, names);
    return port_blobs = syncedmem_blobs(), judged(syncedmem_port(), files, names);
}
