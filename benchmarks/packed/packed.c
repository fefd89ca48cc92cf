/* y = x W^T for float32 x and weights in blocks of 32 along the input, as GGUF files hold them: w = scale * q + low.

Products and sums are float32. Eight rows of W lie side by side, one in each lane of a vector. Of a block of these there are as
many vectors of 32-bit words as a q has bits, one with the scales and, with 4 bits, one with the lows. */
#include <stdint.h>
#include <stdlib.h>

typedef float v8f __attribute__((vector_size(32)));
typedef int32_t v8i __attribute__((vector_size(32)));
typedef uint32_t v8u __attribute__((vector_size(32)));
typedef float v8f_any __attribute__((vector_size(32), aligned(4)));

enum { LANES = 8, BLOCK = 32, TOGETHER = 6, TILE = 12 };

#define ALWAYS static inline __attribute__((always_inline))

ALWAYS v8f load(const float *p) { return *(const v8f_any *)p; }

/* DO(i, q) for every number of a word: 4 bits without a sign, or 8 bits with one. */
#define FLOAT(v) __builtin_convertvector(v, v8f)
#define NIBBLE(i) FLOAT((v8i)(((v8u)word >> (4 * i)) & 15u))
#define BYTE(i) FLOAT((word << (24 - 8 * i)) >> 24)
#define EACH4(DO) DO(0, NIBBLE(0)) DO(1, NIBBLE(1)) DO(2, NIBBLE(2)) DO(3, NIBBLE(3)) \
                  DO(4, NIBBLE(4)) DO(5, NIBBLE(5)) DO(6, NIBBLE(6)) DO(7, NIBBLE(7))
#define EACH8(DO) DO(0, BYTE(0)) DO(1, BYTE(1)) DO(2, BYTE(2)) DO(3, BYTE(3))

/* The sum of a word's numbers times x, on top of acc. */
ALWAYS v8f summed(v8f acc, v8i word, int bits, const float *x) {
#define ADD(i, q) acc += q * x[i];
    if (bits == 4) { EACH4(ADD) } else { EACH8(ADD) }
    return acc;
}

/* One group of eight rows against one row of x; sums are those of x in each block. */
ALWAYS v8f dot(const float *group, int blocks, int bits, const float *x, const float *sums) {
    const int each = 32 / bits, size = LANES * (bits + (bits == 4 ? 2 : 1));
    const v8f zero = {0};
    v8f y = zero, lows = zero;
    for (int b = 0; b < blocks; b++, group += size, x += BLOCK) {
        const v8i *words = (const v8i *)group;
        v8f p = summed(zero, words[0], bits, x), q = summed(zero, words[1], bits, x + each);
        v8f r = summed(zero, words[2], bits, x + 2 * each), s = summed(zero, words[3], bits, x + 3 * each);
        if (bits == 8) {
            p = summed(p, words[4], bits, x + 4 * each), q = summed(q, words[5], bits, x + 5 * each);
            r = summed(r, words[6], bits, x + 6 * each), s = summed(s, words[7], bits, x + 7 * each);
        }
        y += load(group + LANES * bits) * ((p + q) + (r + s));
        if (bits == 4) lows += load(group + LANES * (bits + 1)) * sums[b];
    }
    return y + lows;
}

/* One group of eight rows as float32, [input][lane]. */
ALWAYS void spread(const float *group, int blocks, int bits, float *out) {
    const int size = LANES * (bits + (bits == 4 ? 2 : 1));
    for (int b = 0; b < blocks; b++, group += size) {
        const v8f scale = load(group + LANES * bits);
        v8f low = {0};
        if (bits == 4) low = load(group + LANES * (bits + 1));
        for (int w = 0; w < bits; w++, out += LANES * (32 / bits)) {
            const v8i word = ((const v8i *)group)[w];
#define PUT(i, q) *(v8f *)(out + LANES * i) = q * scale + low;
            if (bits == 4) { EACH4(PUT) } else { EACH8(PUT) }
        }
    }
}

/* `rows` rows of x, at most TILE, laid out [input][row], against one group of eight rows as float32. The sums of a few blocks are
   added up by themselves, so that rounding grows with the number of these and not with every number. */
ALWAYS void tile(const float *w, int blocks, const float *x, const int rows, float *y, int64_t stride) {
    for (int first = 0; first < blocks; first += TOGETHER) {
        const int width = BLOCK * (blocks - first < TOGETHER ? blocks - first : TOGETHER);
        v8f acc[TILE] = {{0}};
        for (int k = 0; k < width; k++, w += LANES, x += rows) {
            const v8f one = load(w);
#pragma GCC unroll 12
            for (int r = 0; r < rows; r++) acc[r] += one * x[r];
        }
        for (int r = 0; r < rows; r++) {
            v8f_any *out = (v8f_any *)(y + r * stride);
            *out = first ? *out + acc[r] : acc[r];
        }
    }
}

static void tiles(const float *w, int blocks, const float *x, int rows, float *y, int64_t stride) {
#define CASE(n) case n: tile(w, blocks, x, n, y, stride); break;
    switch (rows) {
        CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6) CASE(7) CASE(8) CASE(9) CASE(10) CASE(11) CASE(12)
    }
}

ALWAYS int product(const float *packed, int64_t groups, int blocks, int bits, const float *x, int64_t rows, float *y) {
    const int width = blocks * BLOCK;
    const int64_t size = (int64_t)blocks * LANES * (bits + (bits == 4 ? 2 : 1)), stride = groups * LANES;
    if (rows == 1) {
        float sums[blocks];
        for (int b = 0; b < blocks; b++) {
            float s = 0;
            for (int i = 0; i < BLOCK; i++) s += x[b * BLOCK + i];
            sums[b] = s;
        }
#pragma omp parallel for schedule(static)
        for (int64_t g = 0; g < groups; g++)
            *(v8f_any *)(y + g * LANES) = dot(packed + g * size, blocks, bits, x, sums);
        return 0;
    }
    /* Tiles of x with their rows side by side. */
    float *turned = malloc(sizeof(float) * rows * width);
    if (turned == NULL) return 1;
    for (int64_t first = 0; first < rows; first += TILE) {
        const int n = rows - first < TILE ? (int)(rows - first) : TILE;
        float *out = turned + first * width;
        for (int k = 0; k < width; k++)
            for (int r = 0; r < n; r++) out[(int64_t)k * n + r] = x[(first + r) * width + k];
    }
    int failed = 0;
#pragma omp parallel
    {
        float *w = aligned_alloc(32, sizeof(float) * width * LANES);
        if (w == NULL) failed = 1;
#pragma omp for schedule(static)
        for (int64_t g = 0; g < groups; g++) {
            if (w == NULL) continue;
            spread(packed + g * size, blocks, bits, w);
            for (int64_t first = 0; first < rows; first += TILE) {
                const int n = rows - first < TILE ? (int)(rows - first) : TILE;
                tiles(w, blocks, turned + first * width, n, y + first * stride + g * LANES, stride);
            }
        }
        free(w);
    }
    free(turned);
    return failed;
}

int product4(const float *packed, int64_t groups, int blocks, const float *x, int64_t rows, float *y) {
    return product(packed, groups, blocks, 4, x, rows, y);
}

int product8(const float *packed, int64_t groups, int blocks, const float *x, int64_t rows, float *y) {
    return product(packed, groups, blocks, 8, x, rows, y);
}
