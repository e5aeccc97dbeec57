/* The calls of NVRTC that CuPy makes.  A kernel is compiled with g++ for the host. */
#include "image.h"
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define EXPORTED __attribute__((visibility("default")))

extern char **environ;

/* The numbers of nvrtcResult. */
enum { SUCCESS = 0, OUT_OF_MEMORY = 1, PROGRAM_CREATION_FAILURE = 2, INVALID_PROGRAM = 4, COMPILATION = 6 };

typedef struct Program {
    char *source, *log, *image;
    size_t image_size;
} Program;

/* The folder in which a program is compiled.  It is removed afterwards. */
typedef struct Folder {
    char path[PATH_MAX], source[PATH_MAX + 16], object[PATH_MAX + 16], log[PATH_MAX + 16];
} Folder;

/* --- files */

static int make_folder(Folder *folder)
{
    const char *parent = getenv("TMPDIR");
    snprintf(folder->path, sizeof folder->path, "%s/hostcuda-kernel-XXXXXX", parent ? parent : "/tmp");
    if (!mkdtemp(folder->path))
        return 0;
    snprintf(folder->source, sizeof folder->source, "%s/kernel.cpp", folder->path);
    snprintf(folder->object, sizeof folder->object, "%s/kernel.so", folder->path);
    snprintf(folder->log, sizeof folder->log, "%s/log", folder->path);
    return 1;
}

static void remove_folder(const Folder *folder)
{
    unlink(folder->source);
    unlink(folder->object);
    unlink(folder->log);
    rmdir(folder->path);
}

/* Read a file: `room` free bytes, then its bytes, then a zero.  NULL: the file cannot be read. */
static char *read_file(const char *path, size_t room, size_t *size)
{
    struct stat status;
    FILE *file = fopen(path, "rb");
    if (!file)
        return NULL;
    char *bytes = NULL;
    if (!fstat(fileno(file), &status) && (bytes = calloc(1, room + (size_t)status.st_size + 1)))
        *size = fread(bytes + room, 1, (size_t)status.st_size, file);
    fclose(file);
    return bytes;
}

/* --- the source */

/* Write the entries that kernels.c looks up in the shared object, for each kernel of a source. */
static void write_entries(FILE *out, const char *source)
{
    static const char KERNEL[] = "__global__ void ";
    const char *barriers = strstr(source, "__syncthreads") ? "true" : "false";
    for (const char *name = source; (name = strstr(name, KERNEL));) {
        name += strlen(KERNEL);
        int length = 0;
        while (isalnum((unsigned char)name[length]) || name[length] == '_')
            length++;
        fprintf(out, "HOSTCUDA_KERNEL(%.*s, %s)\n", length, name, barriers);
    }
}

static int write_source(const char *path, const char *source)
{
    FILE *out = fopen(path, "w");
    if (!out)
        return 0;
    fprintf(out, "#include \"kernel.hpp\"\n%s\n", source);
    write_entries(out, source);
    return !fclose(out);
}

/* --- the compiler */

/* Definitions and the folders of CuPy's own headers.  CUDA's headers are only for CUDA's compiler. */
static int is_for_the_host(const char *option)
{
    return !strncmp(option, "-D", 2) || (!strncmp(option, "-I", 2) && strstr(option, "cupy"));
}

