// What the hostile programs say of each call. Included once by each.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "weir.h"

#define EXPECT(call, expected)                                                                        \
    do {                                                                                              \
        weir_code code_ = (call);                                                                     \
        if (code_ != (expected)) {                                                                    \
            fprintf(stderr, "%s:%d: %d instead of %d: %s\n", __FILE__, __LINE__, code_, expected,     \
                    weir_message());                                                                  \
            exit(1);                                                                                  \
        }                                                                                             \
    } while (0)
#define DO(call) EXPECT(call, WEIR_OK)
#define REFUSED(call) EXPECT(call, WEIR_INPUT)

static weir_bytes text(const char *s) {
    weir_bytes bytes = {(const uint8_t *)s, strlen(s)};
    return bytes;
}

static weir_bytes some(const void *data, size_t len) {
    weir_bytes bytes = {(const uint8_t *)data, len};
    return bytes;
}

static void count(void *context, weir_bytes bytes) {
    (void)bytes;
    ++*(int *)context;
}
