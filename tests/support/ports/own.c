/* A port at level 1: its memory is its own, and what is on its device cannot be read from the host as it is. */
#include <string.h>

#define syncedmem_port honest_port
#include "port.c"
#undef syncedmem_port
SMP_EXPORT const smp_port *syncedmem_port(void);

static unsigned char device[1 << 28]; /* every byte is kept inverted */
static size_t used;

static int on_device(const void *pointer) {
  return (const unsigned char *)pointer >= device && (const unsigned char *)pointer < device + sizeof device;
}

static int allocate(void *context, uint32_t kind, size_t size, void **pointer) {
  (void)context;
  if (kind == SMP_DEVICE && size >= sizeof device - used) return 1;
  *pointer = kind == SMP_DEVICE ? device + used : malloc(size + 1);
  if (kind == SMP_DEVICE) used += size + 1;
  return *pointer == NULL;
}

static int deallocate(void *context, uint32_t kind, void *pointer) {
  (void)context;
  if (kind != SMP_DEVICE) free(pointer);
  return 0;
}

static int zero(void *context, void *pointer, size_t size) {
  (void)context;
  memset(pointer, on_device(pointer) ? 0xff : 0, size);
  return 0;
}

static int copy(void *context, void *destination, const void *source, size_t size) {
  (void)context;
  for (size_t i = 0; i < size; ++i)
    ((unsigned char *)destination)[i] =
        (unsigned char)(((const unsigned char *)source)[i] ^ (on_device(source) != on_device(destination) ? 0xff : 0));
  return 0;
}

static int copy_async(void *context, void *destination, const void *source, size_t size, void *stream) {
  (void)stream;
  return copy(context, destination, source, size);
}

static const smp_allocators mine = {NULL, allocate, deallocate, zero, copy, copy_async, NULL, NULL, NULL};

static int create_own(const smp_allocators *from, size_t size, void **made) {
  (void)from;
  return create(&mine, size, made);
}

static const smp_port own = {SMP_ABI_VERSION, 1, SMP_SIDES, "own", "caffe", &mine, create_own, call, state, free};

const smp_port *syncedmem_port(void) { return &own; }
