/* What the runners of vectors share: reading a line, saying what is wrong with a port, and saying so when it ends. */
#ifndef JUDGE_H
#define JUDGE_H
#include <signal.h>
#include "lent.h"

static const char *const HEADS[] = {"UNINITIALIZED", "HEAD_AT_CPU", "HEAD_AT_GPU", "SYNCED", "no head"};
static char line[1 << 21], call[32]; /* a vector, and the call of a step */
static int step;

static int vector(const smp_port *port); /* whether the vector of the line fails */

static int wrong_start(void) {
    return printf("%.16s step %d %s: expected ", strstr(line, "\"id\":\"") + 6, step, call);
}
#define WRONG(...) return wrong_start(), printf(__VA_ARGS__), puts(""), 1

static const char *after(const char *text, const char *key) {
    const char *found = strstr(text, key);
    return found ? found + strlen(key) : NULL;
}
static long number(const char *text, const char *key) { return (text = after(text, key)) ? atol(text) : 0; }
static int play(const smp_port *port, char *told); /* whether a step fails */
static int steps(const smp_port *port) {           /* whether one of the steps of the line fails */
    char *told = strstr(line, "{\"call\":\""), *next, wrong = 0;
    for (step = 0; told && !wrong; told = next, ++step) {
        if ((next = strstr(told, ",{\"call\":\"")) != NULL) *next++ = '\0';
        sscanf(told, "{\"call\":\"%31[a-z_]", call);
        wrong = (char)play(port, told);
    }
    return wrong;
}
static int beside(void) { /* whether something was written beside a block */
    for (int k = 0; k < count; ++k)
        for (int j = 1; j <= GUARD; ++j)
            if (blocks[k].at[-j] != 0xA5 || blocks[k].at[blocks[k].size + (size_t)j - 1] != 0xA5) WRONG("nothing beside %lu bytes, seen a byte", (unsigned long)blocks[k].size);
    return 0;
}
int replay(const smp_port *port, const char *path) { /* how many vectors failed, or -1 if there was none */
    int vectors = 0, failed = 0;
    FILE *in = fopen(path, "r");
    for (; in && fgets(line, sizeof line, in); ++vectors) failed += vector(port);
    if (in) fclose(in);
    printf("%d vectors, %d failed\n", vectors, failed);
    return fflush(stdout), vectors ? failed : -1;
}
static int finished;
static void died(int number) {
    wrong_start(), printf(number ? "an answer, seen signal %d\n" : "an answer, seen an exit\n", number), fflush(stdout), _Exit(1);
}
static void ended(void) { if (!finished) died(0); }
static int judged(const smp_port *port, int files, char **names) {
    int failed = files < 2;
    if (signal(SIGSEGV, died) != SIG_ERR && signal(SIGABRT, died) != SIG_ERR) atexit(ended);
    for (int k = 1; k < files; ++k) failed |= replay(port, names[k]) != 0;
    return finished = 1, failed;
}
#endif
