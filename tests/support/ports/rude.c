/* What no port may do.  The size of a memory says what is done when it is read: see the cases.  MISTAKE says what is
   wrong with the table, or with the functions in it. */
#include <stdio.h>
#include <string.h>

#ifndef MISTAKE
#define MISTAKE 0
#endif

#define syncedmem_port honest_port
#include "port.c"
#undef syncedmem_port
SMP_EXPORT const smp_port *syncedmem_port(void);

static int rude_create(const smp_allocators *allocators, size_t size, void **made) {
  return MISTAKE == 9 ? SMP_FAILED : create(allocators, size, made);
}

static int rude_call(void *memory_, const smp_arguments *asked, smp_result *result) {
  memory *it = memory_;
  void *const before = it->cpu;
  const int status = call(memory_, asked, result);
  if (MISTAKE == 10) {
    if (asked->mode == SMP_MODE_GPU) result->message = "not on Mondays: \303\244";
    return SMP_REFUSED;
  }
  if (MISTAKE == 11) result->view = NULL;
  if (asked->call == SMP_CALL_GPU_DATA) switch (it->size) {
      case 1: memset(it->gpu, 1, 1); break; /* device memory is touched from the host */
      case 2: ((char *)it->cpu)[2] = 1; break;
      case 3: ((char *)it->cpu)[-1] = 1; break;
      case 4: exit(5);
      case 5: printf("{\"id\": 1}\n"); break;
      case 6: return getchar() == EOF ? SMP_REFUSED : SMP_OK;
      case 7: ((char *)it->cpu)[100] = 1; break; /* on the next page */
    }
  if (asked->call == SMP_CALL_SET_CPU_DATA) ((char *)before)[0] = 1; /* freed, or of the caller */
  return status;
}

static void rude_state(const void *memory_, smp_state *seen) {
  state(memory_, seen);
  if (MISTAKE == 11) seen->head = 9;
}

static const smp_port rude = {
  MISTAKE == 1 ? 1 : SMP_ABI_VERSION, MISTAKE == 2 ? 5 : 4, MISTAKE == 3 ? 3 : SMP_SIDES, MISTAKE == 4 ? NULL : "rude",
  MISTAKE == 5 ? "late" : "caffe", MISTAKE == 6 ? &(const smp_allocators){0} : NULL, rude_create,
  MISTAKE == 7 ? NULL : rude_call, rude_state, free,
};

#if MISTAKE == 12
__attribute__((constructor)) static void die(void) { abort(); }
#endif

const smp_port *syncedmem_port(void) { return MISTAKE == 13 ? NULL : &rude; }
