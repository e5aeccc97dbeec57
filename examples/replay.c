/* Replay test vectors on a port: a few lines, and a port to try them on.

       syncedmem vectors --out build/vectors
       cc -o build/replay examples/replay.c && build/replay < build/vectors/caffe/tour.jsonl

   You can replay every suite. This program compares heads, refusals and failures; docs/vectors.md says what else you
   can compare. Lines have no spaces and their keys have an order, so no JSON library is needed to read them. */

#include <stdio.h>
#include <string.h>

static const char *const HEADS[] = {"UNINITIALIZED", "HEAD_AT_CPU", "HEAD_AT_GPU", "SYNCED"};

/* Yours: a head as two bits, for the host and for the device. */
typedef struct {
    unsigned head;
    int has_gpu;
} port;

/* Do one call, or return why it is refused; if an action fails, nothing may change. */
static const char *perform(port *m, const char *call, const char *argument, int fails) {
    unsigned side = strstr(call, "gpu") ? 2 : 1;
    int set = strncmp(call, "set_", 4) == 0 && strstr(call, "data");
    int push = strcmp(call, "async_gpu_push") == 0;
    if (side == 2 && !m->has_gpu)
        return "no_gpu";
    if (set && strncmp(argument, "null", 4) == 0)
        return "null_data";
    if (set && strncmp(argument, "{\"own\"", 6) == 0)
        return "own_buffer";
    if (push && m->head != 1)
        return "not_head_at_cpu";
    if (fails)
        return "failed";
    if (set || strncmp(call, "mutable_", 8) == 0)
        m->head = side;
    else if (push || strcmp(call, "cpu_data") == 0 || strcmp(call, "gpu_data") == 0)
        m->head |= side;
    return "done";
}

/* The rest of a line after a key of a step, or an empty text. */
static const char *field(const char *step, const char *key) {
    const char *found = strstr(step, key);
    return found ? found + strlen(key) : "";
}

static char line[1 << 20];

int main(void) {
    int count = 0, wrong = 0;
    for (; fgets(line, sizeof line, stdin); ++count) {
        port m = {0, strstr(line, "\"edition\":\"cpu_only\"") == NULL};
        char *step = strstr(line, "{\"call\":\""), *next;
        if (!step || strcmp(strchr(line, '\0') - 2, "}\n") != 0) {
            printf("no vector: %.60s\n", line);
            ++wrong;
            continue;
        }
        for (; step; step = next) {
            char call[32] = "", head[32], wanted[32] = "done";
            if ((next = strstr(step, ",{\"call\":\"")) != NULL)
                *next++ = '\0';
            sscanf(field(step, "\"call\":\""), "%31[a-z_]", call);
            int fails = *field(step, "\"fail\":") != '\0';
            const char *outcome = perform(&m, call, field(step, "\"argument\":"), fails);
            sscanf(fails ? "failed" : field(step, "\"refusal\":\""), "%31[a-z_]", wanted);
            if (sscanf(field(step, "\"head\":\""), "%31[A-Z_]", head) != 1)
                strcpy(head, HEADS[m.head]);
            if (strcmp(outcome, wanted) != 0 || strcmp(head, HEADS[m.head]) != 0) {
                printf("%s leads to %s, %s\n", step, HEADS[m.head], outcome);
                ++wrong;
                break;
            }
        }
    }
    printf("%d vectors, %d failed\n", count, wrong);
    return wrong > 0 || count == 0;
}
