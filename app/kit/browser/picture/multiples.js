// Small multiples: many small maps of one size, painted side by side once and copied from there.

/** @typedef {{canvas: HTMLCanvasElement, rows: number, columns: number, gap: [down: number, across: number]}} Multiples */

// down × across maps of rows × columns cells. of(i, j) gives the colour of each cell of the map in row i and column j; gap: pixels
// of nothing after each map, for a picture that is shown as it is
/**
 * @param {{down: number, across: number, rows: number, columns: number, gap?: [down: number, across: number], of: (i: number, j: number) => (row: number, column: number) => number}} what
 * @returns {Multiples}
 */
export function multiples({ down, across, rows, columns, gap = [0, 0], of }) {
  const [high, wide] = [rows + gap[0], columns + gap[1]];
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [wide * across, high * down];
  const image = new ImageData(canvas.width, canvas.height);
  const all = new Uint32Array(image.data.buffer);
  for (let i = 0; i < down; i++) {
    for (let j = 0; j < across; j++) {
      const colour = of(i, j);
      for (let row = 0; row < rows; row++) {
        const at = (i * high + row) * canvas.width + j * wide;
        for (let column = 0; column < columns; column++) all[at + column] = colour(row, column);
      }
    }
  }
  /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d")).putImageData(image, 0, 0);
  return { canvas, rows, columns, gap };
}

// One of them at a place on the screen, so large
/** @param {CanvasRenderingContext2D} context @param {Multiples} all @param {number} i @param {number} j @param {number} x @param {number} y @param {number} size */
export function copyOne(context, { canvas, rows, columns, gap }, i, j, x, y, size) {
  context.imageSmoothingEnabled = size < columns;
  context.drawImage(canvas, j * (columns + gap[1]), i * (rows + gap[0]), columns, rows, x, y, size, size);
}
