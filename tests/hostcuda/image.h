/* What nvrtc.c hands to kernels.c in the place of a GPU's binary: a header, and a shared object for the host. */
#pragma once
#include <stdint.h>

#define IMAGE_MAGIC "hostcuda image"

typedef struct Image {
    char magic[sizeof IMAGE_MAGIC];
    uint64_t size; /* of the shared object, which follows */
} Image;
