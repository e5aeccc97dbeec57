/* nvrtc.c gives this to kernels.c instead of a GPU's binary: a header, and a shared object for the host. */
#pragma once
#include <stdint.h>

#define IMAGE_MAGIC "hostcuda image"

typedef struct Image {
    char magic[sizeof IMAGE_MAGIC];
    uint64_t size; /* the size of the shared object, which follows */
} Image;
