/* Replay test vectors on a port: ten lines, and a port to try them on.

       syncedmem vectors --out build/vectors --suite caffe/tour
       cc -o build/replay examples/replay.c && build/replay < build/vectors/caffe/tour.jsonl

   Lines have no spaces and their keys have an order, so they can be read without a JSON library. */

#include <stdio.h>
#include <string.h>

static const char *const HEADS[] = {"UNINITIALIZED", "HEAD_AT_CPU", "HEAD_AT_GPU", "SYNCED"};

/* Yours: a head as two bits, for the host and for the device. */
static unsigned perform(unsigned head, const char *call) {
    unsigned side = strstr(call, "gpu") ? 2 : 1;
    if (strncmp(call, "set_", 4) == 0 && strstr(call, "data"))
        return side;
    if (strncmp(call, "mutable_", 8) == 0)
        return side;
#ifdef WRONG
    if (strcmp(call, "gpu_data") == 0)
        return 2;
#endif
    if (strcmp(call, "cpu_data") == 0 || strcmp(call, "gpu_data") == 0)
        return head | side;
    return strcmp(call, "async_gpu_push") == 0 && head == 1 ? 3 : head;
}

static char line[1 << 20];

int main(void) {
    int wrong = 0;
    while (fgets(line, sizeof line, stdin)) {
        unsigned head = 0;
        for (char *step = line, *next; (step = strstr(step, "{\"call\":\"")); step = next) {
            char call[32], want[32] = "", *found = strstr(step, "\"head\":\"");
            next = strstr(step + 1, "{\"call\":\"") ? strstr(step + 1, "{\"call\":\"") : step + strlen(step);
            head = perform(head, sscanf(step, "{\"call\":\"%31[a-z_]", call) == 1 ? call : "");
            if (found && found < next && sscanf(found, "\"head\":\"%31[A-Z_]", want) == 1)
                wrong += strcmp(want, HEADS[head]) != 0 && printf("%s leads to %s, not %s\n", call, HEADS[head], want);
        }
    }
    return wrong > 0;
}
