#include "syncedmem.h"

syncedmem syncedmem_make(size_t size, const smp_allocators *from) {
  syncedmem it = {from, size, SMD_UNINITIALIZED, 0, {NULL, NULL}, {SMP_HOST, SMP_DEVICE}, 0, NULL, 0};
  return it;
}

/* Caffe trusts its callers here. */
static int check(const syncedmem *it, smd_side side, syncedmem_argument with) {
  const char *own = it->pointers[side], *given = with.data;
  const unsigned owns = side == SMD_CPU ? SMD_OWN_CPU_DATA : SMD_OWN_GPU_DATA;
  if ((it->facts & owns) && it->size && given >= own && given < own + it->size) return SMD_REFUSED_OWN_BUFFER;
  if ((with.kind == SMP_DEVICE) != (side == SMD_GPU)) return SYNCEDMEM_WRONG_KIND;
  return with.size < it->size ? SYNCEDMEM_TOO_SMALL : 0;
}

/* Wait for a push in flight: what it reads and writes must not be freed or changed. */
static int wait_for_push(syncedmem *it) {
  if (it->in_flight && it->from->synchronize(it->from->context, it->stream) != 0) return SYNCEDMEM_FAILED;
  it->in_flight = 0;
  return 0;
}

/* Perform an action on a memory that is not of zero bytes; 0 if it succeeded. */
static int act(syncedmem *it, const smd_effect *effect, syncedmem_argument with, smd_mode mode) {
  const smp_allocators *from = it->from;
  void *const context = from->context;
  const smd_side side = effect->side, other = side == SMD_CPU ? SMD_GPU : SMD_CPU;
  int failed = 0;
  switch (effect->verb) {
    case SMD_VERB_ALLOCATE:
      if (side == SMD_CPU) it->kinds[side] = mode == SMD_MODE_GPU ? SMP_PINNED : SMP_HOST;
      return from->allocate(context, it->kinds[side], it->size, &it->pointers[side]);
    case SMD_VERB_ZERO:
      return from->zero(context, it->pointers[side], it->size);
    case SMD_VERB_COPY:
      if (!effect->asynchronous) return from->copy(context, it->pointers[side], it->pointers[other], it->size);
      failed = from->copy_async(context, it->pointers[side], it->pointers[other], it->size, with.stream);
      if (!failed) it->in_flight = 1, it->stream = with.stream;
      return failed;
    case SMD_VERB_FREE:
      failed = from->deallocate(context, it->kinds[side], it->pointers[side]);
      if (!failed) it->facts &= ~effect->clears; /* at once, in case the free of the other side fails */
      return failed;
    case SMD_VERB_ADOPT:
    case SMD_VERB_NONE:
      return 0;
  }
  return SYNCEDMEM_FAILED;
}

/* Take back an action of a call that failed later: only an allocation has to be. */
static void undo(syncedmem *it, const smd_effect *effect) {
  if (effect->verb != SMD_VERB_ALLOCATE) return;
  it->from->deallocate(it->from->context, it->kinds[effect->side], it->pointers[effect->side]);
  it->pointers[effect->side] = NULL;
}

int syncedmem_call(syncedmem *it, smd_call call, syncedmem_argument with, smd_mode mode) {
  const smd_row *row = smd_find(call, it->head, it->facts, with.data != NULL);
  const smd_side side = call == SMD_SET_CPU_DATA ? SMD_CPU : SMD_GPU;
  int refused = 0;
  if (row == NULL || (it->released && call != SMD_RELEASE)) return SYNCEDMEM_NOT_NOW;
  if (row->refusal != SMD_REFUSED_NONE) return row->refusal;
  if (with.data != NULL) refused = check(it, side, with);
  if (refused) return refused;
  if (call != SMD_CPU_DATA && wait_for_push(it) != 0) return SYNCEDMEM_FAILED;
  for (unsigned done = 0; it->size != 0 && done < row->actions_count; ++done) {
    if (act(it, &smd_effects[row->actions[done]], with, mode) != 0) {
      while (done-- > 0) undo(it, &smd_effects[row->actions[done]]);
      return SYNCEDMEM_FAILED;
    }
    it->released = call == SMD_RELEASE; /* freed memory cannot be taken back */
  }
  if (with.data != NULL) it->pointers[side] = with.data;
  it->facts = smd_facts_after(row, it->facts, mode);
  it->head = row->dest;
  if (call == SMD_RELEASE) {
    it->released = 1;
    it->pointers[SMD_CPU] = it->pointers[SMD_GPU] = NULL;
  }
  return 0;
}
