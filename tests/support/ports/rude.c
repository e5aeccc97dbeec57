/* What no port may do.  The size of a memory says what is done when it is read: see the cases. */
#include <stdio.h>
#include <string.h>

#define syncedmem_port honest_port
#include "port.c"
#undef syncedmem_port
SMP_EXPORT const smp_port *syncedmem_port(void);

static int rude_call(void *memory_, const smp_arguments *asked, smp_result *result) {
  memory *it = memory_;
  void *const before = it->cpu;
  const int status = call(memory_, asked, result);
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

static const smp_port rude = {SMP_ABI_VERSION, 4, SMP_SIDES, "rude", "caffe", NULL, create, rude_call, state, free};

const smp_port *syncedmem_port(void) { return &rude; }
