/* SPDX-License-Identifier: BSD-3-Clause */
/* Heat in a square plate of 32 x 32 cells whose upper edge has 100 degrees and whose other edges have 0. Each step sets
 * every cell to the mean of its four neighbours (Jacobi), until no cell changes by more than 0.001 degrees.
 *
 * The PEs share the rows. A PE's own rows need one row from each neighbour, its halo. Before each step the neighbours
 * put these rows. A reduction finds the largest change on all PEs, the residual. The result does not depend on the
 * number of PEs.
 *
 *     $ npushmem-run -n 4 ./heat
 *     step  200: residual 0.0969
 *     step  400: residual 0.0308
 *     step  600: residual 0.0121
 *     step  800: residual 0.0049
 *     step 1000: residual 0.0020
 *     1149 steps, in the middle 23.52 degrees */
#include <math.h>
#include <npushmem.h>
#include <stdio.h>

enum { size = 32, width = size + 2, max_steps = 10000, reported = 200 }; /* width: with the cells of the edges */

static const double tolerance = 0.001; /* degrees */

/* Symmetric, because they are the arguments of a reduction. */
static double change, residual;

/* Computes rows 1..rows of `to` out of `from`. Returns the largest change of a cell. */
static double step(double (*to)[width], double (*from)[width], int rows) {
    double largest = 0;
    for (int y = 1; y <= rows; ++y) {
        for (int x = 1; x <= size; ++x) {
            to[y][x] = 0.25 * (from[y - 1][x] + from[y + 1][x] + from[y][x - 1] + from[y][x + 1]);
            largest = fmax(largest, fabs(to[y][x] - from[y][x]));
        }
    }
    return largest;
}

int main(void) {
    npushmem_init();
    const int me = npushmem_my_pe();
    const int n = npushmem_n_pes();
    const int first = size * me / n; /* this PE's rows: first .. first + rows - 1 */
    const int rows = size * (me + 1) / n - first;
    const int rows_above = me > 0 ? first - size * (me - 1) / n : 0; /* of the neighbour above */
    const int max_rows = size / n + 1;
    if (n > size) {
        if (me == 0) fprintf(stderr, "heat: %d PEs for %d rows; start at most one PE for each row\n", n, size);
        npushmem_finalize();
        return 1;
    }

    /* Row 0 is the halo above, row rows + 1 the halo below. Symmetric objects have the same size on every PE. Two
     * grids: a step reads one and writes the other. */
    double(*grid[2])[width];
    for (int i = 0; i < 2; ++i) {
        grid[i] = npushmem_calloc((size_t)max_rows + 2, sizeof *grid[i]);
        if (grid[i] == NULL) return 1; /* the library has reported why */
        for (int x = 0; x < width && me == 0; ++x) grid[i][0][x] = 100;
    }
    npushmem_barrier_all();

    int steps = 0;
    do {
        double(*from)[width] = grid[steps % 2];
        double(*to)[width] = grid[(steps + 1) % 2];
        /* This PE's first row is the halo below of the PE above, and its last row is the halo above of the PE below. */
        if (me > 0) npushmem_double_put(from[rows_above + 1], from[1], width, me - 1);
        if (me < n - 1) npushmem_double_put(from[0], from[rows], width, me + 1);
        /* Completes the puts, and waits for those of the neighbours. One barrier for each step is enough: a neighbour
         * writes into `from` again in the step after next, after the next barrier. */
        npushmem_barrier_all();
        change = step(to, from, rows);
        if (npushmem_double_max_reduce(NPUSHMEM_TEAM_WORLD, &residual, &change, 1) != 0) return 1;
        ++steps;
        if (me == 0 && steps % reported == 0) printf("step %4d: residual %.4f\n", steps, residual);
    } while (residual > tolerance && steps < max_steps);

    if (me == 0) {
        /* The PE that has the row in the middle, its place there, and the cell, read from that PE. */
        const int middle = size / 2;
        const int pe = ((middle + 1) * n - 1) / size;
        const double* cell = &grid[steps % 2][1 + middle - size * pe / n][middle];
        printf("%d steps, in the middle %.2f degrees\n", steps, npushmem_double_g(cell, pe));
    }
    for (int i = 0; i < 2; ++i) npushmem_free(grid[i]);
    npushmem_finalize();
    return residual > tolerance ? 1 : 0;
}