static int run_compiler(char **arguments, const char *log)
{
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_adddup2(&actions, 1, 2);
    pid_t child;
    int status, error = posix_spawnp(&child, arguments[0], &actions, NULL, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (error) {
        fprintf(stderr, "hostcuda: g++ cannot be run: %s\n", strerror(error));
        return 0;
    }
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return 0;
    return WIFEXITED(status) && !WEXITSTATUS(status);
}

static int compile(const Folder *folder, int count, const char *const *options)
{
    /* -ffp-contract=off: one rounding for each operation, so that results are the same on every machine. */
    static const char *const FIXED[] = {"g++", "-std=c++17", "-O1", "-w", "-fpermissive", "-ffp-contract=off", "-fPIC",
                                        "-shared", "-I" HEADERS, "-I" HEADERS "/kernel_include"};
    enum { FIXED_COUNT = sizeof FIXED / sizeof FIXED[0], AFTER = 4 };
    char **arguments = calloc(FIXED_COUNT + (size_t)count + AFTER, sizeof *arguments);
    if (!arguments)
        return 0;
    memcpy(arguments, FIXED, sizeof FIXED);
    int next = FIXED_COUNT;
    for (int i = 0; i < count; i++)
        if (is_for_the_host(options[i]))
            arguments[next++] = (char *)options[i];
    arguments[next++] = "-o";
    arguments[next++] = (char *)folder->object;
    arguments[next++] = (char *)folder->source;
    int done = run_compiler(arguments, folder->log);
    free(arguments);
    return done;
}

/* --- NVRTC's calls */

EXPORTED const char *nvrtcGetErrorString(int error)
{
    switch (error) {
    case SUCCESS: return "NVRTC_SUCCESS";
    case COMPILATION: return "NVRTC_ERROR_COMPILATION (hostcuda, not a GPU)";
    default: return "NVRTC error (hostcuda, not a GPU)";
    }
}

EXPORTED int nvrtcVersion(int *major, int *minor)
{
    *major = 12;
    *minor = 9;
    return SUCCESS;
}

EXPORTED int nvrtcCreateProgram(Program **out, const char *source, const char *name, int header_count,
                                const char **headers, const char **header_names)
{
    (void)name, (void)headers, (void)header_names;
    if (header_count)
        return PROGRAM_CREATION_FAILURE;
    Program *program = calloc(1, sizeof *program);
    if (!program || !(program->source = strdup(source)) || !(program->log = strdup(""))) {
        if (program)
            free(program->source);
        free(program);
        return OUT_OF_MEMORY;
    }
    *out = program;
    return SUCCESS;
}

EXPORTED int nvrtcDestroyProgram(Program **program)
{
    free((*program)->source);
    free((*program)->log);
    free((*program)->image);
    free(*program);
    *program = NULL;
    return SUCCESS;
}

/* Keep the output and the messages of the compiler. */
static int take_results(Program *program, const Folder *folder, int compiled)
{
    size_t size;
    char *log = read_file(folder->log, 0, &size);
    if (log) {
        free(program->log);
        program->log = log;
    }
    if (!compiled || !(program->image = read_file(folder->object, sizeof(Image), &size)))
        return COMPILATION;
    Image image = {IMAGE_MAGIC, size};
    memcpy(program->image, &image, sizeof image);
    program->image_size = sizeof image + size;
    return SUCCESS;
}

EXPORTED int nvrtcCompileProgram(Program *program, int count, const char *const *options)
{
    Folder folder;
    if (program->image)
        return INVALID_PROGRAM; /* it is compiled already */
    if (!*program->source)
        return SUCCESS; /* only its PTX is wanted */
    if (!make_folder(&folder))
        return COMPILATION;
    int compiled = write_source(folder.source, program->source) && compile(&folder, count, options);
    int result = take_results(program, &folder, compiled);
    remove_folder(&folder);
    return result;
}

EXPORTED int nvrtcGetCUBINSize(const Program *program, size_t *size)
{
    *size = program->image_size;
    return SUCCESS;
}

EXPORTED int nvrtcGetCUBIN(const Program *program, char *out)
{
    memcpy(out, program->image, program->image_size);
    return SUCCESS;
}

/* There is no PTX.  CuPy asks for the PTX of an empty program, and uses its comments as a key for stored kernels. */
static const char PTX[] = "// hostcuda, not a GPU; g++ " __VERSION__ "\n";

EXPORTED int nvrtcGetPTXSize(const Program *program, size_t *size)
{
    (void)program;
    *size = sizeof PTX;
    return SUCCESS;
}

EXPORTED int nvrtcGetPTX(const Program *program, char *out)
{
    (void)program;
    strcpy(out, PTX);
    return SUCCESS;
}

EXPORTED int nvrtcGetProgramLogSize(const Program *program, size_t *size)
{
    *size = strlen(program->log) + 1;
    return SUCCESS;
}

EXPORTED int nvrtcGetProgramLog(const Program *program, char *out)
{
    strcpy(out, program->log);
    return SUCCESS;
}
